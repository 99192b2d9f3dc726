"""A value as the text of a tag: escaped as in XML if the notation does so, typed by the schema or by the tag."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from io import StringIO
from typing import Any

from ferrule.dialects.notations.common import ValueStyle, write_raw_text
from ferrule.dialects.notations.sections import make_structural_stops, read_plain_text, take_next_tag
from ferrule.dialects.reader.calls import CallBuilder, escape_json
from ferrule.dialects.reader.json import Put
from ferrule.dialects.reader.markers import Stops
from ferrule.dialects.reader.stream import InputStream, Reading

CDATA, CDATA_END = "<![CDATA[", "]]>"


@dataclass(frozen=True, slots=True)
class TagValues:
    """How values are written: with XML entities, or in CDATA sections if they contain a line break or what looks like a
    tag; `style` is that of values that aren't strings.

    `untyped`: the types of a value of unknown type; empty if its text decides.
    """

    has_entities: bool = False
    has_cdata: bool = False
    untyped: frozenset[str] = frozenset()
    style: ValueStyle = field(default="json", compare=False)

    @property
    def inside(self) -> tuple[str, ...]:
        """The stops that a value needs in addition to its closers."""
        return ("&",) if self.has_entities else ()

    def write_value(self, value: Any, closer: str) -> str:
        """A value as written."""
        text = write_raw_text(value, closer, self.style)
        if self.has_cdata and isinstance(value, str) and any(mark in value for mark in "<&\n"):
            return f"{CDATA}{text}{CDATA_END}"
        return escape(text, quote=False) if self.has_entities else text

    def read(
        self, stream: InputStream, call: CallBuilder, key: str, stops: Stops, declared: bool | None
    ) -> Reading[str]:
        """Read a value up to one of `stops`, taken and returned; `declared` is whether its tag declares a string."""
        parameter = call.begin_key(key)
        types = parameter.types or (frozenset({"string"}) if declared else self.untyped)
        if types == {"string"} or (declared and "string" in types):
            return (yield from self._read_string(stream, call, stops))
        text, marker = yield from self._read_whole(stream, stops)
        quoted = text.strip()
        # A tag with `string="false"` may nevertheless contain a JSON string.
        if declared is False and not parameter.is_string and quoted.startswith('"') and _is_string(quoted):
            call.put_value(quoted, stream.at)
        else:
            call.put_plain_value(parameter, text, stream.at)
        return marker

    def _read_string(self, stream: InputStream, call: CallBuilder, stops: Stops) -> Reading[str]:
        """Read a string, passed on as it comes."""
        call.put_value('"', stream.at)
        marker = yield from self._read_pieces(stream, stops, lambda piece, end: call.put(escape_json(piece), end))
        call.end_string()
        return marker

    def _read_whole(self, stream: InputStream, stops: Stops) -> Reading[tuple[str, str]]:
        """(a value, what ended it)."""
        text = StringIO()

        def keep(piece: str, end: int) -> None:
            text.write(piece)
            stream.take_framing(end)

        marker = yield from self._read_pieces(stream, stops, keep)
        return text.getvalue(), marker

    def _read_pieces(self, stream: InputStream, stops: Stops, put: Put) -> Reading[str]:
        if self.has_cdata and (yield from stream.is_ahead(CDATA)):
            stream.take_framing(stream.at + len(CDATA))
            yield from read_plain_text(stream, make_structural_stops(stream, CDATA_END), put)
            return (yield from take_next_tag(stream, stops))
        return (yield from read_plain_text(stream, stops, put))


def _is_string(text: str) -> bool:
    try:
        return isinstance(json.loads(text), str)
    except ValueError:
        return False
