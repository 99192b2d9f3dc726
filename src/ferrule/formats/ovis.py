"""Ovis's conversation format: turns `from` and `value`, with calls and results inside the text.

    {"image": "cat.png", "conversations": [
        {"from": "human", "value": "<image>\nWho is this?"},
        {"from": "gpt", "value": "<tool_call>Crop [10,10,90,90]</tool_call><image>\nA person in blue."},
        {"from": "gpt", "value": "<tool_call>Identify [10,10,90,90]</tool_call><tool_response>James</tool_response>"}]}

One turn of the model is several messages here: the assistant's, the result, and the assistant's next one. Saving joins
them again. Between `<think>` and `</think>` is reasoning, including white space, which continues after a call and its
result; an unclosed `<think>` is text. The file contains no images: `<image>` marks the place of one and, in a result,
that the tool must be run again for it. White space and other keys are kept in `extra`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ferrule.errors import ConversationError
from ferrule.tools.schema_types import standardize_type
from ferrule.toolspec import ToolSpec

_EXTRA = "ovis"
_ROLES = {"human": "user", "gpt": "assistant", "system": "system"}
_NAMES = {role: name for name, role in _ROLES.items()}
IMAGE = "<image>"
UNBOUND = "values"
"""The argument for the list of values of a call to an unknown tool."""

_CALL = re.compile(r"<tool_call>(?P<inside>.*?)(?P<close></tool_call>|\Z)", re.DOTALL)
_RESULT = re.compile(
    r"(?P<before>\s*)(?P<images>(?:<image>)*)(?:<tool_response>(?P<text>.*?)</tool_response>)?", re.DOTALL
)
_NAME = re.compile(r"[\w.\-]++")
_INSIDE = re.compile(rf"\s*+(?P<name>{_NAME.pattern})\s*+(?P<values>\[.*\])?\s*", re.DOTALL)
_STRAY = re.compile(r"</?tool_call>|</?tool_response>|<image>")
_OPEN, _CLOSE = "<think>", "</think>"
_THOUGHT = re.compile(f"({_OPEN}|{_CLOSE})")


def load(data: Any, tools: Sequence[ToolSpec] = (), images: Sequence[Image] = ()) -> Conversation:
    """A conversation from decoded JSON.

    The values of a call are bound to the parameters of its tool in `tools`, in order; without it they are the list
    `values`. `images` replace the markers in the order of the file; if there are too few, the marker stays as text.
    Raises `ConversationError` naming the turn and what is expected.
    """
    entries = data.get("conversations") if isinstance(data, Mapping) else data
    if not isinstance(entries, list):
        raise ConversationError('an Ovis conversation is an object with a list "conversations"')
    reader = _Reader({tool.name: tool for tool in tools}, iter(images))
    messages = [message for position, entry in enumerate(entries) for message in reader.read_turn(entry, position)]
    rest = {key: value for key, value in data.items() if key != "conversations"} if isinstance(data, Mapping) else None
    if messages and rest != {}:
        first = messages[0]
        extra = {_EXTRA: {**first.extra[_EXTRA], "conversation": rest}}
        messages[0] = Message(first.role, first.parts, None, extra)
    return Conversation(tuple(messages))


@dataclass(slots=True)
class _Reader:
    """Converts turns of a file to messages."""

    tools: Mapping[str, ToolSpec]
    images: Iterator[Image]
    number: int = 1

    def read_turn(self, entry: Any, position: int) -> list[Message]:
        """The messages of one turn."""
        where = f"turn {position}"
        if not isinstance(entry, Mapping):
            raise ConversationError(f"{where} must be an object with from and value")
        name, value = entry.get("from"), entry.get("value")
        if name not in _ROLES:
            raise ConversationError(f"{where}: from must be human, gpt or system, not {name!r:.60}")
        if not isinstance(value, str):
            raise ConversationError(f"{where}: value must be a string")
        kept = {key: held for key, held in entry.items() if key not in ("from", "value")}
        role: Any = _ROLES[name]
        if name == "gpt":
            found = self._read_answer(value, where)
        else:
            found = [Message(role, self._insert_images(value) if name == "human" else (Text(value),))]
        extra = {_EXTRA: {"starts": True, **({"keys": kept} if kept else {})}}
        return [Message(role, found[0].parts, None, extra), *found[1:]]

    def _insert_images(self, value: str) -> tuple[Part, ...]:
        """Text with images in place of its markers."""
        parts: list[Part] = []
        text = ""
        for piece in re.split(f"({IMAGE})", value):
            image = next(self.images, None) if piece == IMAGE else None
            if image is None:
                text += piece
                continue
            parts += [Text(text), image] if text else [image]
            text = ""
        return (*parts, Text(text)) if text or not parts else tuple(parts)

    def _read_answer(self, value: str, where: str) -> list[Message]:
        messages: list[Message] = []
        parts: list[Part] = []
        spoken = [*_split_answer(value)]
        thinks = False
        for number, (text, found, result) in enumerate(spoken):
            last_close = max((at for at, one in enumerate(spoken) if _CLOSE in one[0]), default=-1)
            said, thinks = _read_text(text, where, thinks, is_closed=last_close > number)
            parts += said
            if found is None:
                continue
            if said and isinstance(said[-1], Reasoning) and not thinks:
                # The closer must be right before the call: otherwise its reasoning would continue after it.
                parts.append(Text(""))
            call = self._read_call(found)
            parts.append(call)
            if result is not None:
                messages += [Message("assistant", tuple(parts)), self._read_result(call, result)]
                parts = []
        return [*messages, Message("assistant", tuple(parts))] if parts or not messages else messages

    def _read_call(self, found: re.Match[str]) -> ToolCall | MalformedCall:
        call_id = f"call_{self.number}"
        self.number += 1
        if not found["close"]:
            return MalformedCall(call_id, found.group(), "truncated")
        read = _read(found["inside"], self.tools)
        if isinstance(read, str):
            return MalformedCall(call_id, found.group(), read)
        return ToolCall(call_id, *read, found.group())

    def _read_result(self, call: ToolCall | MalformedCall, found: re.Match[str]) -> Message:
        count = len(found["images"]) // len(IMAGE)
        content: list[Text | Image] = [next(self.images, None) or Text(IMAGE) for _ in range(count)]
        text = found["text"]
        if text is not None:
            content.append(Text(text))
        status: Any = "error" if (text or "").startswith("error:") else "ok"
        name = call.name if isinstance(call, ToolCall) else ""
        kept = {"images": count, **({"before": found["before"]} if found["before"] else {})}
        return Message("tool", (ToolResult(call.id, name, tuple(content), status),), None, {_EXTRA: kept})


def _split_answer(value: str) -> Iterator[tuple[str, re.Match[str] | None, re.Match[str] | None]]:
    """(text, the call after it, the result of that), up to the last text."""
    at = 0
    while found := _CALL.search(value, at):
        result = _RESULT.match(value, found.end())
        is_result = result is not None and bool(result["images"] or result["text"] is not None)
        yield value[at : found.start()], found, result if is_result else None
        at = result.end() if result is not None and is_result else found.end()
    yield value[at:], None, None


def _read_text(text: str, where: str, thinks: bool, *, is_closed: bool) -> tuple[list[Part], bool]:
    """(text and reasoning, whether reasoning is open after it). Reasoning begins only if a closer follows it, possibly
    after calls (`is_closed`)."""
    stray = _STRAY.search(text)
    if stray is not None:
        raise ConversationError(f"{where}: {stray.group()} at character {stray.start()} of a text belongs to no call")
    parts: list[Part] = []
    held = ""
    pieces = _THOUGHT.split(text)
    for at, piece in enumerate(pieces):
        if thinks and piece == _CLOSE:
            parts.append(Reasoning(held))
            held, thinks = "", False
        elif not thinks and piece == _OPEN and (is_closed or _CLOSE in pieces[at:]):
            parts += [Text(held)] if held else []
            held, thinks = "", True
        else:
            held += piece
    if thinks and (held or pieces[-2:-1] == [_OPEN]):
        parts.append(Reasoning(held))
    elif held:
        parts.append(Text(held))
    return parts, thinks


def _read(inside: str, tools: Mapping[str, ToolSpec]) -> tuple[str, str] | str:
    """The name and arguments in a written call, or why it can't be read."""
    found = _INSIDE.fullmatch(inside)
    if found is None:
        return "invalid_json" if _INSIDE.match(inside) else "no_name"
    try:
        values = json.loads(found["values"] or "[]", parse_constant=_refuse)
    except (ValueError, RecursionError):
        return "invalid_json"
    name = found["name"]
    if name not in tools:
        return name, f'{{"{UNBOUND}": {found["values"]}}}' if found["values"] else "{}"
    schema = tools[name].parameters.get("properties") or {}
    parameters = list(schema)
    if len(parameters) == 1 and found["values"] and _takes_lists(schema[parameters[0]]):
        return name, json.dumps({parameters[0]: values}, ensure_ascii=False)
    if len(values) > len(parameters):
        return "too_many_arguments"
    return name, json.dumps(dict(zip(parameters, values, strict=False)), ensure_ascii=False)


def _takes_lists(schema: Any) -> bool:
    kinds = standardize_type(schema).get("type") if isinstance(schema, Mapping) else None
    return "array" in (kinds if isinstance(kinds, list) else [kinds])


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def dump(conversation: Conversation, paths: Sequence[str] = ()) -> dict[str, Any] | list[Any]:
    """Decoded JSON from a conversation; `dump(load(data)) == data`.

    Images of users are named by `paths`, in order. A tool's image is only a marker, since the tool is run again. Raises
    `ConversationError` for what the format can't represent: text that reads as a marker, a call without positions.
    """
    writer = _Writer({m.result.call_id: m for m in conversation.messages if m.role == "tool"})
    for position, message in enumerate(conversation.messages):
        writer.add(message, f"message {position}")
    unanswered = [call_id for call_id in writer.results if call_id not in writer.written]
    if unanswered:
        raise ConversationError(f"the result for {unanswered[0]!r} follows no call")
    outer = writer.outer
    if writer.has_images and not paths and not (outer and "image" in outer):
        raise ConversationError("the Ovis format names a user's images by path; give paths")
    if outer is None:
        return writer.entries
    named = {"image": paths[0] if len(paths) == 1 else list(paths)} if paths else {}
    return {**outer, **named, "conversations": writer.entries}


@dataclass(slots=True)
class _Writer:
    """Converts messages to turns; a result is written right after its call, wherever its message is."""

    results: Mapping[str, Message]
    entries: list[dict[str, Any]] = field(default_factory=list)
    outer: dict[str, Any] | None = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    has_images: bool = False
    thinks: bool = False

    def add(self, message: Message, where: str) -> None:
        """Write one message, as a turn or at the end of the last one."""
        if message.role == "tool":
            return
        kept = message.extra.get(_EXTRA, {})
        if "conversation" in kept:
            self.outer = kept["conversation"]
        if message.role != "assistant" or kept:
            self.thinks = False
        value = "".join(
            self._write_thought(part, (*message.parts[at:], None)[0]) + self._write_part(part, message.role, where)
            for at, part in enumerate(message.parts, 1)
        )
        continues = message.role == "assistant" and not kept and self.entries and self.entries[-1]["from"] == "gpt"
        if continues:
            self.entries[-1]["value"] += value
        else:
            self.entries.append({"from": _NAMES[message.role], "value": value, **kept.get("keys", {})})

    def _write_thought(self, part: Part, after: Part | None) -> str:
        """Reasoning with its markers, or what closes it before a text. It continues after a call that follows it."""
        if isinstance(part, Reasoning):
            begun = "" if self.thinks else _OPEN
            self.thinks = isinstance(after, ToolCall | MalformedCall)
            return f"{begun}{part.text}{'' if self.thinks else _CLOSE}"
        if isinstance(part, Text) and self.thinks:
            self.thinks = False
            return _CLOSE
        return ""

    def _write_part(self, part: Part, role: str, where: str) -> str:
        if isinstance(part, Text | Reasoning) and role == "assistant":
            stray = _STRAY.search(part.text) or (isinstance(part, Reasoning) and re.search(_CLOSE, part.text))
            if stray:
                raise ConversationError(f"{where}: the text holds {stray.group()}, which the Ovis format reads itself")
            return part.text if isinstance(part, Text) else ""
        if isinstance(part, Text):
            return part.text
        if isinstance(part, Image) and role == "user":
            self.has_images = True
            return IMAGE
        if isinstance(part, ToolCall | MalformedCall) and role == "assistant":
            result = self.results.get(part.id)
            self.written.add(part.id)
            return _write_call(part, where) + ("" if result is None else _join_result_text(result, where))
        raise ConversationError(f"{where}: the Ovis format has no {type(part).__name__} in a {role} message")


def _write_call(call: ToolCall | MalformedCall, where: str) -> str:
    if isinstance(call, MalformedCall):
        if not call.raw.startswith("<tool_call>"):
            raise ConversationError(f"{where}: the malformed call {call.id!r} was not written in the Ovis format")
        return call.raw
    try:
        arguments = call.decode()
    except (ValueError, RecursionError) as error:
        raise ConversationError(f"{where}: the arguments of {call.id!r} are not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise ConversationError(f"{where}: the arguments of {call.id!r} are no object")
    values = list(arguments.values())
    # The only list argument of a tool is written as the values themselves.
    listed = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    found = _CALL.fullmatch(call.source or "")
    read = _read(found["inside"], {}) if found is not None and found["close"] else ""
    # Its original text, if that is in this format and equivalent.
    if isinstance(read, tuple) and read[0] == call.name and json.loads(read[1]).get(UNBOUND, []) in (values, listed):
        return call.source or ""
    try:
        inside = json.dumps(listed, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise ConversationError(f"{where}: the call {call.id!r} has a number that isn't finite: {error}") from error
    if _NAME.fullmatch(call.name) is None or "</tool_call>" in inside:
        raise ConversationError(f"{where}: the call {call.id!r} has a name or value that the Ovis format can't hold")
    return f"<tool_call>{call.name}{f' {inside}' if arguments else ''}</tool_call>"


def _join_result_text(message: Message, where: str) -> str:
    kept = message.extra.get(_EXTRA, {})
    content = message.result.content
    marked = kept.get("images", 0)
    images = [part for at, part in enumerate(content) if isinstance(part, Image) or at < marked]
    texts = [part.text for at, part in enumerate(content) if isinstance(part, Text) and at >= marked]
    if any("</tool_response>" in text for text in texts):
        raise ConversationError(f"{where}: a result holds </tool_response>, which would end it in the Ovis format")
    said = f"<tool_response>{chr(10).join(texts)}</tool_response>" if texts or not images else ""
    return f"{kept.get('before', '')}{IMAGE * len(images)}{said}"
