"""Turns that name their recipient, ` to=NAME<|message|>`: the model itself, the user, or a tool. Muse.

A turn for a tool contains calls, and anything but their arguments in JSON is malformed; in the others the same text is
reasoning, or an answer or a commentary for the user, and is never run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.common import finish_call, read_word, skip_blank
from ferrule.dialects.notations.invoke import Invokes
from ferrule.dialects.notations.json_object import note_empty_arguments, read_arguments
from ferrule.dialects.reader.calls import Calls
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.repair import JSON_ARGUMENTS, repair_call, reread_arguments
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_NAME = re.compile(r"[\w.:/-]++")


@dataclass(frozen=True, slots=True)
class Recipients:
    """The notation: `calls` is the syntax inside a turn for a tool."""

    calls: Invokes
    start: str = "<|start|>assistant"
    to: str = " to="
    message: str = "<|message|>"
    ends: tuple[str, ...] = ("<|eom|>", "<|eot|>")
    thought: str = "self"
    answers: tuple[str, ...] = ("user", "commentary")

    @property
    def markers(self) -> tuple[str, ...]:
        """The markers of turns and of calls."""
        return (*self.openers, self.message, *self.ends, *self.calls.markers)

    @property
    def openers(self) -> tuple[str, ...]:
        """A turn that begins after another."""
        return (f"{self.start}{self.to}",)

    @property
    def closers(self) -> tuple[str, ...]:
        """The end of a section of calls."""
        return self.calls.closers

    def read_at_start(self, stream: InputStream, calls: Calls) -> Reading[bool]:
        """Read a turn whose beginning is in the prompt."""
        if not (yield from stream.is_ahead(self.to)):
            return False
        stream.begin_trial()
        stream.take_framing(stream.at + len(self.to))
        yield from self._read_turn(stream, calls)
        stream.raw = None
        return True

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:  # noqa: ARG002 - there is but one
        """Read a turn, the beginning of its header taken."""
        yield from self._read_turn(stream, calls)

    def _read_turn(self, stream: InputStream, calls: Calls) -> Reading[None]:
        name = yield from read_word(stream, _NAME)
        if not name or not (yield from stream.take_marker(self.message)):
            raise NotACall("no_name")
        stream.keep_trial()
        section = self.calls.tags.open
        if name not in (self.thought, *self.answers):
            if (yield from stream.take_marker(section)):
                yield from self.calls.read(stream, calls, section)
                return
            character = yield from skip_blank(stream)
            is_empty = yield from stream.is_turn_end_ahead()
            if calls.repair and (is_empty or (character and character in "{[")):
                yield from self._read_json(stream, calls, name, "" if is_empty else character)
                return
            is_cut_off = stream.ended and section.startswith(stream.text[stream.at : stream.limit])
            raise EndOfText if is_cut_off else NotACall("unexpected_text")
        stream.raw = None
        stops = stream.make_stops(*self.ends)
        sink = stream.take_reasoning if name == self.thought else stream.take_text
        yield from stream.take_until(stops, sink)

    def _read_json(self, stream: InputStream, calls: Calls, name: str, character: str) -> Reading[None]:
        """Read the arguments of a call that are written in JSON or left out, up to the end of the turn."""
        call = calls.begin(stream, JSON_ARGUMENTS if character == "{" else "")
        call.set_name(name)
        start = stream.raw.tell() if stream.raw else 0
        try:
            if character:
                yield from read_arguments(stream, call, character)
            else:
                note_empty_arguments(call, "")
            yield from finish_call(stream, call, self.ends[0], *self.ends[1:], *self.openers, kind=INVALID)
        except NotACall as fault:
            stops = stream.make_stops(*self.ends, *self.openers)
            yield from repair_call(stream, calls, fault, start, stops, self.ends[0], reread_arguments)

    @property
    def punctuation(self) -> tuple[str, ...]:
        """The headers of turns that are not for a tool."""
        return tuple(f"{self.to}{name}" for name in (self.thought, *self.answers))

    def list_value_ends(self, names: Sequence[str]) -> tuple[str, ...]:
        """See `PlainTextSyntax`."""
        return self.calls.list_value_ends(names)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each in its own turn."""
        turns = (f"{self.to}{call.name}{self.message}{self.calls.write((call,))}" for call in calls)
        return f"{self.ends[0]}{self.start}".join(turns)
