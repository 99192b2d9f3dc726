"""A conversation as the dictionaries that chat templates expect, with or without a sentinel for each piece of content.

A sentinel is plain letters and digits that occur nowhere in the conversation, so a template can only pass it on. Names
and keys that are plain words are unchanged, since templates look them up; they can't be markers. So is blank text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from ferrule.conversation import Conversation, Image, MalformedCall, Message, Reasoning, Text, ToolCall
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec, render_openai_tool

Kind = Literal["system", "user", "result", "text", "reasoning", "malformed", "value", "name", "id", "offered"]
Fill = Callable[[str, Kind, int], str]

_WORD = re.compile(r"[A-Za-z0-9_.\-]*")
_ID = re.compile(r"[A-Za-z0-9_.:\-]*")
_NINE = re.compile(r"[A-Za-z0-9]{9}")
OFFERED = -1


@dataclass(frozen=True, slots=True)
class MessageShape:
    """What a template expects: content as a string or as a list of parts, arguments as an object or as its JSON, ids
    unchanged, of nine letters and digits (Mistral) or with the function's name in them (`functions.f:0`, Kimi), and the
    content of calls without text."""

    parts: bool = False
    arguments_as_text: bool = False
    ids: Literal["given", "nine", "named"] = "given"
    no_text: str | None = ""


@dataclass(frozen=True, slots=True)
class ContentSlot:
    """What a sentinel represents; `message` is its index in the conversation, `OFFERED` for a tool's data."""

    text: str
    kind: Kind
    message: int


@dataclass(slots=True)
class ContentSlots:
    """Creates sentinels, and finds them in a rendering.

    With `edges`, white space and full stops at the ends of a text are unchanged, for templates that inspect them; with
    `signs`, a sentinel contains the characters that make a template look for markup. With `replaces_ids`, the ids of
    calls that are plain words have sentinels, too, which are not slots but part of the template's own text:
    conversations that differ only in these ids then have the same rendering.
    """

    salt: str
    replaces_ids: bool = False
    edges: bool = False
    signs: bool = False
    slots: list[ContentSlot] = field(default_factory=list)
    _ids: dict[str, int] = field(default_factory=dict)

    def put(self, text: str, kind: Kind, message: int) -> str:
        """The sentinel for a text."""
        if is_plain(text, kind):
            if not (self.replaces_ids and kind == "id" and text):
                return text
            return f"{self.salt}{self._ids.setdefault(text, len(self._ids)):05d}{_ID_END}"
        before, core, after = _split_edges(text) if self.edges else ("", text, "")
        self.slots.append(ContentSlot(core, kind, message))
        signs = "".join(sign for sign in _SIGNS if sign in core) if self.signs else ""
        return f"{before}{write_sentinel(self.salt, len(self.slots) - 1, signs)}{after}"

    def restore_ids(self, rendered: str) -> str:
        """A rendering with the ids instead of their sentinels."""
        if not self._ids:
            return rendered
        ids = [*self._ids]
        return re.sub(rf"{self.salt}(\d{{5,}}){_ID_END}", lambda match: ids[int(match[1])], rendered)

    def cut(self, rendered: str, position: int = 0) -> list[tuple[str, int, int]]:
        """The numbers of the slots from a position on, and where the sentinel of each begins and ends."""
        found = re.compile(rf"{self.salt}(\d{{5,}})[{_SIGNS}]*z").finditer(rendered, position)
        return [(match[1], match.start(), match.end()) for match in found]


_SIGNS = "<&\n"
_ID_END = "y"


def write_sentinel(salt: str, number: int, signs: str = "") -> str:
    """The sentinel of a slot: nine letters and digits where it can be, so that it also serves as an id of Mistral's."""
    return f"{salt}{number:05d}{signs}z"


def _split_edges(text: str) -> tuple[str, str, str]:
    """A text without the white space and full stops at its ends, and these; all of it if there is nothing else."""
    core = text.strip().rstrip(".").rstrip() or text.strip()
    before, _, after = text.partition(core)
    return before, core, after


def is_python(text: str) -> bool:
    """Whether a template that received content as parts wrote their list as a Python literal, instead of the
    contents."""
    return "'text': " in text


def is_plain(text: str, kind: Kind) -> bool:
    """Whether a text has no slot: blank text, and ids of calls that are plain words."""
    return not text.strip() or (kind == "id" and _ID.fullmatch(text) is not None)


def keep_text(text: str, kind: Kind, message: int) -> str:  # noqa: ARG001 - a `Fill`
    """Fill in the text itself."""
    return text


def make_salt(*texts: str) -> str:
    """Letters with which no word in these texts begins."""
    number = 0
    while any(f"q{number}Z" in text for text in texts):
        number += 1
    return f"q{number}Z"


def encode_messages(conversation: Conversation, shape: MessageShape, fill: Fill) -> list[dict[str, Any]]:
    """The messages in the shape of OpenAI's API, with reasoning under all names that templates use."""
    ids = _Ids(shape, fill)
    return [_encode_message(message, at, shape, fill, ids) for at, message in enumerate(conversation.messages)]


def encode_tools(tools: Sequence[ToolSpec], fill: Fill) -> list[dict[str, Any]] | None:
    """The tools in the shape of OpenAI's API; None if there are none, as templates expect."""
    return [_fill_schema(render_openai_tool(spec), fill) for spec in tools] or None


def _fill_schema(value: Any, fill: Fill) -> Any:
    # A schema's keywords ("type": "string") are what templates branch on.
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) else fill(value, "offered", OFFERED)
    if isinstance(value, list | tuple):
        return [_fill_schema(item, fill) for item in value]
    if not isinstance(value, dict | Mapping):  # the first is found faster
        return value
    return {_fill_schema(str(key), fill): _fill_schema(item, fill) for key, item in value.items()}


@dataclass(slots=True)
class _Ids:
    """How the ids of calls are written, with those of results as those of their calls."""

    shape: MessageShape
    fill: Fill
    _named: dict[str, str] = field(default_factory=dict)
    _count: int = 0

    def get_call_id(self, call: ToolCall, at: int) -> str:
        """The id of a call."""
        if self.shape.ids == "named":
            numbered = re.fullmatch(r"functions\.(.+):\d+", call.id)
            is_named = numbered is not None and numbered[1] == call.name
            self._named[call.id] = call.id if is_named else f"functions.{call.name}:{self._count}"
            self._count += 1
        return self.get_result_id(call.id, at)

    def get_result_id(self, call_id: str, at: int) -> str:
        """The id in a result."""
        written = self._named.get(call_id, call_id)
        if self.shape.ids == "nine" and not _NINE.fullmatch(written):
            written = sha256(written.encode("utf-8", "replace")).hexdigest()[:9]
        return written if call_id in self._named and _ID.fullmatch(written) else self.fill(written, "id", at)


def _encode_message(message: Message, at: int, shape: MessageShape, fill: Fill, ids: _Ids) -> dict[str, Any]:
    if message.role == "tool":
        result = message.result
        return {
            "role": "tool",
            "tool_call_id": ids.get_result_id(result.call_id, at),
            "name": _fill_name(result.name, fill, at),
            "content": _encode_content(fill(result.text, "result", at), shape),
        }
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):
        kind: Kind = "text" if message.role == "assistant" else message.role
        return {"role": message.role, "content": _encode_content(fill(message.text, kind, at), shape)}
    if any(isinstance(part, Image) for part in message.parts):
        return {"role": message.role, "content": [*_encode_parts(message, at, fill)]}
    if message.role != "assistant":
        return {"role": message.role, "content": _encode_content(fill(message.text, message.role, at), shape)}
    said = fill(message.text, "text", at)
    said += "".join(fill(p.raw, "malformed", at) for p in message.parts if isinstance(p, MalformedCall))
    calls = [_encode_call(part, at, shape, fill, ids) for part in message.parts if isinstance(part, ToolCall)]
    made: dict[str, Any] = {"role": "assistant", "content": _encode_content(said, shape)}
    if calls:
        made |= {"tool_calls": calls} | ({} if said else {"content": shape.no_text})
    reasoning = "".join(part.text for part in message.parts if isinstance(part, Reasoning))
    if reasoning:
        thought = fill(reasoning, "reasoning", at)
        made |= {"reasoning_content": thought, "thinking": thought, "reasoning": thought}
    return made


def _encode_parts(message: Message, at: int, fill: Fill) -> Iterator[dict[str, str]]:
    """A user's texts and images as parts, which is how every template takes images."""
    for part in message.parts:
        if isinstance(part, Text):
            yield {"type": "text", "text": fill(part.text, "user", at)}
        elif isinstance(part, Image):
            yield {"type": "image"}


def _encode_content(text: str, shape: MessageShape) -> Any:
    return [{"type": "text", "text": text}] if shape.parts else text


def _encode_call(call: ToolCall, at: int, shape: MessageShape, fill: Fill, ids: _Ids) -> dict[str, Any]:
    try:
        arguments = call.decode()
    except (ValueError, RecursionError) as error:
        raise DialectError(f"the arguments of call {call.id!r} ({call.name}) are not JSON: {error}") from error
    arguments = _fill_value(arguments, fill, at)
    if shape.arguments_as_text:
        arguments = json.dumps(arguments, ensure_ascii=False)
    function = {"name": _fill_name(call.name, fill, at), "arguments": arguments}
    return {"type": "function", "id": ids.get_call_id(call, at), "function": function}


def _fill_value(value: Any, fill: Fill, at: int) -> Any:
    if isinstance(value, str):
        return fill(value, "value", at)
    if isinstance(value, Mapping):
        return {_fill_name(key, fill, at): _fill_value(item, fill, at) for key, item in value.items()}
    return [_fill_value(item, fill, at) for item in value] if isinstance(value, list) else value


def _fill_name(name: str, fill: Fill, at: int) -> str:
    return name if _WORD.fullmatch(name) else fill(name, "name", at)
