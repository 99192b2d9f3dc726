"""Calls in Python syntax: `[f(a=1), g(b="x")]`, between markers, or bare at the beginning of a message.

A call counts once its parenthesis is closed and something follows, possibly the end of the turn; the list's closer may
be missing. JSON objects in place of calls are repaired. A bare list counts only if `[name(` is followed by a keyword or
a parenthesis (`[see f(x)]` is text), and a call in it only with the comma or bracket after it. Written calls are always
marked; by default their literals are valid both in Python and in JSON if possible (strings have double quotes).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.bare_json import BareJson
from ferrule.dialects.notations.common import read_word, skip_blank
from ferrule.dialects.notations.json_array import JsonArray
from ferrule.dialects.notations.json_object import Keys, encode_name, read_call_object
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.python import PythonValue
from ferrule.dialects.reader.repair import JSON_CALL, JSON_LIST, PYTHON_CALL
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_NAME = re.compile(r"[\w.\-]++")
_KEYWORD = re.compile(r"[\w\-]++")
_CONSTANTS = {True: "True", False: "False", None: "None"}


@dataclass(frozen=True, slots=True)
class Pythonic:
    """The notation. `is_list`: the calls are in a list, otherwise one per line; `is_bare`: a list needs no markers at
    the beginning of a message. `literal` writes a value."""

    open: str
    close: str
    is_list: bool = True
    is_bare: bool = False
    literal: Callable[[Any], str] = field(default_factory=lambda: write_literal, compare=False)

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a group of calls."""
        return (self.open,)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self.close,)

    @property
    def markers(self) -> tuple[str, ...]:
        """Both."""
        return (self.open, self.close)

    @property
    def punctuation(self) -> tuple[str, ...]:
        """The brackets and commas of a list."""
        return ("[", ",", "]")

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls between the markers."""
        written = (", " if self.is_list else "\n").join(write_python_call(call, self.literal) for call in calls)
        return f"{self.open}[{written}]{self.close}" if self.is_list else f"{self.open}{written}{self.close}"

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is one
        """Read a group of calls, its opener taken."""
        character = yield from stream.skip_space()
        if character == "[":
            stream.take_framing(stream.at + 1)
            yield from self._read_list(stream, calls)
            yield from skip_blank(stream)
            yield from stream.take_marker(self.close)
            return
        while not (yield from stream.take_marker(self.close)):
            yield from self._read_call(stream, calls)
            if (yield from skip_blank(stream)) == ",":
                stream.take_framing(stream.at + 1)
                yield from skip_blank(stream)
            if stream.is_at_turn_end or (stream.ended and stream.at == stream.limit):
                stream.raw = None
                return

    @property
    def beginnings(self) -> tuple[str, ...]:
        """What calls after text begin with: see `LateCallSyntax`."""
        return ("{", "[") if self.is_bare else ()

    @property
    def native_form(self) -> str:
        """Calls in Python."""
        return PYTHON_CALL

    def list_bare_openers(self, names: Sequence[str]) -> tuple[str, ...]:
        """See `BareTextSyntax`."""
        return (*map(encode_name, names), *(f"{name}(" for name in names)) if self.is_bare else ()

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read a bare list of calls, if there is one here; or one in JSON, which is repaired."""
        if not self.is_bare:
            return False
        stream.begin_trial()
        character = yield from stream.skip_space()
        if character == "{" and calls.repair:
            yield from BareJson(self.open, repair=JSON_CALL).read_tried(stream, calls)
            return True
        if character != "[":
            raise NotACall("no_call")
        stream.take_framing(stream.at + 1)
        if (yield from stream.skip_space()) == "{" and calls.repair:
            yield from JsonArray("[", repair=JSON_LIST).read(stream, calls, "[")
        else:
            yield from self.read_list(stream, calls)
        return True

    def read_list(self, stream: InputStream, calls: Calls, repair: str = "") -> Reading[None]:
        """Read a bare list after its bracket: see `BareList`."""
        if (yield from stream.skip_space()) == "]":
            raise NotACall("no_call")
        name = yield from read_word(stream, _NAME)
        if repair and calls.get_parameters(name) is None:
            raise NotACall("unknown_tool")
        yield from stream.expect("(")
        character = yield from stream.skip_space()
        key = "" if character == ")" else (yield from read_word(stream, _KEYWORD))
        if character != ")" and (not name or not key or (yield from stream.skip_space()) != "="):
            raise NotACall("no_call")
        stream.keep_trial()
        call = calls.begin(stream)
        call.set_name(name)
        yield from self._read_arguments(stream, call, key)
        yield from self._finish_call(stream, call, is_bare=True, repair=repair)
        yield from self._read_list(stream, calls, is_bare=True, repair=repair)

    def _read_list(
        self, stream: InputStream, calls: Calls, *, is_bare: bool = False, repair: str = ""
    ) -> Reading[None]:
        """Read the calls of a list and its bracket; of a bare one, the first was already read."""
        is_begun = is_bare
        character = yield from (skip_blank(stream) if is_begun else stream.skip_space())
        while character != "]":
            if is_begun:
                yield from stream.expect(",")
                character = yield from stream.skip_space()
            is_begun = True
            if character != "]":
                yield from self._read_call(stream, calls, is_bare=is_bare, repair=repair)
                character = yield from skip_blank(stream)
            if stream.is_at_turn_end or (stream.ended and stream.at == stream.limit):
                break
        else:
            stream.take_framing(stream.at + 1)
        stream.raw = None

    def _read_call(
        self, stream: InputStream, calls: Calls, *, is_bare: bool = False, repair: str = ""
    ) -> Reading[None]:
        """Read one call: Python's, or a JSON object."""
        character = yield from stream.skip_space()
        call = calls.begin(stream)
        if character == "{":
            yield from read_call_object(stream, call, Keys())
            yield from self._finish_call(stream, call, is_bare=is_bare, repair=JSON_CALL)
            return
        name = yield from read_word(stream, _NAME)
        yield from stream.expect("(", "unexpected_text" if name else "no_name")
        call.set_name(name)
        yield from self._read_arguments(stream, call, "")
        yield from self._finish_call(stream, call, is_bare=is_bare, repair=repair)

    def _finish_call(self, stream: InputStream, call: CallBuilder, *, is_bare: bool, repair: str = "") -> Reading[None]:
        """Finish a call once it is known that the text was not cut off after it, and note a repair.

        In a bare list a comma or the bracket must follow: nothing else distinguishes it from prose, `[f(a=1) would
        do]`.
        """
        character = yield from skip_blank(stream)
        if stream.is_cut or (is_bare and not character):
            raise EndOfText
        # Likewise after a call whose quotes were repaired, since another repair may have been the right one.
        if (is_bare or (self.is_list and call.is_repaired)) and character and character not in ",]":
            raise NotACall("unexpected_text")
        call.finish((repair,) if repair else ())
        # The text between two calls is kept in case no call follows.
        stream.raw = StringIO()

    def _read_arguments(self, stream: InputStream, call: CallBuilder, key: str) -> Reading[None]:
        """Read keywords and their values up to the parenthesis; `key` was already read."""
        character = yield from stream.skip_space()
        while character != ")":
            key = key or (yield from read_word(stream, _KEYWORD))
            if not key or (yield from stream.skip_space()) != "=":
                raise EndOfText if stream.is_at_turn_end else NotACall("unexpected_text")
            stream.take_framing(stream.at + 1)
            is_string = call.begin_key(key).is_string
            key = ""
            note = call.note_repair if call.can_repair else None
            value = PythonValue(stream, call.put_fragment, call.hold, note, is_string=is_string, close=self.close)
            yield from value.read()
            character = yield from stream.skip_space()
            if character == ",":
                stream.take_framing(stream.at + 1)
                character = yield from stream.skip_space()
            elif character != ")":
                raise EndOfText if stream.is_at_turn_end else NotACall("not_a_literal")
        stream.take_framing(stream.at + 1)
        call.close_object()


def write_literal(value: Any) -> str:
    """A value as a literal that is valid in Python, and in JSON if possible: strings have double quotes."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {write_literal(v)}" for k, v in value.items()) + "}"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(write_literal, value))}]"
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    return json.dumps(value, ensure_ascii=False)


def write_quoted(value: Any) -> str:
    """A value as LFM 2's template writes it: strings in single quotes, objects and lists as JSON."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else write_literal(value)


def write_quoted_list(value: Any) -> str:
    """Like `write_quoted`, but a list is written as Python does."""
    return repr(value) if isinstance(value, list) else write_quoted(value)


def write_python_call(call: ToolCall, literal: Callable[[Any], str] = write_literal) -> str:
    """`f(a=1, b="x")`; `literal` writes the values. Raises `DialectError` for arguments that aren't a JSON object."""
    return write_keyword_call(call.name, json.loads(validate_arguments(call)), literal)


def write_keyword_call(name: str, arguments: Mapping[str, Any], literal: Callable[[Any], str] = write_literal) -> str:
    """`f(a=1, b="x")`; `literal` writes the values."""
    return f"{name}({', '.join(f'{key}={literal(value)}' for key, value in arguments.items())})"
