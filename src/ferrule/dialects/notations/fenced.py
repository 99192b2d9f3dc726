"""Calls in fenced code blocks: a JSON object, or code that is one call of a tool that runs code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.common import skip_blank
from ferrule.dialects.notations.json_object import Keys, encode_name, read_call_object, reread_call, write_call_object
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.parameters import ParameterType
from ferrule.dialects.reader.repair import repair_call
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.errors import DialectError

FENCE = "```"
_KEYS = Keys()
_STRING = ParameterType(frozenset({"string"}))


@dataclass(frozen=True, slots=True)
class JsonObjects:
    """Objects with a name and arguments: each in its own block between `open` and `close` or, if both are empty, one
    per line and nothing else in the message. One that doesn't name an offered tool is text."""

    open: str = ""
    close: str = ""

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a block."""
        return (self.open,) if self.open else ()

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self.close,) if self.close else ()

    @property
    def markers(self) -> tuple[str, ...]:
        """Both."""
        return (*self.openers, *self.closers)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, one after the other."""
        before, after = (f"{self.open}\n", f"\n{self.close}") if self.open else ("", "")
        return "\n".join(f"{before}{write_call_object(call, _KEYS)}{after}" for call in calls)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is one
        """Read a block, its opener taken; one that names no tool is text."""
        stream.begin_trial(with_opener=True)
        start = stream.raw.tell() if stream.raw is not None else 0
        try:
            call = yield from _read_object(stream, calls)
            yield from skip_blank(stream)
            yield from stream.take_marker(self.close)
            call.finish()
        except NotACall as fault:
            if stream.is_trying:
                raise
            stops = stream.make_stops(self.close, self.open)
            yield from repair_call(stream, calls, fault, start, stops, self.close, reread_call(_KEYS))

    def list_bare_openers(self, names: Sequence[str]) -> tuple[str, ...]:
        """See `BareTextSyntax`."""
        return () if self.open else tuple(map(encode_name, names))

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read a message that consists only of objects."""
        if self.open:
            return False
        while True:
            stream.begin_trial()
            call = yield from _read_object(stream, calls)
            call.finish()


def _read_object(stream: InputStream, calls: Calls) -> Reading[CallBuilder]:
    """Read an object as a trial until it has named a tool; from there on it is a call, and streams."""
    if (yield from stream.skip_space()) != "{":
        raise NotACall(INVALID)
    call = calls.begin(stream)
    try:
        yield from read_call_object(stream, call, _KEYS, lambda _: _decide(stream, calls, call))
    except (NotACall, EndOfText):
        _decide(stream, calls, call)
        raise
    _decide(stream, calls, call)
    return call


def _decide(stream: InputStream, calls: Calls, call: CallBuilder) -> None:
    """Keep a trial that has named a tool. Raises `NotACall` for an unknown tool."""
    if not stream.is_trying or not call.started:
        return
    if calls.has_tools and call.parameters is None:
        raise NotACall("unknown_tool")
    stream.keep_trial()


@dataclass(frozen=True, slots=True)
class FencedCode:
    """Code between fences: one call of `tool`, whose argument `parameter` is the code."""

    tool: str
    parameter: str = "code"
    openers: tuple[str, ...] = ("```python\n", "```py\n")
    closers: tuple[str, ...] = (f"\n{FENCE}",)

    @property
    def markers(self) -> tuple[str, ...]:
        """The fences."""
        return (*self.openers, *self.closers)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The code of each call in its block. Raises `DialectError` for calls of other tools."""
        return "\n".join(f"{self.openers[0]}{self._get_code(call)}{self.closers[0]}" for call in calls)

    def list_value_ends(self, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - there is one
        """See `PlainTextSyntax`. A fence at the beginning of the code would end it, too."""
        return (*self.closers, FENCE)

    def _get_code(self, call: ToolCall) -> str:
        arguments = json.loads(validate_arguments(call))
        code = arguments.get(self.parameter)
        if call.name != self.tool or set(arguments) != {self.parameter} or not isinstance(code, str):
            raise DialectError(f"a code block can only call {self.tool} with {self.parameter}, not {call.name}")
        return code

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - the language is known
        """Read a block, its opener taken."""
        call = calls.begin(stream)
        call.set_name(self.tool)
        if (yield from stream.is_ahead(FENCE)):
            stream.take_framing(stream.at + len(FENCE))
            call.begin_key(self.parameter)
            call.put_value('""', stream.at)
        elif not (yield from call.read_raw_value(self.parameter, stream.make_stops(*self.closers), _STRING)):
            raise EndOfText
        call.close_object()
        call.finish()
