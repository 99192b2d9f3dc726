"""Calls as one JSON object between two markers: `<tool_call>{"name": "f", "arguments": {…}}</tool_call>`.

A complete call counts even if its closer is missing, and a closer inside a JSON string is part of that string.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ferrule.conversation import ToolCall
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.json import INVALID, read_json_value, read_json_word
from ferrule.dialects.reader.repair import EMPTY_ARGUMENTS, RepairedCall, Reread, repair_call, repair_json
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_NOTHING = frozenset({"", "[]", "null"})
_BESIDE_NAME = frozenset({"type", "id", "index", "tool_call_id"})


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a call's object; the first of each is the one written."""

    name: tuple[str, ...] = ("name",)
    arguments: tuple[str, ...] = ("arguments", "parameters")
    identifier: tuple[str, ...] = ("id",)


@dataclass(frozen=True, slots=True)
class JsonObject:
    """The notation. `inner` and `tail` are the white space before and after the object (`tail` defaults to `inner`);
    `before` are markers that can't be inside a call: they end one whose closer is missing. `tag` is a second marker
    after the opener, and `between` separates calls. If `close` is empty, a call ends with its object. `repair` is noted
    for each call, where a model writes this in place of its own notation."""

    open: str
    close: str
    inner: str = "\n"
    before: tuple[str, ...] = ()
    keys: Keys = field(default_factory=Keys)
    tag: str = ""
    tail: str | None = None
    between: str = "\n"
    repair: str = ""
    escapes_values: ClassVar[bool] = True

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call."""
        return (self.open,)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self.close,) if self.close else ()

    @property
    def markers(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(marker for marker in (self.open, self.tag, self.close) if marker)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each between its markers."""
        before = f"{self.open}{self.tag}{self.inner}"
        after = f"{self.inner if self.tail is None else self.tail}{self.close}" if self.close else ""
        return self.between.join(f"{before}{write_call_object(call, self.keys)}{after}" for call in calls)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call, its opener taken."""
        call = calls.begin(stream, self.repair)
        start = len(opener)
        if self.tag:
            yield from stream.skip_space()
            if not (yield from stream.take_marker(self.tag)):
                raise NotACall("unexpected_text")
            start = stream.raw.tell() if stream.raw else 0
        try:
            yield from read_call_object(stream, call, self.keys)
            yield from self._read_end(stream, call)
        except NotACall as fault:
            stops = stream.make_stops(*self.closers, *self.openers, *self.before)
            yield from repair_call(stream, calls, fault, start, stops, self.close, reread_call(self.keys))

    def _read_end(self, stream: InputStream, call: CallBuilder) -> Reading[None]:
        """Read what follows a complete object: the closer, or at least nothing that belongs to the call."""
        if not self.close:
            call.finish()
            return
        stops = stream.make_stops(self.close, *self.openers, *self.before)
        rest: list[str] = []
        marker = yield from stream.scan(stops, lambda end: rest.append(stream.take_framing(end)))
        left_over = "".join(rest).strip()
        if left_over and (marker or not self.close.startswith(left_over)):
            raise NotACall(INVALID)
        if marker == self.close:
            stream.take_framing(stream.marker_end)
        call.finish()


def read_call_object(
    stream: InputStream, call: CallBuilder, keys: Keys, met: Callable[[str], object] = lambda _: None
) -> Reading[None]:
    """Read the object of a call: its name, arguments and anything else. Raises `NotACall`, `EndOfText`.

    `met` is called with each key before its value is read: this may already decide whether it is a call.
    """
    seen: set[str] = set()
    if (yield from stream.skip_space()) != "{":
        raise NotACall(INVALID)
    stream.take_framing(stream.at + 1)
    character = yield from stream.skip_space()
    while character != "}":
        if character != '"':
            raise NotACall(INVALID)
        key = yield from read_json_word(stream)
        yield from _take_punctuation(stream, ":")
        met(key)
        yield from _read_member(stream, call, keys, key, seen)
        character = yield from stream.skip_space()
        if character == ",":
            stream.take_framing(stream.at + 1)
            if (character := (yield from stream.skip_space())) == "}":
                raise NotACall(INVALID)
        elif character != "}":
            raise NotACall(INVALID)
    stream.take_framing(stream.at + 1)
    if not call.started:
        raise NotACall("no_name")
    _check_left_out(call, keys, seen)


def _check_left_out(call: CallBuilder, keys: Keys, seen: set[str]) -> None:
    """Raise `NotACall` if an argument stands beside the name, where it would be left out of the call."""
    beside = seen - {"name", "arguments", *keys.identifier, *_BESIDE_NAME}
    if call.parameters is not None:
        beside &= set(call.parameters.names)
    elif "arguments" in seen:
        return
    if beside:
        raise NotACall("arguments_outside")


def _read_member(stream: InputStream, call: CallBuilder, keys: Keys, key: str, seen: set[str]) -> Reading[None]:
    """Read the value of one key of the object."""
    meaning = "name" if key in keys.name else "arguments" if key in keys.arguments else key
    if meaning in seen:
        # A repeated key would have been shown with one value and run with the other.
        raise NotACall("repeated_key")
    seen.add(meaning)
    character = yield from stream.skip_space()
    if meaning == "name" and character == '"':
        call.set_name((yield from read_json_word(stream)))
    elif meaning == "arguments":
        yield from read_arguments(stream, call, character)
    elif key in keys.identifier and character == '"':
        call.native_id = yield from read_json_word(stream)
    else:
        yield from read_json_value(stream, lambda _, end: stream.take_framing(end))


def read_arguments(stream: InputStream, call: CallBuilder, character: str) -> Reading[None]:
    """Read the arguments, whose first character is ahead: an object, null for none, or an object in a string. An empty
    string or list for none is repaired."""
    if character == "{":
        yield from read_json_value(stream, call.put, call.hold, call.note_first_key)
    elif character == '"':
        text = yield from read_json_word(stream)
        if isinstance(_decode(text), dict):
            call.put(text, stream.at)
        else:
            note_empty_arguments(call, text)
    else:
        pieces: list[str] = []

        def keep(fragment: str, end: int) -> None:
            pieces.append(fragment)
            stream.take_framing(end)

        yield from read_json_value(stream, keep)
        written = "".join(pieces)
        if written != "null":
            note_empty_arguments(call, written)


def note_empty_arguments(call: CallBuilder, written: str) -> None:
    """Note that nothing, or an empty list, was written for no arguments. Raises `NotACall` for anything else, and if
    the tool's schema requires arguments."""
    is_accepted = call.parameters is None or call.parameters.accepts({})
    if "".join(written.split()) not in _NOTHING or not call.can_repair or not is_accepted:
        raise NotACall("arguments_not_an_object")
    call.note_repair(EMPTY_ARGUMENTS)


def reread_call(keys: Keys) -> Reread:
    """`Reread` for a body that consists only of the call's object."""

    def reread(body: str) -> RepairedCall | None:
        found = repair_json(body.strip())
        return parse_call_object(found[0], keys, found[1]) if found else None

    return reread


def parse_call_object(text: str, keys: Keys, repairs: tuple[str, ...] = ()) -> RepairedCall | None:
    """The call in a complete JSON object; None if it is not one."""
    stream = InputStream(text)
    stream.ended = True
    calls = Calls(())
    call = calls.begin(stream)
    try:
        for _ in read_call_object(stream, call, keys):
            pass
    except (NotACall, EndOfText):
        return None
    return RepairedCall(call.name, call.arguments or "{}", repairs, call.native_id)


def _take_punctuation(stream: InputStream, character: str) -> Reading[None]:
    if (yield from stream.skip_space()) != character:
        raise NotACall(INVALID)
    stream.take_framing(stream.at + 1)


def _decode(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def encode_name(name: str) -> str:
    """A tool's name as a call in JSON has it."""
    return json.dumps(name, ensure_ascii=False)


def write_call_object(call: ToolCall, keys: Keys) -> str:
    """The object of a call. Raises `DialectError` if its arguments are not JSON."""
    return f'{{"{keys.name[0]}": {encode_name(call.name)}, "{keys.arguments[0]}": {validate_arguments(call)}}}'
