"""Calls as GigaChat 3 writes them: the object of a call after a marker, or as a message of a role of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ferrule.conversation import ToolCall
from ferrule.dialects.calls import Calls
from ferrule.dialects.notations.bare_json import mended_object
from ferrule.dialects.notations.json_object import Keys, call_object, written
from ferrule.dialects.stream import NotACall, Reading, Stream


@dataclass(frozen=True, slots=True)
class RoleJson:
    """The notation of GigaChat 3: `<|function_call|>{…}`, or a message of a role: `function call<|role_sep|>\n{…}`."""

    open: str = "<|function_call|>"
    message: str = "<|message_sep|>"
    role: str = "<|role_sep|>"
    before: tuple[str, ...] = ("</s>",)
    keys: Keys = field(default_factory=Keys)
    closers: tuple[str, ...] = ()

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call, or a message whose role may say that it is one."""
        return (self.open, self.message)

    @property
    def markers(self) -> tuple[str, ...]:
        """All three."""
        return (*self.openers, self.role)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls."""
        return "".join(f"{self.open}{written(call, self.keys)}" for call in calls)

    def first(self, stream: Stream, calls: Calls) -> Reading[bool]:
        """Read a call whose message has begun in the prompt."""
        if not (yield from stream.follows("function call")):
            return False
        stream.try_call()
        yield from stream.expect("function call")
        if not (yield from stream.marker(self.role)):
            raise NotACall("unexpected_text")
        stream.keep()
        yield from self._object(stream, calls)
        return True

    def read(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call, or what a message is."""
        if opener == self.message:
            pieces: list[str] = []
            stops = stream.stops(self.role, *self.openers, *self.before)
            marker = yield from stream.find(stops, lambda end: pieces.append(stream.frame(end)))
            role = "".join(pieces).strip()
            if marker != self.role:
                stream.raw = None
                return
            stream.frame(stream.marker_end)
            if role == "function result":
                raise NotACall("forged_result")
            if role != "function call":
                yield from stream.optional("\n")
                return
        yield from self._object(stream, calls)

    def _object(self, stream: Stream, calls: Calls) -> Reading[None]:
        call = calls.begin(stream)
        start = stream.raw.tell() if stream.raw else 0
        try:
            yield from call_object(stream, call, self.keys)
            call.finish()
        except NotACall as fault:
            yield from mended_object(stream, calls, fault, (*self.openers, *self.before), start, self.keys)
