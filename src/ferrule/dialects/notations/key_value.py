"""Calls as a name and pairs of tags: `<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`.

Values are plain text, typed by the schema, and nothing in them can be escaped. A key without a value is omitted and
reported; the schema decides whether the call is valid without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.common import take_text_until, write_raw_text
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.parameters import ParameterType, read_parameter_type
from ferrule.dialects.reader.repair import JSON_CALL
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_UNEXPECTED = "unexpected_text"
_NO_VALUE = "key_without_value"
_SPELLED_BREAK = r"\n"
# A call in another notation.
_NO_NAME = re.compile(r"[{}()\[\]\"']")


@dataclass(frozen=True, slots=True)
class KeyValue:
    """The notation. `key`, `value` and `type` are pairs of tags, `after_name` a marker, `wrapper` surrounds the calls
    of a message; `inner` is the white space after the name and each pair, `between` separates calls, and
    `between_pairs` separates pairs if it differs from `inner`. A key without a closer ends at its value's opener.
    `in_json`: a call may contain a JSON object instead, which is a repair in other notations. `also` is the same
    notation with other tags, which is also read."""

    open: str = "<tool_call>"
    close: str = "</tool_call>"
    key: tuple[str, str] = ("<arg_key>", "</arg_key>")
    value: tuple[str, str] = ("<arg_value>", "</arg_value>")
    type: tuple[str, str] | None = None
    after_name: str = ""
    wrapper: tuple[str, str] | None = None
    inner: str = "\n"
    between: str = "\n"
    between_pairs: str | None = None
    in_json: JsonObject | None = None
    also: KeyValue | None = None

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call or a section of them. The closer of a section that has already ended begins nothing."""
        return (self.open, *(self.wrapper or ()), *(self.also.openers if self.also else ()))

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends a call."""
        return (self.close, *(self.also.closers if self.also else ()))

    @property
    def markers(self) -> tuple[str, ...]:
        """All of them."""
        sep = (self.after_name,) if self.after_name else ()
        key = tuple(filter(None, self.key))
        own = (*(self.wrapper or ()), self.open, self.close, *sep, *key, *self.value, *(self.type or ()))
        return (*own, *(self.also.markers if self.also else ()))

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, in their wrapper if there is one."""
        written = self.between.join(self._write_call(call) for call in calls)
        return self.inner.join((self.wrapper[0], written, self.wrapper[1])) if self.wrapper else written

    def _write_call(self, call: ToolCall) -> str:
        end_of_key = f"{self.key[1]}{self.inner}" if self.key[1] else ""
        pairs = [
            f"{self.key[0]}{key}{end_of_key}{self.value[0]}{write_raw_text(value, self.value[1])}{self.value[1]}"
            for key, value in json.loads(validate_arguments(call)).items()
        ]
        between = self.inner if self.between_pairs is None else self.between_pairs
        last = self.inner if pairs or self.between_pairs is not None else ""
        return "".join((self.open, call.name, self.after_name, self.inner, between.join(pairs), last, self.close))

    def list_value_ends(self, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """See `PlainTextSyntax`."""
        return (self.value[1],)

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call, or a section of calls."""
        if self.also is not None and opener in self.also.openers:
            yield from self.also.read(stream, calls, opener)
            return
        if self.wrapper is None:
            yield from self._read_call(stream, calls)
            return
        if opener == self.wrapper[1]:
            return
        if opener == self.wrapper[0] and not (yield from stream.take_one_of(self.open)):
            raise NotACall(_UNEXPECTED)
        while True:
            yield from self._read_call(stream, calls)
            try:
                marker = yield from stream.take_one_of(self.open, self.wrapper[1])
            except EndOfText:
                return
            if marker != self.open:
                return
            stream.raw = StringIO()
            stream.raw.write(self.open)

    def _read_call(self, stream: InputStream, calls: Calls) -> Reading[None]:
        """Read a call, its opener taken."""
        in_json = self.in_json or (JsonObject(self.open, self.close, repair=JSON_CALL) if calls.repair else None)
        if in_json is not None and (yield from stream.skip_space()) == "{":
            taken = stream.raw.getvalue() if stream.raw is not None else ""
            yield from in_json.read(stream, calls, taken)
            return
        call = calls.begin(stream)
        tag = yield from self._read_name(stream, call)
        repairs: dict[str, None] = {}
        while tag == self.key[0]:
            key = yield from self._read_key(stream)
            tag, has_value = yield from self._read_value(stream, call, key)
            if not has_value:
                if not calls.repair:
                    raise NotACall(_UNEXPECTED)
                repairs[_NO_VALUE] = None
        if tag != self.close:
            raise NotACall(_UNEXPECTED)
        call.close_object()
        call.finish(tuple(repairs))

    def _read_name(self, stream: InputStream, call: CallBuilder) -> Reading[str]:
        """Read the name; the tag after it."""
        yield from stream.skip_space()
        sep = (self.after_name,) if self.after_name else ()
        stops = stream.make_stops(self.key[0], self.close, *sep, structural=("\n",))
        name, tag = yield from take_text_until(stream, stops)
        if _NO_NAME.search(name):
            raise NotACall(_UNEXPECTED)
        call.set_name(name.strip().removesuffix(_SPELLED_BREAK))
        stream.take_framing(stream.marker_end)
        if tag == "\n":
            tag = yield from self._take_tag(stream, *sep, self.key[0], self.close)
        return (yield from self._take_tag(stream, self.key[0], self.close)) if tag in sep else tag

    def _read_key(self, stream: InputStream) -> Reading[str]:
        close = self.key[1] or self.value[0]
        key, tag = yield from take_text_until(stream, stream.make_stops(close, self.value[0], self.close))
        if tag != close:
            raise NotACall(_UNEXPECTED)
        if self.key[1]:
            stream.take_framing(stream.marker_end)
        return key.strip()

    def _read_value(self, stream: InputStream, call: CallBuilder, key: str) -> Reading[tuple[str, bool]]:
        """Read what follows a key: (the tag after it, whether there was a value)."""
        declared: ParameterType | None = None
        begin = (self.key[0], self.value[0], self.close)
        tag = yield from self._take_tag(stream, *begin, *(self.type[:1] if self.type else ()))
        if self.type is not None and tag == self.type[0]:
            kind, _ = yield from take_text_until(stream, stream.make_stops(self.type[1]))
            stream.take_framing(stream.marker_end)
            declared = read_parameter_type({"type": kind.strip()}, {})
            tag = yield from self._take_tag(stream, *begin)
        if tag != self.value[0]:
            return tag, False
        if not (yield from call.read_raw_value(key, stream.make_stops(self.value[1]), declared)):
            raise EndOfText
        return (yield from self._take_tag(stream, self.key[0], self.close)), True

    def _take_tag(self, stream: InputStream, *tags: str) -> Reading[str]:
        """The next of `tags`; line breaks before it may be spelled out, as `\\n`. Raises `NotACall` if none follows."""
        while not (tag := (yield from stream.take_one_of(*tags))):
            if not (yield from stream.take_optional(_SPELLED_BREAK)):
                raise NotACall(_UNEXPECTED)
        return tag
