"""Models without a network, for tests and experiments: one plays a script, one echoes its input."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NoReturn, TypeAlias, cast

from ferrule._util.callback_signature import find_callback_problem
from ferrule.capabilities import Capabilities, adapt
from ferrule.conversation import Conversation, Message, Text, ToolCall, assistant
from ferrule.errors import ModelError, SettingsError
from ferrule.events import NO_USAGE, CallFinished, CallStarted, Event, LossesReported, MessageFinished, TextDelta
from ferrule.models.protocol import ModelSettings
from ferrule.toolspec import ToolSpec

ScriptEntry: TypeAlias = (
    str | ToolCall | Message | Sequence[str | ToolCall] | BaseException | type[BaseException]
    | Callable[[Conversation], Any]
)  # fmt: skip


class ScriptedModel:
    """Returns one message after another, whatever it is asked, and records the conversations that it received.

    A script consists of texts, `ToolCall`s, lists of both, whole assistant messages, exceptions to raise, and
    functions, sync or async, that get the conversation and return one of the others. Raises `SettingsError` for
    anything else. The idea of a scripted model that can assert it was used up comes from openai-agents.
    """

    name = "scripted"
    capabilities = Capabilities(reasoning=True, ids=True, user_images=True, image_results=True, user_media=("*",))

    def __init__(self, *script: ScriptEntry) -> None:
        # Prepared in advance, so that measurements with this model measure the code around models.
        self._script = [_prepare_entry(entry) for entry in script]
        self._left = iter(self._script)
        self.seen: list[Conversation] = []

    async def stream(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],  # noqa: ARG002 - a script ignores the offers
        settings: ModelSettings,  # noqa: ARG002 - and the settings
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`. Raises the exceptions of the script, and `ModelError` at its end."""
        events = next(self._left, None)
        if events is None:
            raise ModelError(f"the script has ended after {len(self._script)} messages, and the model was called again")
        self.seen.append(conversation)
        if not isinstance(events, tuple):
            events = await _ask_function(events, conversation)
        for event in events:
            yield event

    def assert_used_up(self) -> None:
        """Raise `AssertionError` unless every message of the script was used."""
        assert len(self.seen) == len(self._script), f"{len(self.seen)} of {len(self._script)} messages were used"

    async def aclose(self) -> None:
        """Do nothing: there are no resources."""


def _prepare_entry(entry: Any) -> tuple[Event, ...] | Callable[[Conversation], Any]:
    """The events of an entry, or the function that makes them. Raises `SettingsError` for what is no entry."""
    if isinstance(entry, BaseException) or (isinstance(entry, type) and issubclass(entry, BaseException)):
        return partial(_raise, entry)
    if isinstance(entry, Message) and entry.role == "assistant":
        return tuple(_make_events(entry))
    if isinstance(entry, str | ToolCall):
        return tuple(_make_events(assistant(entry)))
    if isinstance(entry, list | tuple):
        return tuple(_make_events(assistant(*entry)))
    if callable(entry):
        if problem := find_callback_problem(entry):
            raise SettingsError(f"a script takes functions of the conversation, {problem}")
        return cast("Callable[[Conversation], Any]", entry)
    raise SettingsError(
        "a script takes texts, ToolCalls, lists of both, assistant messages, functions of the conversation and "
        f"exceptions, not {entry!r}"
    )


def _raise(error: BaseException | type[BaseException], _conversation: Conversation) -> NoReturn:
    raise error


async def _ask_function(function: Callable[[Conversation], Any], conversation: Conversation) -> tuple[Event, ...]:
    found = function(conversation)
    events = _prepare_entry(await found if inspect.isawaitable(found) else found)
    return events if isinstance(events, tuple) else await _ask_function(events, conversation)


def _make_events(message: Message) -> Iterable[Event]:
    index = 0
    for part in message.parts:
        if isinstance(part, Text):
            yield TextDelta(part.text)
        elif isinstance(part, ToolCall):
            yield CallStarted(index, part.name, part.id)
            yield CallFinished(index, part)
            index += 1
    yield MessageFinished(message, NO_USAGE, "calls" if message.calls else "turn")


_WORDS = re.compile(r"\S+\s*|\s+")
_MEDIA = ("image", "audio", "file")


class EchoModel:
    """Repeats the text of the last user message, or of the results if those came last, word by word.

    It calls no tool, whatever is offered. Images, audio and files are not repeated, and are reported as losses.
    """

    name = "echo"
    capabilities = Capabilities(reasoning=True, ids=True)

    async def stream(
        self,
        conversation: Conversation,
        tools: Sequence[ToolSpec],  # noqa: ARG002 - it has no use for them
        settings: ModelSettings,  # noqa: ARG002 - nothing is sampled
    ) -> AsyncGenerator[Event, None]:
        """See `Model.stream`."""
        losses = tuple(loss for loss in adapt(conversation, self.capabilities)[1] if loss.kind in _MEDIA)
        if losses:
            yield LossesReported(losses)
        text = _find_last_text(conversation)
        for word in _WORDS.findall(text):
            yield TextDelta(word)
        yield MessageFinished(assistant(text), NO_USAGE, "turn")

    async def aclose(self) -> None:
        """Do nothing: there are no resources."""


def _find_last_text(conversation: Conversation) -> str:
    backwards = list(reversed(conversation.messages))
    if results := [message.result.text for message in takewhile(lambda m: m.role == "tool", backwards)]:
        return "\n".join(reversed(results))
    return next((message.text for message in backwards if message.role == "user"), "")
