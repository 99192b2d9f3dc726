"""Calls as tags that contain their names: `<function=f>`, and in it `<parameter=k>` around each value.

Values are plain text, typed by the schema, and nothing in them can be escaped. Models forget tags: the outer ones are
optional; `</parameter>` may be missing before a tag that values are unlikely to contain (the next parameter of this
tool, on a line of its own, or both closers of the call), if the schema then accepts the arguments. JSON in place of the
parameters, or of the whole call, is repaired.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.common import ValueStyle, skip_blank, take_text_until, write_raw_text
from ferrule.dialects.notations.json_object import JsonObject, read_arguments
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.markers import Stops
from ferrule.dialects.reader.repair import JSON_ARGUMENTS, JSON_CALL
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading

_FUNCTION, _END_FUNCTION = "<function=", "</function>"
_PARAMETER, _END_PARAMETER = "<parameter=", "</parameter>"
_UNCLOSED = "unclosed_tag"
_UNEXPECTED = "unexpected_text"


@dataclass(frozen=True, slots=True)
class FunctionXml:
    """The notation. `inner` is the white space between tags, `frame` a line break around each value that is not part of
    it, and `between` separates calls; `values` is the style of those that aren't strings."""

    open: str = "<tool_call>"
    close: str = "</tool_call>"
    inner: str = "\n"
    frame: str = "\n"
    between: str = "\n"
    values: ValueStyle = field(default="json", compare=False)

    @property
    def with_json_values(self) -> FunctionXml:
        """See `StyledSyntax`."""
        return replace(self, values="json")

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a call: models omit the outer tag."""
        return (self.open, _FUNCTION)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self.close,)

    @property
    def markers(self) -> tuple[str, ...]:
        """All that have a meaning outside a call; the tags inside are ordinary text to tokenizers."""
        return (self.open, self.close, _FUNCTION)

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls, each in an outer tag of its own."""
        return self.between.join(self._write_call(call) for call in calls)

    def _write_call(self, call: ToolCall) -> str:
        pieces = [self.open, self.inner, _FUNCTION, call.name, ">", self.inner]
        for key, value in json.loads(validate_arguments(call)).items():
            text = write_raw_text(value, _END_PARAMETER, self.values)
            pieces += (_PARAMETER, key, ">", self.frame, text, self.frame, _END_PARAMETER, self.inner)
        return "".join((*pieces, _END_FUNCTION, self.inner, self.close))

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a call, with or without its outer tag."""
        if opener == self.open and not (yield from stream.take_one_of(_FUNCTION)):
            if (yield from stream.peek()) != "{" or not calls.repair:
                raise NotACall(_UNEXPECTED)
            yield from JsonObject(self.open, self.close, repair=JSON_CALL).read(stream, calls, opener)
            return
        call = calls.begin(stream)
        try:
            yield from _Function(self, stream, calls, call).read()
        except NotACall as fault:
            if opener == self.open or call.keys:
                raise
            if stream.is_cut:
                raise
            # It only mentioned a tag, and the answer continues after it.
            call.fail(fault.kind)

    def list_value_ends(self, names: Sequence[str]) -> tuple[str, ...]:
        """See `PlainTextSyntax`; `make_value_stops` makes a reader stop there."""
        tags = tuple(f"{self.inner}{_PARAMETER}{name}>" for name in names)
        closer = f"{self.inner}{_END_FUNCTION}{self.inner}{self.close}"
        return (*dict.fromkeys((f"{self.frame}{_END_PARAMETER}", _END_PARAMETER)), closer, *tags)

    def make_value_stops(self, stream: InputStream, names: tuple[str, ...], *, is_framed: bool) -> Stops:
        """What ends a value: its closer, or a tag of this tool's parameters `names`, or the end of the call."""
        leads = ((_END_PARAMETER, self.frame),) if is_framed else ()
        tags = tuple(f"{self.inner}{_PARAMETER}{name}>" for name in names)
        ends = ((self.close, f"{self.inner}{_END_FUNCTION}{self.inner}"),)
        return stream.make_stops(leads=leads + ends, structural=(_END_PARAMETER, *tags))


@dataclass(slots=True)
class _Function:
    """One function being read, from its name on, and the repairs it needed."""

    notation: FunctionXml
    stream: InputStream
    calls: Calls
    call: CallBuilder
    unclosed: bool = False

    def read(self) -> Reading[None]:
        """Read it to its end."""
        yield from self._read_name()
        character = yield from skip_blank(self.stream)
        if character and character in "{[" and self.call.can_repair:
            yield from self._read_json(character)
        else:
            if not (yield from self._read_parameters()):
                yield from self._take_outer_closer()
            self.call.close_object()
        if self.unclosed and not self._is_accepted():
            self.call.fail(_UNEXPECTED)
        else:
            self.call.finish((_UNCLOSED,) if self.unclosed else ())

    def _read_name(self) -> Reading[None]:
        stream = self.stream
        name, mark = yield from take_text_until(stream, stream.make_stops(structural=(">", "\n", "<")))
        if mark == ">":
            stream.take_framing(stream.marker_end)
        else:
            self._note_missing_tag()
        self.call.set_name(name.strip())

    def _read_json(self, character: str) -> Reading[None]:
        """Read arguments in JSON, and the tags after them."""
        if character == "{":
            self.call.note_repair(JSON_ARGUMENTS)
        yield from read_arguments(self.stream, self.call, character)
        tag = yield from self.stream.take_one_of(_END_FUNCTION, self.notation.close)
        if not tag:
            raise NotACall(_UNEXPECTED)
        if tag == _END_FUNCTION:
            yield from self._take_outer_closer()

    def _read_parameters(self) -> Reading[bool]:
        """Read the parameters and the tag after them; whether that was the outer one."""
        close = self.notation.close
        key = ""
        while True:
            if not key:
                tag = yield from self.stream.take_one_of(_PARAMETER, _END_FUNCTION, close)
                if tag != _PARAMETER:
                    break
                key = yield from self._read_key()
            tag = yield from self._read_value(key)
            if tag == close:
                break
            key = "" if tag == _END_PARAMETER else tag.strip()[len(_PARAMETER) : -1]
        if not tag:
            raise NotACall(_UNEXPECTED)
        if tag == close:
            self.unclosed = True
        return tag == close

    def _read_key(self) -> Reading[str]:
        stream = self.stream
        key, mark = yield from take_text_until(stream, stream.make_stops(structural=(">", "\n")))
        if mark != ">" or not key.strip():
            raise NotACall(_UNEXPECTED)
        stream.take_framing(stream.marker_end)
        return key.strip()

    def _read_value(self, key: str) -> Reading[str]:
        """Read a value; the tag that ended it."""
        frame = self.notation.frame
        is_framed = bool(frame) and (yield from self.stream.take_optional(frame))
        names = self.call.parameters.names if self.call.parameters and self.calls.repair else ()
        ends = self.notation.make_value_stops(self.stream, names, is_framed=is_framed)
        tag = yield from self.call.read_raw_value(key, ends)
        if not tag:
            raise EndOfText
        if tag != _END_PARAMETER:
            self.unclosed = True
        return tag

    def _take_outer_closer(self) -> Reading[None]:
        """Take the outer closer if it is here: a closed function is complete without it."""
        try:
            yield from self.stream.take_one_of(self.notation.close)
        except EndOfText:
            return

    def _note_missing_tag(self) -> None:
        if not self.calls.repair:
            raise NotACall(_UNEXPECTED)
        self.unclosed = True

    def _is_accepted(self) -> bool:
        """Whether the schema accepts the arguments of a call with a missing tag."""
        if not self.calls.repair:
            return False
        if not self.calls.has_tools:
            return True
        parameters = self.call.parameters
        return parameters is not None and parameters.accepts(json.loads(self.call.arguments))
