"""A value as the text of a tag: escaped as in XML where a notation does so, typed by the schema or by the tag."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Any

from ferrule.dialects.calls import Call, escaped
from ferrule.dialects.json_reading import Put
from ferrule.dialects.notations.raw_values import raw_text
from ferrule.dialects.notations.sections import next_tag, plain_text, texts
from ferrule.dialects.parameters import Parameter
from ferrule.dialects.stream import Reading, Stops, Stream

_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_WRAPPER = "arguments"


@dataclass(frozen=True, slots=True)
class TagValues:
    """How values are written: with entities as in XML, or in CDATA sections where they hold what looks like a tag.

    `untyped`: what a value of unknown type is; empty where it is what it looks like.
    """

    has_entities: bool = False
    has_cdata: bool = False
    untyped: frozenset[str] = frozenset()

    @property
    def inside(self) -> tuple[str, ...]:
        """What has to be among the stops of a value, beside its closers."""
        return ("&",) if self.has_entities else ()

    def text_of(self, value: Any, closer: str) -> str:
        """A value as it is written."""
        text = raw_text(value, closer)
        if self.has_cdata and isinstance(value, str) and ("<" in value or "&" in value):
            return f"{_CDATA}{text}{_CDATA_END}"
        return escape(text, quote=False) if self.has_entities else text

    def read(self, stream: Stream, call: Call, key: str, stops: Stops, told: bool | None) -> Reading[str]:
        """A value up to one of `stops`, taken and returned; `told` is whether its tag says that it is a string."""
        names = call.parameters.names if call.parameters else ()
        if key == _WRAPPER and names and key not in names and not call.keys:
            return (yield from self._wrapped(stream, call, stops, frozenset(names)))
        parameter = call.key(key)
        types = parameter.types or (frozenset({"string"}) if told else self.untyped)
        if types == {"string"} or (told and "string" in types):
            return (yield from self._string(stream, call, stops))
        text, marker = yield from self._whole(stream, stops)
        call.value(_json_of(parameter, text, told), stream.at)
        return marker

    def _string(self, stream: Stream, call: Call, stops: Stops) -> Reading[str]:
        """A string, passed on as it comes."""
        call.value('"', stream.at)
        marker = yield from self._pieces(stream, stops, lambda piece, end: call.put(escaped(piece), end))
        call.put('"', stream.at)
        return marker

    def _whole(self, stream: Stream, stops: Stops) -> Reading[tuple[str, str]]:
        """(a value, what ended it)."""
        text = StringIO()

        def keep(piece: str, end: int) -> None:
            text.write(piece)
            stream.frame(end)

        marker = yield from self._pieces(stream, stops, keep)
        return text.getvalue(), marker

    def _pieces(self, stream: Stream, stops: Stops, put: Put) -> Reading[str]:
        if self.has_cdata and (yield from stream.follows(_CDATA)):
            stream.frame(stream.at + len(_CDATA))
            yield from plain_text(stream, texts(stream, _CDATA_END), put)
            return (yield from next_tag(stream, stops))
        return (yield from plain_text(stream, stops, put))

    def _wrapped(self, stream: Stream, call: Call, stops: Stops, names: frozenset[str]) -> Reading[str]:
        """A value for `arguments`, which the tool doesn't have: all arguments as one object, where it looks like it."""
        text, marker = yield from self._whole(stream, stops)
        found = _object(text)
        if not found or not names.issuperset(found):
            found = None
            parameter = call.key(_WRAPPER)
            call.value(_json_of(parameter, text, None), stream.at)
        for key, value in (found or {}).items():
            call.key(key)
            call.value(json.dumps(value, ensure_ascii=False), stream.at)
        return marker


def _json_of(parameter: Parameter, text: str, told: bool | None) -> str:
    """The JSON of a value; a tag that says `string="false"` may hold a string in JSON's quotes all the same."""
    quoted = text.strip()
    if told is False and not parameter.is_string and quoted.startswith('"') and isinstance(_decoded(quoted), str):
        return quoted
    return parameter.json_of(text)


def _object(text: str) -> dict[str, Any] | None:
    found = _decoded(text)
    return found if isinstance(found, dict) else None


def _decoded(text: str) -> Any:
    """What JSON there is; None where it is none, or says NaN or Infinity."""
    try:
        found = json.loads(text)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return found
