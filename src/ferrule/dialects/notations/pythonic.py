"""Calls as Python writes them: `[f(a=1), g(b="x")]`, between markers, or bare where a message begins.

A call counts once its parenthesis is closed, whether the closer of the list follows or not. A bare list is one only
where `[name(` is followed by a keyword or a parenthesis: `[see f(x)]` is text. What is written is always marked, and
always one of Python's literals and of JSON's at once where they agree (strings have double quotes).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ferrule.conversation import ToolCall
from ferrule.dialects.calls import Call, Calls, arguments_of
from ferrule.dialects.notations.endings import blank, word
from ferrule.dialects.notations.json_object import Keys, call_object
from ferrule.dialects.python_reading import PythonValue
from ferrule.dialects.stream import EndOfText, NotACall, Reading, Stream

_NAME = re.compile(r"[\w.\-]++")
_KEYWORD = re.compile(r"[\w\-]++")
_CONSTANTS = {True: "True", False: "False", None: "None"}


@dataclass(frozen=True, slots=True)
class Pythonic:
    """The notation. `is_list`: the calls stand in a list, else one a line; `is_bare`: a list needs no markers where a
    message begins. Objects of JSON in place of calls are read too."""

    open: str
    close: str
    is_list: bool = True
    is_bare: bool = False

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

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls between the markers."""
        written = (", " if self.is_list else "\n").join(_written(call) for call in calls)
        return f"{self.open}[{written}]{self.close}" if self.is_list else f"{self.open}{written}{self.close}"

    def read(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is one
        """Read a group of calls, its opener taken."""
        character = yield from stream.space()
        if character == "[":
            stream.frame(stream.at + 1)
            yield from self._list(stream, calls)
            yield from blank(stream)
            yield from stream.marker(self.close)
            return
        while not (yield from stream.marker(self.close)):
            yield from self._call(stream, calls)
            if (yield from blank(stream)) == ",":
                stream.frame(stream.at + 1)
                yield from blank(stream)
            if stream.ends_here or (stream.ended and stream.at == stream.limit):
                stream.raw = None
                return

    def first(self, stream: Stream, calls: Calls) -> Reading[bool]:
        """Read a bare list of calls, where one stands here."""
        if not self.is_bare:
            return False
        stream.try_call()
        if (yield from stream.space()) != "[":
            raise NotACall("no_call")
        stream.frame(stream.at + 1)
        if (yield from stream.space()) == "]":
            raise NotACall("no_call")
        name = yield from word(stream, _NAME)
        yield from stream.expect("(")
        character = yield from stream.space()
        key = "" if character == ")" else (yield from word(stream, _KEYWORD))
        if character != ")" and (not name or not key or (yield from stream.space()) != "="):
            raise NotACall("no_call")
        stream.keep()
        call = calls.begin(stream)
        call.named(name)
        yield from self._arguments(stream, call, key)
        yield from self._list(stream, calls, is_begun=True)
        return True

    def _list(self, stream: Stream, calls: Calls, *, is_begun: bool = False) -> Reading[None]:
        """The calls of a list and its bracket; `is_begun`: the first of them was read."""
        character = yield from (blank(stream) if is_begun else stream.space())
        while character != "]":
            if is_begun:
                yield from stream.expect(",")
                character = yield from stream.space()
            is_begun = True
            if character != "]":
                yield from self._call(stream, calls)
                character = yield from blank(stream)
            if stream.ends_here or (stream.ended and stream.at == stream.limit):
                break
        else:
            stream.frame(stream.at + 1)
        stream.raw = None

    def _call(self, stream: Stream, calls: Calls) -> Reading[None]:
        """One call: Python's, or an object of JSON."""
        character = yield from stream.space()
        call = calls.begin(stream)
        if character == "{":
            yield from call_object(stream, call, Keys())
            _finish(stream, call)
            return
        name = yield from word(stream, _NAME)
        yield from stream.expect("(", "unexpected_text" if name else "no_name")
        call.named(name)
        yield from self._arguments(stream, call, "")

    def _arguments(self, stream: Stream, call: Call, key: str) -> Reading[None]:
        """Keywords and their values up to the parenthesis; `key` was read already."""
        character = yield from stream.space()
        while character != ")":
            key = key or (yield from word(stream, _KEYWORD))
            if not key or (yield from stream.space()) != "=":
                raise EndOfText if stream.ends_here else NotACall("unexpected_text")
            stream.frame(stream.at + 1)
            call.key(key)
            key = ""
            yield from PythonValue(stream, call.fragment, call.wait).read()
            character = yield from stream.space()
            if character == ",":
                stream.frame(stream.at + 1)
                character = yield from stream.space()
            elif character != ")":
                raise EndOfText if stream.ends_here else NotACall("not_a_literal")
        stream.frame(stream.at + 1)
        call.close_object()
        _finish(stream, call)


def _finish(stream: Stream, call: Call) -> None:
    call.finish()
    # What stands between two calls is kept, for the case that no call follows.
    stream.raw = StringIO()


def _written(call: ToolCall) -> str:
    arguments = json.loads(arguments_of(call))
    return f"{call.name}({', '.join(f'{key}={_literal(value)}' for key, value in arguments.items())})"


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    return json.dumps(value, ensure_ascii=False)
