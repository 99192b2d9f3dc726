"""Calls as a name, a separator, and the JSON of the arguments: `<|call|>f<|args|>{…}<|end|>`.

Some families wrap a call's name or its JSON in more text (`lead`, `fence`), some put all calls into a section, and some
have no closer: there a call ends with its arguments. A closer inside a JSON string is part of that string.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from ferrule.conversation import ToolCall
from ferrule.dialects.grammar import CharacterSet, Grammar, GrammarSequence, LiteralText, Repetition
from ferrule.dialects.notations.json_object import note_empty_arguments, read_arguments
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.repair import RepairedCall, repair_call, reread_arguments
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_NUMBERED = re.compile(r"(?:functions\.)?([^\s:]+):[0-9]+")
_NUMBER = re.compile(r"[0-9]+")
_LONGEST_NUMBER = 5
_PLAIN_NAME = re.compile(r"[\w.\-]+")


@dataclass(frozen=True, slots=True)
class NamedJson:
    """The notation. `kind` is a word and a marker before the name, `fence` surrounds the arguments. `heading` are
    markers and words that come before these, which a model may leave out; `tokens` are those of them, and of the fence,
    that a tokenizer may have tokens for.

    `before` are markers that can't be inside a call, `between` separates calls when they are written, and with
    `has_ids` the name is part of an id: `functions.f:0`. `id_first`: the id precedes the name, and `kind` has only a
    marker.
    """

    open: str
    separator: str
    close: str
    section: tuple[str, str] | None = None
    kind: tuple[str, str] = ("", "")
    heading: tuple[str, ...] = ()
    fence: tuple[str, str] = ("", "")
    tokens: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    between: str = ""
    has_ids: bool = False
    id_first: bool = False

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call, or a section of them."""
        return (self.section[0], self.open) if self.section else (self.open,)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self.close, self.section[1]) if self.section else (self.close,)

    @property
    def markers(self) -> tuple[str, ...]:
        """All that may be tokens."""
        return (*self.openers, *self.closers, *self._inside, *self.tokens)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, in their section if there is one."""
        written = self.between.join(self._write_call(call, number) for number, call in enumerate(calls))
        return f"{self.section[0]}{written}{self.section[1]}" if self.section else written

    def _write_call(self, call: ToolCall, number: int) -> str:
        name = write_native_id(call, number) if self.has_ids else call.name
        kind = call.id if self.id_first else self.kind[0]
        head = f"{self.open}{kind}{self.kind[1]}{name}{self.separator}{''.join(self.heading)}"
        return f"{head}{self.fence[0]}{validate_arguments(call)}{self.fence[1]}{self.close}"

    def describe_id(self, name: str) -> tuple[str, Grammar] | None:
        """See `IdentifyingSyntax`."""
        if not self.has_ids:
            return None
        number = Repetition(CharacterSet("0123456789"), 1, _LONGEST_NUMBER)
        return f"functions.{name}:0", GrammarSequence((LiteralText(f"functions.{name}:"), number))

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call, or a section of calls. Anything else in a section is text after a call, and a malformed call
        before the first one."""
        if self.section is None or opener == self.open:
            yield from self._read_call(stream, calls, opener)
            return
        is_empty = True
        while True:
            marker, is_blank = yield from self._scan_between(stream, is_first=is_empty)
            if marker in self.before or not marker:
                if is_empty:
                    raise EndOfText
                return
            if marker in self._inside:
                yield from self._fail_headless(stream, calls)
                is_empty = False
                continue
            if is_empty and not is_blank:
                is_empty = False
                call = calls.begin(stream)
                if marker in self.closers:
                    stream.take_framing(stream.marker_end)
                call.fail("unexpected_text")
            stream.take_framing(stream.marker_end)
            if marker == self.section[1]:
                stream.raw = None
                return
            if marker == self.open:
                is_empty = False
                stream.raw = StringIO()
                stream.raw.write(marker)
                yield from self._read_call(stream, calls, marker)

    @property
    def _inside(self) -> tuple[str, ...]:
        """The markers that only occur inside a call."""
        return tuple(marker for marker in (self.kind[1], self.separator) if len(marker) > 1)

    def _scan_between(self, stream: InputStream, *, is_first: bool) -> Reading[tuple[str, bool]]:
        """Scan to the next marker in a section: (that marker, not taken; whether only white space precedes it). After a
        call, other text is passed on as it comes."""
        is_blank = True

        def sink(end: int) -> None:
            nonlocal is_blank
            if is_blank:
                stream.take_framing(end - len(stream.text[stream.at : end].lstrip()))
                is_blank = stream.at == end
            if stream.at < end:
                (stream.take_framing if is_first else stream.take_text)(end)

        stops = stream.make_stops(*self.closers, *self.openers, *self._inside, *self.before)
        marker = yield from stream.scan(stops, sink)
        return marker, is_blank

    def _fail_headless(self, stream: InputStream, calls: Calls) -> Reading[None]:
        """Fail a call whose opener is missing: it can't be read."""
        calls.begin(stream)
        stream.take_framing(stream.marker_end)
        stops = stream.make_stops(*self.closers, *self.openers, *self.before)
        yield from repair_call(stream, calls, NotACall("no_name"), 0, stops, self.close, self._reread_body)

    def _read_call(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        call = calls.begin(stream)
        start = len(opener)
        try:
            kind, identifier = yield from self._read_name(stream)
            yield from self._skip_heading(stream)
            start = stream.raw.tell() if stream.raw else 0
            if self.id_first and kind:
                call.native_id = kind
            if self.has_ids:
                self._identify(call, identifier)
            else:
                call.set_name(identifier)
            yield from self._read_arguments(stream, call)
            yield from self._read_end(stream, calls, call)
        except NotACall as fault:
            stops = stream.make_stops(*self.closers, *self.openers, *self.before)
            yield from repair_call(stream, calls, fault, start, stops, self.close, self._reread_body)

    def _read_name(self, stream: InputStream) -> Reading[tuple[str, str]]:
        """Read up to the kind's marker and the separator. Raises `NotACall` if a call ends before that."""
        found: list[str] = []
        others = (*self.closers, *self.openers, *self.before)
        for separator in (self.kind[1], self.separator):
            pieces: list[str] = []

            def keep(end: int, pieces: list[str] = pieces) -> None:
                pieces.append(stream.take_framing(end))

            if separator:
                stops = stream.make_stops(*others, structural=(separator,))
                marker = yield from stream.scan(stops, keep)
                if not marker:
                    raise EndOfText
                if marker != separator:
                    raise NotACall("no_arguments")
                stream.take_framing(stream.marker_end)
            found.append("".join(pieces).strip())
        return found[0], found[1]

    def _skip_heading(self, stream: InputStream) -> Reading[None]:
        for piece in self.heading:
            yield from stream.skip_space()
            if not (piece in self.tokens and (yield from stream.take_marker(piece))):
                yield from stream.take_optional(piece)

    def _identify(self, call: CallBuilder, identifier: str) -> None:
        """Take the name from an id. An id that is only a number leaves it open until the arguments are known."""
        call.native_id = identifier
        numbered = _NUMBERED.fullmatch(identifier)
        if numbered:
            call.set_name(numbered[1])
        elif _PLAIN_NAME.fullmatch(identifier) and not _NUMBER.fullmatch(identifier):
            call.set_name(identifier.removeprefix("functions."))
        elif not _NUMBER.fullmatch(identifier):
            raise NotACall("no_name")

    def _read_arguments(self, stream: InputStream, call: CallBuilder) -> Reading[None]:
        character = yield from stream.skip_space()
        end = self.fence[1] if self.fence[1] in self.tokens else self.close
        if stream.control == end if not character else (yield from stream.is_ahead(end)):
            note_empty_arguments(call, "")
            return
        fence = self.fence[0].strip()
        if fence and character == fence[0]:
            yield from stream.expect(fence, INVALID)
            character = yield from stream.skip_space()
        yield from read_arguments(stream, call, character)

    def _read_end(self, stream: InputStream, calls: Calls, call: CallBuilder) -> Reading[None]:
        """Read what follows the arguments: the closer, or at least nothing that belongs to the call."""
        stops = stream.make_stops(*self.closers, *self.openers, *self.before)
        rest: list[str] = []
        marker = yield from stream.scan(stops, lambda end: rest.append(stream.take_framing(end)))
        left_over, fence = "".join(rest).strip(), self.fence[1].strip()
        is_cut = not marker and (self.close.startswith(left_over) or (fence + self.close).startswith(left_over))
        if left_over not in ("", fence) and not is_cut:
            raise NotACall(INVALID)
        if not call.started:
            call.set_name(calls.find_only_fitting(call.arguments))
        if marker == self.close:
            stream.take_framing(stream.marker_end)
        call.finish()

    def _reread_body(self, body: str) -> RepairedCall | None:
        if any(self.fence):
            body = body.strip().removeprefix(self.fence[0].strip()).removesuffix(self.fence[1].strip())
        return reread_arguments(body)


def write_native_id(call: ToolCall, number: int) -> str:
    """The id of a call as these families write it: its own, if it has that form."""
    numbered = _NUMBERED.fullmatch(call.id)
    return call.id if numbered and numbered[1] == call.name else f"functions.{call.name}:{number}"
