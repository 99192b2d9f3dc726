"""Calls as JSON objects without a closer: `<|python_tag|>{"name": "f", "parameters": {…}}; {…}`.

If a message begins with such an object, only its keys distinguish a call from an answer in JSON: it is a call once
arguments follow the name of a tool that was offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.json_object import Keys, read_call_object, reread_call, write_call_object
from ferrule.dialects.reader.calls import CallBuilder, Calls
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.repair import repair_call
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading


@dataclass(frozen=True, slots=True)
class BareJson:
    """The notation of Llama 3. `before` are markers that can't be inside a call."""

    open: str
    separator: str = ";"
    before: tuple[str, ...] = ()
    keys: Keys = field(default_factory=lambda: Keys(arguments=("parameters", "arguments")))
    closers: tuple[str, ...] = ()

    @property
    def openers(self) -> tuple[str, ...]:
        """The marker that may precede a call, or code."""
        return (self.open,)

    @property
    def markers(self) -> tuple[str, ...]:
        """The same."""
        return (self.open,)

    @property
    def punctuation(self) -> tuple[str, ...]:
        """The text between objects."""
        return (self.separator,)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The objects without the marker, as the families' templates write them."""
        return f"{self.separator} ".join(write_call_object(call, self.keys) for call in calls)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read the text after the marker: a call, and the calls after it."""
        call = calls.begin(stream)
        try:
            yield from read_call_object(stream, call, self.keys)
            call.finish()
        except NotACall as fault:
            yield from repair_object(stream, calls, fault, (*self.openers, *self.before), len(opener), self.keys)
        yield from self._read_more(stream, calls)

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read a call at the beginning of a message, and those after it."""
        stream.begin_trial()
        yield from self._try_call(stream, calls)
        yield from self._read_more(stream, calls)
        return True

    def _read_more(self, stream: InputStream, calls: Calls) -> Reading[None]:
        while True:
            stream.begin_trial()
            if (yield from stream.skip_space()) == self.separator:
                stream.take_framing(stream.at + 1)
            yield from self._try_call(stream, calls)

    def _try_call(self, stream: InputStream, calls: Calls) -> Reading[None]:
        """Read a call, if there is one here; otherwise raises `NotACall` while the trial is still open."""
        if (yield from stream.skip_space()) != "{":
            raise NotACall(INVALID)
        start = stream.raw.tell() if stream.raw else 0
        call = calls.begin(stream)

        def check_key(key: str) -> None:
            if stream.is_trying and key not in (*self.keys.name, *self.keys.arguments, *self.keys.identifier, "type"):
                raise NotACall("unexpected_text")
            if call.started and key in self.keys.arguments:
                self._settle(stream, calls, call)

        try:
            yield from read_call_object(stream, call, self.keys, check_key)
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
            yield from repair_object(stream, calls, fault, (*self.openers, *self.before), start, self.keys)

    def _settle(self, stream: InputStream, calls: Calls, call: CallBuilder) -> None:
        """Accept it as a call once it has a name and arguments, if its tool was offered."""
        if stream.is_trying and calls.has_tools and call.parameters is None:
            raise NotACall("unknown_tool")
        stream.keep_trial()


def repair_object(
    stream: InputStream, calls: Calls, fault: NotACall, stops: tuple[str, ...], start: int, keys: Keys
) -> Reading[None]:
    """Like `repair_call`, for an object without a closer."""
    yield from repair_call(stream, calls, fault, start, stream.make_stops(*stops), "", reread_call(keys))
