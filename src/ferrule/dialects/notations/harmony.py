"""Messages that name their channel and whom they are for, as gpt-oss writes them.

`<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>`. One turn holds several such
messages: `analysis` is reasoning, what is for a tool is a call whatever its channel, the rest is text. A message of
another role, or for the assistant, is a result that the model made up. What stands outside of any message is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.calls import Calls, arguments_of
from ferrule.dialects.json_reading import INVALID
from ferrule.dialects.mending import mended, reread_arguments
from ferrule.dialects.notations.json_object import arguments_value
from ferrule.dialects.stream import EndOfText, NotACall, Reading, Stream

_LONGEST_HEADER = 300
_ROLE = re.compile(r"^<\|start\|>\s*(?!to=)([^\s<]+)")
_RECIPIENT = re.compile(r"\bto=(\S+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


@dataclass(frozen=True, slots=True)
class Harmony:
    """The notation of gpt-oss."""

    start: str = "<|start|>"
    channel: str = "<|channel|>"
    constrain: str = "<|constrain|>"
    message: str = "<|message|>"
    call: str = "<|call|>"
    ends: tuple[str, ...] = ("<|end|>", "<|return|>")

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a message, or its header."""
        return (self.start, self.channel)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self.call, *self.ends)

    @property
    def markers(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.openers, self.constrain, self.message, *self.closers)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each a message of its own."""
        return f"{self.start}assistant".join(self._written(call) for call in calls)

    def _written(self, call: ToolCall) -> str:
        head = f"{self.channel}commentary to=functions.{call.name} {self.constrain}json{self.message}"
        return f"{head}{arguments_of(call)}{self.call}"

    def first(self, stream: Stream, calls: Calls) -> Reading[bool]:
        """Read a message whose header begins with its recipient, the prompt having ended with the role."""
        if not (yield from stream.follows(" to=")):
            return False
        stream.try_call()
        yield from self._message(stream, calls, "")
        return True

    def read(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:
        """Read a message."""
        yield from self._message(stream, calls, opener)

    def _message(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:
        header, is_whole = yield from self._header(stream, opener)
        recipient = _found(_RECIPIENT, header)
        is_thought = _found(_CHANNEL, header) == "analysis"
        if not is_whole:
            if recipient or stream.is_trying:
                raise NotACall("unexpected_text")
            stream.raw = None
            return
        stream.keep()
        if _found(_ROLE, header) not in ("", "assistant") or (recipient == "assistant" and not is_thought):
            yield from self._forged(stream, calls)
        elif recipient not in ("", "assistant", "all", "user"):
            yield from self._call(stream, calls, recipient.removeprefix("functions."))
        else:
            stream.raw = None
            stops = stream.stops(*self.openers, *self.closers)
            yield from stream.find(stops, stream.think if is_thought else stream.say)

    def _header(self, stream: Stream, opener: str) -> Reading[tuple[str, bool]]:
        """What stands before a message's text; whether that follows. Raises `EndOfText` where a call is cut off."""
        pieces = [opener]
        stops = stream.stops(self.channel, self.constrain, self.message, self.start, *self.closers)
        length = 0

        def keep(end: int) -> None:
            nonlocal length
            length += end - stream.at
            if length > _LONGEST_HEADER:
                raise NotACall("unexpected_text")
            pieces.append(stream.frame(end))

        while True:
            marker = yield from stream.find(stops, keep)
            if not marker and _RECIPIENT.search("".join(pieces)):
                raise EndOfText
            if marker not in (self.channel, self.constrain, self.message):
                return "".join(pieces), False
            # A space, since a recipient may stand right before a marker.
            pieces += (" ", stream.frame(stream.marker_end))
            if marker == self.message:
                return "".join(pieces), True

    def _forged(self, stream: Stream, calls: Calls) -> Reading[None]:
        call = calls.begin(stream)
        marker = yield from stream.find(stream.stops(self.start, *self.closers), stream.frame)
        if marker in self.closers:
            stream.frame(stream.marker_end)
        call.fail("forged_result")

    def _call(self, stream: Stream, calls: Calls, name: str) -> Reading[None]:
        call = calls.begin(stream)
        call.named(name)
        start = stream.raw.tell() if stream.raw else 0
        stops = stream.stops(*self.openers, *self.closers)
        try:
            yield from stream.space()
            if (yield from stream.marker(self.call)):
                call.finish()
                return
            yield from arguments_value(stream, call, (yield from stream.space()))
            rest: list[str] = []
            marker = yield from stream.find(stops, lambda end: rest.append(stream.frame(end)))
            if "".join(rest).strip() and (marker or not self.call.startswith("".join(rest).strip())):
                raise NotACall(INVALID)
            if marker in self.closers:
                stream.frame(stream.marker_end)
            call.finish()
        except NotACall as fault:
            yield from mended(stream, calls, fault, start, stops, self.call, reread_arguments)


def _found(pattern: re.Pattern[str], header: str) -> str:
    """The last thing in a header that a pattern finds; empty where there is none."""
    found = pattern.findall(header)
    return str(found[-1]) if found else ""
