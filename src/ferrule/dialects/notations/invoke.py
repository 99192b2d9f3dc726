"""Calls as tags with attributes: `<invoke name="f"><parameter name="k">v</parameter></invoke>`.

A value is text up to its closer, typed by the schema, or by an attribute if the notation has one (`typed`). A JSON
object in place of the parameters is read, too, if a model writes one, and one in place of a call is repaired.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from ferrule.conversation import ToolCall
from ferrule.dialects.notations.json_object import JsonObject, read_arguments
from ferrule.dialects.notations.sections import (
    UNEXPECTED,
    SectionTags,
    make_structural_stops,
    read_attributes,
    read_section,
    take_next_tag,
)
from ferrule.dialects.notations.tag_values import CDATA, CDATA_END, TagValues
from ferrule.dialects.reader.calls import CallBuilder, Calls, validate_arguments
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.repair import JSON_CALL, repair_call, reread_arguments
from ferrule.dialects.reader.stream import InputStream, NotACall, Reading
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

_KINDS = ((str, "string"), (bool, "boolean"), (int | float, "number"), (dict, "object"), (list, "array"))


@dataclass(frozen=True, slots=True)
class TagLayout:
    """White space as the models' templates write it: in a section, between calls, before and after each parameter.

    `no_parameters` is added to `before` in a call without parameters; `lead` and `tail` surround each call.
    """

    section: str = "\n"
    calls: str = "\n"
    before: str = "\n"
    after: str = "\n"
    no_parameters: str = ""
    lead: str = ""
    tail: str = ""
    indent: str = ""


FLAT_LAYOUT = TagLayout(section="", calls="", before="", after="")


@dataclass(frozen=True, slots=True)
class Invokes:
    """The notation.

    `tags` are those of the section and its calls, `parameter` the tags of one argument, `end` what ends an opening tag.
    `name` and `key` are attributes; `typed` is (the attribute with a value's type, its value for strings); `owner` is
    the attribute for a tool's group, which `groups` contains as `map_groups` returns it. `begins` are texts that begin
    a call without a section, `tokens` the tags inside that a tokenizer may have tokens for. `are_rare`: values never
    contain these tags, so one whose closer is missing ends where the next begins. `escapes_names`: names are written
    with entities. `in_json`: the arguments are one JSON object; `or_json`: the whole call may be one, too, which is a
    repair in other notations. `also` is the same notation with other tags, which is also read.
    """

    tags: SectionTags
    parameter: tuple[str, str] = ("<parameter", "</parameter>")
    end: str = ">"
    name: str = "name"
    key: str = "name"
    typed: tuple[str, str] | None = None
    begins: tuple[str, ...] = ()
    layout: TagLayout = field(default_factory=TagLayout)
    tokens: tuple[str, ...] = ()
    are_rare: bool = False
    escapes_names: bool = False
    values: TagValues = field(default_factory=TagValues)
    in_json: bool = False
    or_json: bool = False
    owner: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    is_numbered: bool = False
    also: Invokes | None = None

    @property
    def with_json_values(self) -> Invokes:
        """See `StyledSyntax`."""
        return replace(self, values=replace(self.values, style="json"))

    @property
    def openers(self) -> tuple[str, ...]:
        """The section's opener, and what begins a call without one."""
        return (*self._own_openers, *(self.also.openers if self.also else ()))

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends a section, or a call outside one."""
        return (*self._own_closers, *(self.also.closers if self.also else ()))

    @property
    def _own_openers(self) -> tuple[str, ...]:
        return (*filter(None, (self.tags.open,)), *self.begins)

    @property
    def _own_closers(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.tags.close, self.tags.call_close if self.begins else "")))

    @property
    def markers(self) -> tuple[str, ...]:
        """The openers and closers, and the tags inside that a tokenizer may have tokens for."""
        return tuple(dict.fromkeys((*self._own_openers, *self._own_closers, *self.tokens)))

    @property
    def other_markers(self) -> tuple[str, ...]:
        """Those of the notation that is also read."""
        return self.also.markers if self.also else ()

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a section, or a call outside one, its opener taken."""
        if self.also is not None and opener in self.also.openers:
            yield from self.also.read(stream, calls, opener)
            return
        if opener == self.tags.open and (self.or_json or calls.repair) and (yield from stream.skip_space()) == "{":
            in_json = JsonObject(self.tags.open, self.tags.close, "", repair="" if self.or_json else JSON_CALL)
            yield from in_json.read(stream, calls, opener)
            return
        yield from read_section(stream, calls, opener, self.tags, self._read_call)

    def _read_call(self, stream: InputStream, calls: Calls, call: CallBuilder, begun: str) -> Reading[str]:
        found, is_empty = yield from read_attributes(stream, self.end, begun, escaped=self.escapes_names)
        call.set_name(self._resolve_name(calls, found))
        if is_empty:
            call.finish()
            return ""
        character = yield from stream.skip_space()
        if character and character in "{[":
            yield from self._read_json_body(stream, calls, call, character)
            return ""
        return (yield from self._read_parameters(stream, calls, call))

    def _resolve_name(self, calls: Calls, found: Mapping[str, str]) -> str:
        """The name of the tool."""
        name = found.get(self.name, "")
        if self.owner:
            return join_name(found.get(self.owner, ""), name, map_groups(calls.tools)) if name else ""
        half = name[: len(name) // 2]
        # Muse writes a name twice: `weather.weather`.
        return half if half and name == f"{half}.{half}" and calls.get_parameters(name) is None else name

    def _read_json_body(self, stream: InputStream, calls: Calls, call: CallBuilder, character: str) -> Reading[None]:
        """The arguments as one JSON object."""
        start = stream.raw.tell() if stream.raw is not None else 0
        close = self.tags.call_close
        try:
            yield from read_arguments(stream, call, character)
            if (yield from stream.skip_space()) != close[0]:
                raise NotACall(INVALID)
            yield from take_next_tag(stream, make_structural_stops(stream, close))
            call.finish()
        except NotACall as fault:
            stops = make_structural_stops(stream, close, self.tags.close, self.tags.call_open)
            yield from repair_call(stream, calls, fault, start, stops, close, reread_arguments)

    def _read_parameters(self, stream: InputStream, calls: Calls, call: CallBuilder) -> Reading[str]:
        """Read the arguments one by one, and the end of the call: its closer, or the section's if that is missing."""
        tags = make_structural_stops(stream, self.parameter[0], self.tags.call_close, self.tags.close)
        marker, is_whole = "", True
        while True:
            marker = marker or (yield from take_next_tag(stream, tags))
            if marker != self.parameter[0]:
                break
            marker = yield from self._read_parameter(stream, call)
            if marker:
                # A value cut off by its call's closer is incomplete; one before another value is not.
                is_whole = False
                if marker != self.parameter[0]:
                    call.fail(UNEXPECTED)
                    return marker if marker == self.tags.close else ""
        call.close_object()
        if is_whole and marker == self.tags.call_close:
            call.finish()
        elif calls.repair and _is_accepted(call):
            call.finish(("missing_closer",))
        else:
            call.fail(UNEXPECTED)
        return marker if marker == self.tags.close else ""

    def _read_parameter(self, stream: InputStream, call: CallBuilder) -> Reading[str]:
        """Read one argument, its tag begun; returns "", or the tag that ended its value if the closer is missing."""
        found, is_empty = yield from read_attributes(stream, self.end, escaped=self.escapes_names)
        key = found.get(self.key)
        if key is None:
            raise NotACall("no_name")
        if is_empty:
            parameter = call.begin_key(key)
            call.put_value(parameter.to_json(""), stream.at)
            return ""
        close = self.parameter[1]
        cut = (self.parameter[0], self.tags.call_close, self.tags.close) if self.are_rare else ()
        listed = (close, *filter(None, cut))
        inside = self.values.inside
        stops = (
            stream.make_stops(*listed, structural=inside)
            if close in self.tokens
            else make_structural_stops(stream, *listed, *inside)
        )
        declared = found.get(self.typed[0]) == self.typed[1] if self.typed and self.typed[0] in found else None
        marker = yield from self.values.read(stream, call, key, stops, declared)
        return "" if marker == close else marker

    @property
    def punctuation(self) -> tuple[str, ...]:
        """What may surround each call."""
        return self.tags.around

    # Writing.

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls of one message, in their section if there is one."""
        layout = self.layout
        body = layout.calls.join(
            f"{layout.lead}{self._write_call(c, at)}{layout.tail}" for at, c in enumerate(calls, 1)
        )
        return f"{self.tags.open}{layout.section}{body}{layout.section}{self.tags.close}" if self.tags.open else body

    def _write_call(self, call: ToolCall, number: int) -> str:
        text = validate_arguments(call)
        if self.in_json:
            body = f"\n{text}\n"
        else:
            layout = self.layout
            pieces = [f"{layout.indent}{self._write_argument(key, value)}" for key, value in json.loads(text).items()]
            body = (layout.before or layout.after).join(pieces) + (layout.after if pieces else layout.no_parameters)
            body = layout.before + body
        return f"{self.tags.call_open} {self._write_names(call.name, number)}{self.end}{body}{self.tags.call_close}"

    def list_value_ends(self, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """See `PlainTextSyntax`."""
        cut = (self.parameter[0], self.tags.call_close, self.tags.close) if self.are_rare else ()
        return tuple(filter(None, (self.parameter[1], *cut)))

    @property
    def text_section(self) -> tuple[str, str] | None:
        """See `SectionedTextSyntax`."""
        return (CDATA, CDATA_END) if self.values.has_cdata else None

    def _write_names(self, name: str, number: int) -> str:
        """The attributes of a call."""
        group, function = split_name(name, self.groups) if self.owner else ("", name)
        owned = f'{self.owner}="{self._write_attribute(group)}" ' if self.owner else ""
        index = f' index="{number}"' if self.is_numbered else ""
        return f'{owned}{self.name}="{self._write_attribute(function)}"{index}'

    def _write_argument(self, key: str, value: Any) -> str:
        kind = f' {self.typed[0]}="{_describe_kind(value, self.typed[1])}"' if self.typed else ""
        text = self.values.write_value(value, self.parameter[1])
        return f'{self.parameter[0]} {self.key}="{self._write_attribute(key)}"{kind}{self.end}{text}{self.parameter[1]}'

    def _write_attribute(self, text: str) -> str:
        if self.escapes_names:
            return escape(text)
        if '"' in text:
            raise DialectError(f"{text!r} can't be a name here: it contains a quote")
        return text


def _describe_kind(value: Any, of_a_string: str) -> str:
    """A value's type as an attribute: whether it is a string, or its JSON type."""
    if of_a_string == "true":
        return "true" if isinstance(value, str) else "false"
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "null")


def _is_accepted(call: CallBuilder) -> bool:
    """Whether the tool's schema, if it is known, accepts the arguments as read."""
    try:
        return call.parameters is None or call.parameters.accepts(json.loads(call.arguments))
    except (ValueError, RecursionError):
        return False


def map_groups(tools: Sequence[ToolSpec]) -> dict[str, str]:
    """The group that each tool is shown in, by the tool's name."""
    return {spec.name: (spec.group.name if spec.group else spec.name) for spec in tools}


def split_name(name: str, groups: Mapping[str, str]) -> tuple[str, str]:
    """(group, function) of a tool; one that isn't on offer may have been read as `group.function`."""
    if name in groups:
        return groups[name], name
    group, _, function = name.rpartition(".")
    return (group, function) if group and group != function else (name, name)


def join_name(group: str, function: str, groups: Mapping[str, str]) -> str:
    """The name of the tool that a call refers to: `group.function` if none on offer matches.

    A model may omit the group or invent one; but a function that it requests in another group is not this one.
    """
    full = f"{group}.{function}"
    if groups.get(function) == group:
        return function
    if full in groups:
        return full
    if function in groups:
        return full if group in groups.values() else function
    return function if group in ("", function) else full
