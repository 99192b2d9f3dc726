"""Calls as JSON objects that nothing closes: `<|python_tag|>{"name": "f", "parameters": {…}}; {…}`.

Where a message begins with such an object, only its keys tell a call from an answer in JSON: it is a call once
arguments follow the name of a tool that was offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ferrule.conversation import ToolCall
from ferrule.dialects.calls import Call, Calls
from ferrule.dialects.json_reading import INVALID
from ferrule.dialects.mending import mended
from ferrule.dialects.notations.json_object import Keys, call_object, reread_call, written
from ferrule.dialects.stream import EndOfText, NotACall, Reading, Stream


@dataclass(frozen=True, slots=True)
class BareJson:
    """The notation of Llama 3. `before` are markers that can't be inside of a call."""

    open: str
    separator: str = ";"
    before: tuple[str, ...] = ()
    keys: Keys = field(default_factory=lambda: Keys(arguments=("parameters", "arguments")))
    closers: tuple[str, ...] = ()

    @property
    def openers(self) -> tuple[str, ...]:
        """The marker that may stand before a call, or before code."""
        return (self.open,)

    @property
    def markers(self) -> tuple[str, ...]:
        """The same."""
        return (self.open,)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The objects, without the marker: the families' templates write them so."""
        return f"{self.separator} ".join(written(call, self.keys) for call in calls)

    def read(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:
        """Read what follows the marker: a call, and the calls after it."""
        call = calls.begin(stream)
        try:
            yield from call_object(stream, call, self.keys)
            call.finish()
        except NotACall as fault:
            yield from mended_object(stream, calls, fault, (*self.openers, *self.before), len(opener), self.keys)
        yield from self._more(stream, calls)

    def first(self, stream: Stream, calls: Calls) -> Reading[bool]:
        """Read a call that a message begins with, and those after it."""
        stream.try_call()
        yield from self._tried(stream, calls)
        yield from self._more(stream, calls)
        return True

    def _more(self, stream: Stream, calls: Calls) -> Reading[None]:
        while True:
            stream.try_call()
            if (yield from stream.space()) == self.separator:
                stream.frame(stream.at + 1)
            yield from self._tried(stream, calls)

    def _tried(self, stream: Stream, calls: Calls) -> Reading[None]:
        """A call, if one stands here; else `NotACall` while the stream is still trying."""
        if (yield from stream.space()) != "{":
            raise NotACall(INVALID)
        start = stream.raw.tell() if stream.raw else 0
        call = calls.begin(stream)

        def met(key: str) -> None:
            if stream.is_trying and key not in (*self.keys.name, *self.keys.arguments, *self.keys.identifier, "type"):
                raise NotACall("unexpected_text")
            if call.started and key in self.keys.arguments:
                self._settle(stream, calls, call)

        try:
            yield from call_object(stream, call, self.keys, met)
            if stream.is_trying and not call.arguments:
                raise NotACall("no_arguments")
            self._settle(stream, calls, call)
            call.finish()
        except EndOfText:
            if stream.is_trying:
                calls.current = None
            raise
        except NotACall as fault:
            if stream.is_trying:
                calls.current = None
                raise
            yield from mended_object(stream, calls, fault, (*self.openers, *self.before), start, self.keys)

    def _settle(self, stream: Stream, calls: Calls, call: Call) -> None:
        """It has a name and arguments: it is a call, where it is one of a tool that was offered."""
        if stream.is_trying and calls.offers_any and call.parameters is None:
            raise NotACall("unknown_tool")
        stream.keep()


def mended_object(
    stream: Stream, calls: Calls, fault: NotACall, stops: tuple[str, ...], start: int, keys: Keys
) -> Reading[None]:
    """As `mended`, for an object without a closer."""
    yield from mended(stream, calls, fault, start, stream.stops(*stops), "", reread_call(keys))
