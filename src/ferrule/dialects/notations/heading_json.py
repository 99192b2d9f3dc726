"""Calls under a heading with the name, as Functionary 3.2 writes them: `>>>f` and a line break, then the arguments.

A message begins as if the marker had preceded it, and text has its own heading (`all`, in GLM 4 an empty one). Neither
is marked in a way that text could not be: anything but a name on the first line with an object under it is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.reader.calls import Calls, validate_arguments
from ferrule.dialects.reader.json import INVALID, read_json_value
from ferrule.dialects.reader.repair import repair_call, reread_arguments
from ferrule.dialects.reader.stream import InputStream, NotACall, Reading

_NAME = re.compile(r"[\w.\-]")
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class HeadingJson:
    """The notation. `text` is the heading of text, possibly empty; `before` are markers that can't be inside a call."""

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

    @property
    def punctuation(self) -> tuple[str, ...]:
        """The heading of text."""
        return (self.text,)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each with its marker: a framing may omit the first, which ends the prompt."""
        return "".join(f"{self.open}{call.name}\n{validate_arguments(call)}" for call in calls)

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read the content under the heading at the beginning of a message."""
        stream.begin_trial()
        yield from self._read_arguments(stream, calls)
        return True

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is one
        """Read the content under a heading."""
        stream.begin_trial(with_opener=True)
        yield from self._read_arguments(stream, calls)

    def _read_arguments(self, stream: InputStream, calls: Calls) -> Reading[None]:
        name = yield from self._read_heading(stream)
        if name == self.text:
            stream.keep_trial()
            stream.raw = None
            return
        is_known = not calls.has_tools or calls.get_parameters(name) is not None
        if not is_known or (yield from stream.peek()) != "{":
            raise NotACall("unexpected_text")
        start = stream.raw.tell() if stream.raw else 0
        call = calls.begin(stream)
        call.set_name(name)
        stream.keep_trial()
        try:
            yield from read_json_value(stream, call.put, call.hold, call.note_first_key)
            call.finish()
        except NotACall as fault:
            stops = stream.make_stops(*self.openers, *self.before)
            yield from repair_call(stream, calls, fault, start, stops, "", reread_arguments)

    def _read_heading(self, stream: InputStream) -> Reading[str]:
        """The name on this line, and its line break. Raises `NotACall` if the line is anything else."""
        name: list[str] = []
        while _NAME.fullmatch((yield from stream.peek())) and len(name) < _LONGEST_NAME:
            name.append(stream.take_framing(stream.at + 1))
        if not name and self.text:
            raise NotACall("no_name")
        yield from stream.expect("\n", INVALID)
        return "".join(name)
