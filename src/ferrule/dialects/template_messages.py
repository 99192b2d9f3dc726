"""A conversation as the dictionaries that chat templates take, with or without a sentinel for each piece of content.

A sentinel is plain letters and digits, found nowhere in the conversation, so a template can only pass it on. Names and
keys that are plain words stay as they are, since templates look them up; they can't be markers. Blank text stays too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from ferrule.conversation import Conversation, MalformedCall, Message, Reasoning, ToolCall
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

Kind = Literal["system", "user", "result", "text", "reasoning", "malformed", "value", "name", "offered"]
Fill = Callable[[str, Kind, int], str]

_WORD = re.compile(r"[A-Za-z0-9_.\-]*")
_NINE = re.compile(r"[A-Za-z0-9]{9}")
OFFERED = -1


@dataclass(frozen=True, slots=True)
class Shape:
    """What a template takes: content as a string or as a list of parts, arguments as an object or as its JSON,
    ids as they are or, as Mistral's want them, of nine letters and digits, and how no text beside calls is said."""

    parts: bool = False
    arguments_as_text: bool = False
    nine: bool = False
    no_text: str | None = ""


@dataclass(frozen=True, slots=True)
class Slot:
    """What a sentinel stands for; `message` is its place in the conversation, `OFFERED` for a tool's data."""

    text: str
    kind: Kind
    message: int


@dataclass(slots=True)
class Slots:
    """Gives out sentinels, and finds them in a rendering."""

    salt: str
    slots: list[Slot] = field(default_factory=list)

    def put(self, text: str, kind: Kind, message: int) -> str:
        """The sentinel that stands for a text."""
        if not text.strip():
            return text
        self.slots.append(Slot(text, kind, message))
        return f"{self.salt}{len(self.slots) - 1:06d}z"

    def cut(self, rendered: str) -> list[str]:
        """Template text and the numbers of slots, in turns; both ends are template text."""
        return re.split(rf"{self.salt}(\d{{6}})z", rendered)


def as_it_is(text: str, kind: Kind, message: int) -> str:  # noqa: ARG001 - a `Fill`
    """Fills in the text itself."""
    return text


def salt_for(*texts: str) -> str:
    """Letters that begin no word of these texts."""
    number = 0
    while any(f"q{number}Z" in text for text in texts):
        number += 1
    return f"q{number}Z"


def messages_of(conversation: Conversation, shape: Shape, fill: Fill) -> list[dict[str, Any]]:
    """The messages in the shape of OpenAI's API, with reasoning under the names that templates look for."""
    return [_message(message, at, shape, fill) for at, message in enumerate(conversation.messages)]


def tools_of(tools: Sequence[ToolSpec], fill: Fill) -> list[dict[str, Any]] | None:
    """The tools in the shape of OpenAI's API; None where there are none, as templates expect."""
    functions = ({"name": spec.name, "description": spec.description, "parameters": spec.parameters} for spec in tools)
    return [{"type": "function", "function": _offered(function, fill)} for function in functions] or None


def _offered(value: Any, fill: Fill) -> Any:
    # A schema's own words ("type": "string") are what templates branch on.
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) else fill(value, "offered", OFFERED)
    if isinstance(value, Mapping):
        return {_offered(str(key), fill): _offered(item, fill) for key, item in value.items()}
    return [_offered(item, fill) for item in value] if isinstance(value, list | tuple) else value


def _message(message: Message, at: int, shape: Shape, fill: Fill) -> dict[str, Any]:
    if message.role == "tool":
        result = message.result
        return {
            "role": "tool",
            "tool_call_id": _id(result.call_id, shape, fill, at),
            "name": _named(result.name, fill, at),
            "content": _content(fill(result.text, "result", at), shape),
        }
    if message.role != "assistant":
        return {"role": message.role, "content": _content(fill(message.text, message.role, at), shape)}
    said = fill(message.text, "text", at)
    said += "".join(fill(p.raw, "malformed", at) for p in message.parts if isinstance(p, MalformedCall))
    calls = [_call(part, at, shape, fill) for part in message.parts if isinstance(part, ToolCall)]
    made: dict[str, Any] = {"role": "assistant", "content": _content(said, shape)}
    if calls:
        made |= {"tool_calls": calls} | ({} if said else {"content": shape.no_text})
    reasoning = "".join(part.text for part in message.parts if isinstance(part, Reasoning))
    if reasoning:
        thought = fill(reasoning, "reasoning", at)
        made |= {"reasoning_content": thought, "thinking": thought, "reasoning": thought}
    return made


def _content(text: str, shape: Shape) -> Any:
    return [{"type": "text", "text": text}] if shape.parts else text


def _call(call: ToolCall, at: int, shape: Shape, fill: Fill) -> dict[str, Any]:
    try:
        arguments = call.decoded()
    except (ValueError, RecursionError) as error:
        raise DialectError(f"the arguments of call {call.id!r} ({call.name}) are not JSON: {error}") from error
    arguments = _value(arguments, fill, at)
    if shape.arguments_as_text:
        arguments = json.dumps(arguments, ensure_ascii=False)
    function = {"name": _named(call.name, fill, at), "arguments": arguments}
    return {"type": "function", "id": _id(call.id, shape, fill, at), "function": function}


def _value(value: Any, fill: Fill, at: int) -> Any:
    if isinstance(value, str):
        return fill(value, "value", at)
    if isinstance(value, Mapping):
        return {_named(key, fill, at): _value(item, fill, at) for key, item in value.items()}
    return [_value(item, fill, at) for item in value] if isinstance(value, list) else value


def _named(name: str, fill: Fill, at: int) -> str:
    return name if _WORD.fullmatch(name) else fill(name, "name", at)


def _id(call_id: str, shape: Shape, fill: Fill, at: int) -> str:
    if shape.nine:
        return call_id if _NINE.fullmatch(call_id) else sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]
    return _named(call_id, fill, at)
