"""Calls whose arguments are tags with the arguments' names, nested like their values: MiniMax M3.

Each `<` of a tag is preceded by the notation's own token, so text may contain anything that looks like a tag. Lists are
repeated `<item>` tags. A string argument is emitted as it comes; nested values are read as a whole and typed by the
schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ferrule.conversation import ToolCall
from ferrule.dialects.call_grammar import list_arguments
from ferrule.dialects.grammar import (
    NOTHING,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    MarkerText,
    Repetition,
)
from ferrule.dialects.notations.sections import (
    UNEXPECTED,
    SectionTags,
    make_structural_stops,
    read_attributes,
    read_plain_text,
    read_section,
    take_next_tag,
)
from ferrule.dialects.own_values import Member, describe_own_value
from ferrule.dialects.reader.calls import CallBuilder, Calls, escape_json, validate_arguments
from ferrule.dialects.reader.json import INVALID
from ferrule.dialects.reader.parameters import ParameterType, find_subschema, read_parameter_type
from ferrule.dialects.reader.stream import EndOfText, InputStream, NotACall, Reading
from ferrule.dialects.value_terms import SCALARS, ValueStyle, join_options, select_types
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema

_DEEPEST = 127
_TEXT = "$text"


@dataclass(slots=True)
class _Node:
    """A tag that was read: its text, and the tags inside it."""

    name: str
    text: StringIO = field(default_factory=StringIO)
    children: list[_Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NestedTags:
    """The notation; `token` precedes each tag."""

    token: str = "]<]minimax[>["

    @property
    def _tags(self) -> SectionTags:
        token = self.token
        return SectionTags(f"{token}<tool_call>", f"{token}</tool_call>", f"{token}<invoke", f"{token}</invoke>")

    @property
    def openers(self) -> tuple[str, ...]:
        """What begins a section of calls."""
        return (self._tags.open,)

    @property
    def closers(self) -> tuple[str, ...]:
        """What ends one."""
        return (self._tags.close,)

    @property
    def markers(self) -> tuple[str, ...]:
        """All of its tags begin like the last two."""
        return (*self.openers, *self.closers, f"{self.token}<", f"{self.token}</")

    def read(self, stream: InputStream, calls: Calls, opener: str) -> Reading[None]:
        """Read a section of calls, its opener taken."""
        yield from read_section(stream, calls, opener, self._tags, self._read_call)

    def _read_call(self, stream: InputStream, calls: Calls, call: CallBuilder, begun: str) -> Reading[str]:  # noqa: ARG002
        found, _ = yield from read_attributes(stream, ">", begun)
        call.set_name(found.get("name", ""))
        tag = make_structural_stops(stream, f"{self.token}<")
        while True:
            yield from take_next_tag(stream, tag)
            name = yield from self._read_name(stream)
            if name == "/invoke":
                break
            if name.startswith("/"):
                raise NotACall(UNEXPECTED)
            yield from self._read_argument(stream, call, name)
        call.close_object()
        call.finish()
        return ""

    def _read_name(self, stream: InputStream) -> Reading[str]:
        """The name of a tag that has begun, with the slash that makes it a closer."""
        text = StringIO()
        if not (
            yield from stream.take_until(
                make_structural_stops(stream, ">"), lambda end: text.write(stream.take_framing(end))
            )
        ):
            raise EndOfText
        if not text.getvalue():
            raise NotACall(UNEXPECTED)
        return text.getvalue()

    def _read_argument(self, stream: InputStream, call: CallBuilder, key: str) -> Reading[None]:
        parameter = call.begin_key(key)
        tag = make_structural_stops(stream, f"{self.token}<")
        if parameter.is_string:
            call.put_value('"', stream.at)
            yield from read_plain_text(stream, tag, lambda piece, end: call.put(escape_json(piece), end))
            if (yield from self._read_name(stream)) != f"/{key}":
                raise NotACall(UNEXPECTED)
            call.end_string()
            return
        node = yield from self._read_node(stream, key)
        root = call.parameters.schema if call.parameters else None
        try:
            value = _convert_node(node, find_subschema(root, key, root), root or {}, parameter)
            written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (ValueError, RecursionError) as error:
            # A number that is too large, or lists nested deeper than readers allow.
            raise NotACall(INVALID) from error
        call.put_value(written, stream.at)

    def _read_node(self, stream: InputStream, key: str) -> Reading[_Node]:
        """Read an opened tag to its end."""
        root = _Node(key)
        opened = [root]
        tag = make_structural_stops(stream, f"{self.token}<")
        while opened:
            node = opened[-1]

            def keep(piece: str, end: int, node: _Node = node) -> None:
                node.text.write(piece)
                stream.take_framing(end)

            yield from read_plain_text(stream, tag, keep)
            name = yield from self._read_name(stream)
            if name == f"/{node.name}":
                opened.pop()
            elif name.startswith("/") or len(opened) == _DEEPEST + 1:
                raise NotACall(UNEXPECTED)
            else:
                child = _Node(name)
                node.children.append(child)
                opened.append(child)
        return root

    def describe_value(self, schema: Any, root: JSONSchema) -> Grammar:
        """See `OwnValueSyntax`."""
        return describe_own_value(schema, root, self)

    def describe_plain(self, schema: Any, root: JSONSchema, types: frozenset[str]) -> Grammar:
        """Plain text, typed by the schema."""
        style = ValueStyle(is_plain=True, ends=(f"{self.token}<",))
        options = [style.describe_text(schema, root, types, str)] if "string" in types else []
        if scalars := types & SCALARS:
            options.append(JsonValue(select_types(schema, root, scalars)))
        return join_options(options)

    def describe_list(self, item: Grammar | None, minimum: int, maximum: int | None) -> Grammar | None:
        """`<item>` tags."""
        if item is None or maximum == 0:
            return NOTHING if minimum == 0 else None
        return Repetition(self._describe_tag("item", item), minimum, maximum)

    def describe_object(self, members: Sequence[Member], *, may_be_empty: bool) -> Grammar | None:
        """A tag for each member."""
        optional = [one.is_optional for one in members]
        listed = list_arguments([self._describe_tag(one.key, one.value) for one in members], optional)
        if may_be_empty or not all(optional):
            return listed
        # Without any tag it would be read as text.
        filled = listed.options[:-1] if isinstance(listed, GrammarChoice) else ()
        return GrammarChoice(filled) if filled else None

    def _describe_tag(self, key: str, value: Grammar) -> Grammar:
        opener, closer = MarkerText(f"{self.token}<"), MarkerText(f"{self.token}</")
        return GrammarSequence((opener, LiteralText(f"{key}>"), value, closer, LiteralText(f"{key}>")))

    def write(self, calls: Sequence[ToolCall]) -> str:
        """The calls of one message, in one section."""
        tags = self._tags
        written = "".join(self._write_call(call) for call in calls)
        return f"{tags.open}\n{written}{tags.close}"

    def _write_call(self, call: ToolCall) -> str:
        members = self._write_members(json.loads(validate_arguments(call)))
        return f'{self._tags.call_open} name="{call.name}">{members}{self._tags.call_close}\n'

    def _write_members(self, value: Any) -> str:
        """The text between the tags of a value."""
        if isinstance(value, dict):
            return "".join(self._write_tag(key, item) for key, item in value.items())
        if isinstance(value, list):
            return "".join(self._write_tag("item", item) for item in value)
        return value if isinstance(value, str) else json.dumps(value)

    def _write_tag(self, key: str, value: Any) -> str:
        if not key or key.startswith("/") or ">" in key:
            raise DialectError(f"{key!r} can't be the name of a tag")
        return f"{self.token}<{key}>{self._write_members(value)}{self.token}</{key}>"


def _convert_node(node: _Node, schema: Any, root: Mapping[str, Any], parameter: ParameterType) -> Any:
    """The value that a tag represents under a schema."""
    text = node.text.getvalue()
    types = parameter.types
    if not node.children:
        if not text and len(types) == 1 and types <= {"array", "object"}:
            return [] if "array" in types else {}
        return json.loads(parameter.to_json(text))
    if "array" in types and all(child.name == "item" for child in node.children):
        items = find_subschema(schema, None, root)
        return [_convert_node(child, items, root, read_parameter_type(items, root)) for child in node.children]
    found: dict[str, Any] = {}
    many: set[str] = set()
    for child in node.children:
        part = find_subschema(schema, child.name, root)
        value = _convert_node(child, part, root, read_parameter_type(part, root))
        if child.name not in found:
            found[child.name] = value
        elif child.name in many:
            found[child.name].append(value)
        else:
            many.add(child.name)
            found[child.name] = [found[child.name], value]
    if text.strip():
        key = _TEXT
        while key in found:
            key = f"${key}"
        found[key] = text
    return found
