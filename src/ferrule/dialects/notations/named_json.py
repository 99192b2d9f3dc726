"""Calls as a name, a separator, and the JSON of the arguments: `<|call|>f<|args|>{…}<|end|>`.

Some families wrap a call's name or its JSON in more text (`lead`, `fence`), some put all calls into a section, and
some have no closer: there a call ends with its arguments. A closer inside of a JSON string is a part of that string.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from ferrule.conversation import ToolCall
from ferrule.dialects.calls import Call, Calls, arguments_of
from ferrule.dialects.json_reading import INVALID
from ferrule.dialects.mending import Mended, mended, reread_arguments
from ferrule.dialects.notations.json_object import arguments_value
from ferrule.dialects.stream import EndOfText, NotACall, Reading, Stream

_NUMBERED = re.compile(r"(?:functions\.)?([^\s:]+):[0-9]+")
_NUMBER = re.compile(r"[0-9]+")
_PLAIN_NAME = re.compile(r"[\w.\-]+")


@dataclass(frozen=True, slots=True)
class NamedJson:
    """The notation. `kind` is a word and a marker before the name, `fence` what stands around the arguments.

    `before` are markers that can't be inside of a call, `between` stands between calls when they are written, and
    with `has_ids` the name stands in an id: `functions.f:0`. `id_first`: the id stands before the name, and `kind` has
    only a marker.
    """

    open: str
    separator: str
    close: str
    section: tuple[str, str] | None = None
    kind: tuple[str, str] = ("", "")
    fence: tuple[str, str] = ("", "")
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
        inside = (self.kind[1], self.separator)
        return (*self.openers, *self.closers, *(marker for marker in inside if len(marker) > 1))

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, in their section where there is one."""
        written = self.between.join(self._written(call, number) for number, call in enumerate(calls))
        return f"{self.section[0]}{written}{self.section[1]}" if self.section else written

    def _written(self, call: ToolCall, number: int) -> str:
        name = native_id(call, number) if self.has_ids else call.name
        kind = call.id if self.id_first else self.kind[0]
        head = f"{self.open}{kind}{self.kind[1]}{name}{self.separator}"
        return f"{head}{self.fence[0]}{arguments_of(call)}{self.fence[1]}{self.close}"

    def read(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call, or a section of calls; what stands between those of a section means nothing."""
        if self.section is None or opener == self.open:
            yield from self._call(stream, calls, opener)
            return
        stops = stream.stops(*self.openers, self.section[1], *self.before)
        is_empty = True
        while True:
            marker = yield from stream.find(stops, stream.frame)
            if marker in self.before or not marker:
                if is_empty:
                    raise EndOfText
                return
            stream.frame(stream.marker_end)
            if marker == self.section[1]:
                stream.raw = None
                return
            if marker == self.open:
                is_empty = False
                stream.raw = StringIO()
                stream.raw.write(marker)
                yield from self._call(stream, calls, marker)

    def _call(self, stream: Stream, calls: Calls, opener: str) -> Reading[None]:
        call = calls.begin(stream)
        start = len(opener)
        try:
            kind, identifier = yield from self._name(stream)
            start = stream.raw.tell() if stream.raw else 0
            if self.id_first and kind:
                call.native_id = kind
            if self.has_ids:
                self._identify(call, identifier)
            else:
                call.named(identifier)
            yield from self._arguments(stream, call)
            yield from self._end(stream, calls, call)
        except NotACall as fault:
            stops = stream.stops(*self.closers, *self.openers, *self.before)
            yield from mended(stream, calls, fault, start, stops, self.close, self._reread)

    def _name(self, stream: Stream) -> Reading[tuple[str, str]]:
        """What stands before the kind's marker and the separator. Raises `NotACall` where a call ends before it."""
        found: list[str] = []
        others = (*self.closers, *self.openers, *self.before)
        for separator in (self.kind[1], self.separator):
            pieces: list[str] = []

            def keep(end: int, pieces: list[str] = pieces) -> None:
                pieces.append(stream.frame(end))

            if separator:
                stops = stream.stops(*others, structural=(separator,))
                marker = yield from stream.find(stops, keep)
                if not marker:
                    raise EndOfText
                if marker != separator:
                    raise NotACall("no_arguments")
                stream.frame(stream.marker_end)
            found.append("".join(pieces).strip())
        return found[0], found[1]

    def _identify(self, call: Call, identifier: str) -> None:
        """Take the name from an id. One that is only a number leaves it open until the arguments are known."""
        call.native_id = identifier
        numbered = _NUMBERED.fullmatch(identifier)
        if numbered:
            call.named(numbered[1])
        elif _PLAIN_NAME.fullmatch(identifier) and not _NUMBER.fullmatch(identifier):
            call.named(identifier.removeprefix("functions."))
        elif not _NUMBER.fullmatch(identifier):
            raise NotACall("no_name")

    def _arguments(self, stream: Stream, call: Call) -> Reading[None]:
        character = yield from stream.space()
        fence = self.fence[0].strip()
        if fence and character == fence[0]:
            yield from stream.expect(fence, INVALID)
            character = yield from stream.space()
        yield from arguments_value(stream, call, character)

    def _end(self, stream: Stream, calls: Calls, call: Call) -> Reading[None]:
        """What follows the arguments: the closer, or at least nothing that belongs to the call."""
        stops = stream.stops(*self.closers, *self.openers, *self.before)
        rest: list[str] = []
        marker = yield from stream.find(stops, lambda end: rest.append(stream.frame(end)))
        left_over, fence = "".join(rest).strip(), self.fence[1].strip()
        is_cut = not marker and (self.close.startswith(left_over) or (fence + self.close).startswith(left_over))
        if left_over not in ("", fence) and not is_cut:
            raise NotACall(INVALID)
        if not call.started:
            call.named(calls.only_fitting(call.arguments))
        if marker == self.close:
            stream.frame(stream.marker_end)
        call.finish()

    def _reread(self, body: str) -> Mended | None:
        fence = self.fence[0].strip()
        if fence:
            body = body.strip().removeprefix(fence).removesuffix(self.fence[1].strip())
        return reread_arguments(body)


def native_id(call: ToolCall, number: int) -> str:
    """The id of a call as these families write it: its own, where it is one of theirs."""
    numbered = _NUMBERED.fullmatch(call.id)
    return call.id if numbered and numbered[1] == call.name else f"functions.{call.name}:{number}"
