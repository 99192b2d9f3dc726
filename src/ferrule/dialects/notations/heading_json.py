"""Calls under a heading that is the name, as Functionary 3.2 writes them: `>>>f` and a line break, then the arguments.

A message begins as if the marker had stood before it, and under the heading `all` stands text. Neither is marked in a
way that text could not be: what has no name on the first line and an object under it is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.calls import Calls, arguments_of
from ferrule.dialects.json_reading import INVALID, json_value
from ferrule.dialects.mending import mended, reread_arguments
from ferrule.dialects.stream import NotACall, Reading, Stream

_NAME = re.compile(r"[\w.\-]")
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class HeadingJson:
    """The notation. `text` is the heading of text; `before` are markers that can't be inside of a call."""

    open: str
    text: str
    before: tuple[str, ...] = ()
    closers: tuple[str, ...] = ()

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a heading."""
        return (self.open,)

    @property
    def markers(self) -> tuple[str, ...]:
        """The same."""
        return (self.open,)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each with its marker: a framing may leave out the first, which ends the prompt."""
        return "".join(f"{self.open}{call.name}\n{arguments_of(call)}" for call in calls)

    def first(self, stream: Stream, calls: Calls) -> Reading[bool]:
        """Read what stands under the heading that a message begins with."""
        stream.try_call()
        yield from self._under_heading(stream, calls)
        return True

    def read(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is one
        """Read what stands under a heading."""
        stream.try_call(with_opener=True)
        yield from self._under_heading(stream, calls)

    def _under_heading(self, stream: Stream, calls: Calls) -> Reading[None]:
        name = yield from self._heading(stream)
        if name == self.text:
            stream.keep()
            stream.raw = None
            return
        is_known = not calls.offers_any or calls.parameters(name) is not None
        if not is_known or (yield from stream.ahead()) != "{":
            raise NotACall("unexpected_text")
        start = stream.raw.tell() if stream.raw else 0
        call = calls.begin(stream)
        call.named(name)
        stream.keep()
        try:
            yield from json_value(stream, call.put, call.wait)
            call.finish()
        except NotACall as fault:
            stops = stream.stops(*self.openers, *self.before)
            yield from mended(stream, calls, fault, start, stops, "", reread_arguments)

    def _heading(self, stream: Stream) -> Reading[str]:
        """The name on this line, and its line break. Raises `NotACall` where the line is something else."""
        name: list[str] = []
        while _NAME.fullmatch((yield from stream.ahead())) and len(name) < _LONGEST_NAME:
            name.append(stream.frame(stream.at + 1))
        if not name:
            raise NotACall("no_name")
        yield from stream.expect("\n", INVALID)
        return "".join(name)
