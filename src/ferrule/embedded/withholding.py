"""Calls that a model is unsure of: it says what it would have called, and asks.

The threshold stands in `confidence.json` of the model's folder, which `ferrule eval embedded --calibrate` writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from ferrule.conversation import Conversation, MalformedCall, Message, Part, Text, ToolCall
from ferrule.errors import ConversationError, ModelError
from ferrule.formats.nanochat import PARAMETER, TOOL, write_call

CONFIDENCE_FILE = "confidence.json"

_YES = (
    "y yes yea yeah yep yup sure ok okay alright fine true right correct exactly definitely certainly absolutely "
    "indeed meant affirmative confirm confirmed proceed please go do call so should course means good great that's"
)
_BESIDE_YES = (
    "a ahead all and be by for i i'd is it just like make me now of one sounds thank thanks that the then thing think "
    "this to what would you"
)
_ASKS = "I'm not sure. Should I call "
_HAS = "I have the result of "
_ASKS_AGAIN = " already. Should I call it again?"
_QUESTION = re.compile(rf"{re.escape(_ASKS)}(.+)\?\Z|{re.escape(_HAS)}(.+){re.escape(_ASKS_AGAIN)}\Z", re.DOTALL)


def write_withheld_question(call: str) -> str:
    """What is said instead of a call that the model is unsure of; the framework writes it, not the model."""
    return f"{_ASKS}{call}?"


def withhold(message: Message, conversation: Conversation) -> Message | None:
    """What stands for a message whose calls the model is unsure of: its text, and a question in place of them.

    None if the user was just asked about these very calls and said yes, or if one of them can't be read.
    """
    calls = tuple(call for call in message.calls if isinstance(call, ToolCall))
    if len(calls) < len(message.calls):
        return None
    asked = " and ".join(map(_write_call, calls))
    if find_agreed_call(conversation) == asked:
        return None
    is_repeated = set(map(_write_call, calls)) <= _list_successful_calls(conversation)
    question = f"{_HAS}{asked}{_ASKS_AGAIN}" if is_repeated else write_withheld_question(asked)
    first = next(place for place, part in enumerate(message.parts) if isinstance(part, ToolCall))
    said = message.parts[:first]
    if said and isinstance(said[-1], Text) and not said[-1].text[-1:].isspace():
        question = f" {question}"
    return Message("assistant", _append_text(said, question)).mark_untrained()


def _append_text(parts: Sequence[Part], text: str) -> tuple[Part, ...]:
    last = parts[-1] if parts else None
    return (*parts[:-1], Text(last.text + text)) if isinstance(last, Text) else (*parts, Text(text))


def find_agreed_call(conversation: Conversation) -> str:
    """The text of the call that the user was just asked about and said yes to; empty without a plain yes."""
    if len(conversation) < 2:
        return ""
    before, last = conversation.messages[-2:]
    if (before.role, last.role) != ("assistant", "user"):
        return ""
    said = last.text.lower().replace("\u2019", "'").replace("why not", "yes")
    words = set(re.findall(r"[\w']+", said))
    # A word beside these may be a correction, or a no.
    agrees = bool(words & set(_YES.split())) and words <= {*_YES.split(), *_BESIDE_YES.split()}
    asked = _QUESTION.search(before.text)
    return asked[1] or asked[2] if agrees and asked is not None else ""


def _list_successful_calls(conversation: Conversation) -> set[str]:
    """The texts of the calls since the last request that have a result without an error."""
    messages = conversation.messages
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=0)
    results = (message.result for message in messages[last:] if message.role == "tool")
    succeeded = {result.call_id for result in results if result is not None and not result.is_error}
    made = (call for message in messages[last:] for call in message.calls)
    return {_write_call(call) for call in made if isinstance(call, ToolCall) and call.id in succeeded}


def _write_call(call: ToolCall | MalformedCall) -> str:
    assert isinstance(call, ToolCall)
    try:
        arguments = call.decode()
        if call.name == TOOL and set(arguments) == {PARAMETER}:
            return str(arguments[PARAMETER])
        return write_call(call.name, arguments)
    except (ValueError, AttributeError, TypeError, ConversationError):
        return f"{call.name} with {call.arguments}"


def read_threshold(folder: Path) -> float | None:
    """The threshold of a model's folder; None without the file. Raises `ModelError` for one that holds none."""
    path = folder / CONFIDENCE_FILE
    try:
        threshold = json.loads(path.read_bytes())["threshold"]
        if isinstance(threshold, int | float) and not isinstance(threshold, bool) and 0 <= threshold <= 1:
            return float(threshold)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} can't be read: {error}; remove it, and no call is withheld") from error
    raise ModelError(f'{path}: "threshold" must be a number from 0 to 1; remove the file, and no call is withheld')
