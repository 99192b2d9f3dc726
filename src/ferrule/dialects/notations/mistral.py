"""Calls as Mistral's models write them, in the three forms that their tokenizers have used.

None has a closer: a call ends with its arguments or, without any, with whatever comes next or with the turn.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO

from ferrule.conversation import ToolCall
from ferrule.dialects.grammar import CharacterSet, Grammar, Repetition
from ferrule.dialects.notations.common import skip_blank
from ferrule.dialects.notations.json_object import (
    Keys,
    note_empty_arguments,
    read_arguments,
    read_call_object,
    write_call_object,
)
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.repair import repair_call, reread_arguments
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_NAME = re.compile(r"[\w.\-]+")
_ID_CHARACTERS = f"{string.ascii_letters}{string.digits}"
_ID = re.compile(r"[a-zA-Z0-9]{9}")


@dataclass(frozen=True, slots=True)
class Mistral:
    """The notation of Mistral's models, in any of its three forms; `form` is the one for writing.

    `list`: `[TOOL_CALLS][{"name", "arguments", "id"}]`; `named`: `[TOOL_CALLS]f[ARGS]{…}`; `named with id`:
    `[TOOL_CALLS]f[CALL_ID]abcdefgh1[ARGS]{…}`. An id that is not nine letters and digits is converted to one.
    """

    form: str
    before: tuple[str, ...] = ()
    open: str = "[TOOL_CALLS]"
    identifier: str = "[CALL_ID]"
    arguments: str = "[ARGS]"
    keys: Keys = field(default_factory=Keys)
    closers: tuple[str, ...] = ()

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call, or a list of them."""
        return (self.open,)

    @property
    def markers(self) -> tuple[str, ...]:
        """All three."""
        return (self.open, self.identifier, self.arguments)

    @property
    def punctuation(self) -> tuple[str, ...]:
        """The brackets and commas of a list."""
        return ("[", ",", "]")

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, in the chosen form."""
        if self.form == "list":
            objects = (
                f'{write_call_object(call, self.keys)[:-1]}, "id": "{_make_short_id(call, number)}"}}'
                for number, call in enumerate(calls)
            )
            return f"{self.open}[{', '.join(objects)}]"
        return "".join(self._write_named(call, number) for number, call in enumerate(calls))

    def _write_named(self, call: ToolCall, number: int) -> str:
        identifier = f"{self.identifier}{_make_short_id(call, number)}" if self.form == "named with id" else ""
        return f"{self.open}{call.name}{identifier}{self.arguments}{validate_arguments(call)}"

    def describe_id(self, name: str) -> tuple[str, Grammar] | None:  # noqa: ARG002 - the same for all
        """See `IdentifyingSyntax`."""
        return "call73519", Repetition(CharacterSet(_ID_CHARACTERS), 9, 9)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call or a list of them."""
        if (yield from stream.skip_space()) == "[":
            stream.take_framing(stream.at + 1)
            yield from self._read_list(stream, calls)
            return
        call = calls.begin(stream)
        start = len(opener)
        try:
            has_arguments = yield from self._read_head(stream, call)
            start = stream.raw.tell() if stream.raw else 0
            if has_arguments:
                yield from self._read_arguments(stream, call)
            call.finish()
        except NotACall as fault:
            stops = stream.make_stops(*self.openers, *self.before)
            yield from repair_call(stream, calls, fault, start, stops, "", reread_arguments)

    def _read_arguments(self, stream: InputStream, call: CallBuilder) -> Reading[None]:
        character = yield from skip_blank(stream)
        if not character and stream.ended and not stream.stopped and not stream.control:
            raise EndOfText
        if not character or (yield from stream.is_turn_end_ahead()) or (yield from stream.is_ahead(self.open)):
            note_empty_arguments(call, "")
        else:
            yield from read_arguments(stream, call, character)

    def _read_list(self, stream: InputStream, calls: Calls) -> Reading[None]:
        if (yield from stream.skip_space()) == "]":
            stream.take_framing(stream.at + 1)
            return
        is_open = True
        while is_open:
            call = calls.begin(stream)
            yield from read_call_object(stream, call, self.keys)
            call.finish()
            stream.raw = StringIO()
            is_open = yield from self._has_more(stream)

    def _has_more(self, stream: InputStream) -> Reading[bool]:
        """Whether another object follows a complete one; a list may lack its closer where the text ends."""
        try:
            character = yield from stream.skip_space()
        except EndOfText:
            return False
        if character not in (",", "]", ""):
            raise NotACall(INVALID)
        if character:
            stream.take_framing(stream.at + 1)
        return character == ","

    def _read_head(self, stream: InputStream, call: CallBuilder) -> Reading[bool]:
        """Read the name, and the id if there is one; whether arguments follow. They may be missing at the end of a
        call."""
        name, marker = yield from self._read_word(stream, self.identifier, self.arguments)
        if not _NAME.fullmatch(name):
            raise NotACall("no_name")
        identifier = ""
        if marker == self.identifier:
            identifier, marker = yield from self._read_word(stream, self.arguments)
            if not marker and not _ID.fullmatch(identifier):
                # A name may be all of a call, with or without an id; if the id is cut off, more was to come.
                raise EndOfText
        if not marker and not (stream.stopped or stream.is_at_turn_end):
            raise EndOfText
        call.set_name(name, identifier or None)
        return marker in (self.arguments, "{")

    def _read_word(self, stream: InputStream, *ends: str) -> Reading[tuple[str, str]]:
        pieces: list[str] = []
        stops = stream.make_stops(self.open, *self.before, structural=(*ends, "{"))
        marker = yield from stream.scan(stops, lambda end: pieces.append(stream.take_framing(end)))
        if marker in ends:
            stream.take_framing(stream.marker_end)
        return "".join(pieces).strip(), marker


def _make_short_id(call: ToolCall, number: int) -> str:
    """An id of nine letters and digits, the only form these models accept."""
    return call.id if _ID.fullmatch(call.id) else f"call{number + 1:05d}"
