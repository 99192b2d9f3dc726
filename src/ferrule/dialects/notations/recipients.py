"""Turns that say whom they are for, ` to=NAME<|message|>`: the model itself, the user, or a tool. Muse.

What a turn for a tool holds are calls; in the others the same text is reasoning, or an answer, and is never run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.calls import Calls
from ferrule.dialects.notations.endings import word
from ferrule.dialects.notations.invoke import Invokes
from ferrule.dialects.stream import NotACall, Reading, Stream

_NAME = re.compile(r"[\w.:/-]++")


@dataclass(frozen=True, slots=True)
class Recipients:
    """The notation: `calls` are what stands in a turn for a tool."""

    calls: Invokes
    start: str = "<|start|>assistant"
    to: str = " to="
    message: str = "<|message|>"
    ends: tuple[str, ...] = ("<|eom|>", "<|eot|>")
    thought: str = "self"
    answer: str = "user"

    @property
    def markers(self) -> tuple[str, ...]:
        """Those of turns, and those of calls."""
        return (*self.openers, self.message, *self.ends, *self.calls.markers)

    @property
    def openers(self) -> tuple[str, ...]:
        """A turn that begins after another."""
        return (f"{self.start}{self.to}",)

    @property
    def closers(self) -> tuple[str, ...]:
        """The end of a section of calls."""
        return self.calls.closers

    def first(self, stream: Stream, calls: Calls) -> Reading[bool]:
        """Read a turn whose beginning stands in the prompt."""
        if not (yield from stream.follows(self.to)):
            return False
        stream.try_call()
        stream.frame(stream.at + len(self.to))
        yield from self._turn(stream, calls)
        stream.raw = None
        return True

    def read(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is but one
        """Read a turn, the beginning of its header taken."""
        yield from self._turn(stream, calls)

    def _turn(self, stream: Stream, calls: Calls) -> Reading[None]:
        name = yield from word(stream, _NAME)
        if not name or not (yield from stream.marker(self.message)):
            raise NotACall("no_name")
        stream.keep()
        section = self.calls.tags.open
        if name not in (self.thought, self.answer) and (yield from stream.marker(section)):
            yield from self.calls.read(stream, calls, section)
            return
        stream.raw = None
        stops = stream.stops(*self.ends)
        sink = stream.think if name == self.thought else stream.say
        yield from stream.until(stops, sink)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each in a turn of its own."""
        turns = (f"{self.to}{call.name}{self.message}{self.calls.write((call,))}" for call in calls)
        return f"{self.ends[0]}{self.start}".join(turns)
