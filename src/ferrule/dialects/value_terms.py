"""What a call may write as one argument, in the terms of grammars: for notations that quote values, and for those that
write strings as they are, up to a text that ends them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ferrule.dialects.grammar import (
    NOTHING,
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    TextUntil,
    make_text_choice,
    note_unenforced,
)
from ferrule.dialects.reader.parameters import list_alternatives, name_type, read_parameter_type
from ferrule.dialects.schema_limits import find_dropped_keywords, find_lost_keywords
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema

SCALARS = frozenset({"integer", "number", "boolean", "null"})
STRUCTURES = frozenset({"array", "object"})
TYPES = SCALARS | STRUCTURES | {"string"}
_OTHER_REFERENCE = re.compile(r'"\$ref": ("(?!#/(?:\$defs|definitions)/)[^"]*")')
_DEFINITIONS = ("$defs", "definitions")
# Readers strip a text before they look for the bracket of an object or a list.
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
_BRACKETS = "{[("


@runtime_checkable
class PlainTextSyntax(Protocol):
    """A syntax that writes strings as they are, without quotes or escapes."""

    def list_value_ends(self, names: Sequence[str]) -> tuple[str, ...]:
        """The texts that end a value, in a call of a tool whose parameters have these names."""
        ...


@runtime_checkable
class SectionedTextSyntax(Protocol):
    """A plain-text syntax in which a string may instead stand between two texts of its own."""

    @property
    def text_section(self) -> tuple[str, str] | None:
        """These texts; None if there are none after all."""
        ...


@runtime_checkable
class OwnValueSyntax(Protocol):
    """A syntax that writes all values in a way of its own, objects and lists included."""

    def describe_value(self, schema: Any, root: JSONSchema) -> Grammar:
        """The texts of the values that a schema allows, whose references are to `root`. Raises `DialectError` for
        values that can't be described."""
        ...


@dataclass(frozen=True, slots=True)
class ValueStyle:
    """How values are written. `is_plain`: strings without quotes; the others are Python literals where that is said,
    and JSON elsewhere. `ends` are the texts that end a plain value, `section` is that of `SectionedTextSyntax`."""

    is_plain: bool = False
    has_python_scalars: bool = False
    has_python_structures: bool = False
    ends: tuple[str, ...] = ()
    section: tuple[str, str] | None = None

    def describe(self, schema: Any, root: JSONSchema, types: Collection[str], write: Callable[[str], str]) -> Grammar:
        """The values of these types that a schema allows; `write` writes one of its strings."""
        described = list(self._describe_types(schema, root, types, write))
        # JSON that is described by the whole schema enforces how its alternatives are combined.
        is_whole = any(list_types(schema, root) <= own for own, value in described if isinstance(value, JsonValue))
        options = join_options([value for _, value in described])
        return options if is_whole else note_unenforced(options, find_dropped_keywords(schema, root))

    def _describe_types(
        self, schema: Any, root: JSONSchema, types: Collection[str], write: Callable[[str], str]
    ) -> Iterator[tuple[set[str], Grammar]]:
        """The values of these types, those of some of them at a time."""
        if not self.is_plain:
            yield set(types), JsonValue(select_types(schema, root, types), self.has_python_scalars)
            return
        if "string" in types:
            yield {"string"}, self.describe_text(schema, root, types, write)
        # Null is always JSON's: `None` may be a string. So may `True` where the schema allows strings.
        has_python_scalars = self.has_python_scalars and "string" not in list_types(schema, root)
        ways = ((SCALARS - {"null"}, has_python_scalars), (STRUCTURES, self.has_python_structures))
        for is_python in (False, True):
            kept = {one for group, way in ways if way is is_python for one in group}
            kept |= set() if is_python else {"null"}
            kept &= set(types)
            if kept:
                yield kept, JsonValue(select_types(schema, root, kept), is_python, self.ends)

    def describe_text(
        self, schema: Any, root: JSONSchema, types: Collection[str], write: Callable[[str], str]
    ) -> Grammar:
        choices = list_strings(schema, root)
        if choices:
            texts = [write(choice) for choice in choices]
            for text in texts:
                if self.section is None and any(end in text for end in self.ends):
                    raise DialectError(f"{text!r} would end before its end")
            return note_unenforced(make_text_choice(texts), find_lost_keywords(schema, root, "string"))
        if STRUCTURES.intersection(types):
            # A text that looks like an object or a list would be read as one, whatever it contains.
            return GrammarChoice((NOTHING, make_plain_text(schema, root, self.ends, _BRACKETS)))
        if self.section is None:
            return make_text(schema, root, self.ends)
        begin, end = self.section
        inside = GrammarSequence((LiteralText(begin), make_text(schema, root, (end,)), LiteralText(end)))
        return GrammarChoice((make_text(schema, root, (*self.ends, begin)), inside))


def make_text(schema: Any, root: JSONSchema, ends: Sequence[str]) -> Grammar:
    """Any text up to one of `ends`, for a string of this schema."""
    return TextUntil(tuple(ends), unenforced=find_lost_keywords(schema, root, "string"))


def make_plain_text(schema: Any, root: JSONSchema, ends: Sequence[str], others: str) -> Grammar:
    """Any text, for a string of this schema, up to one of `ends` that isn't empty and begins neither with white space
    nor with one of `others`."""
    firsts = "".join(sorted({*others, *_SPACE, *(end[0] for end in ends)}))
    return GrammarSequence((CharacterSet(firsts, is_excluded=True), make_text(schema, root, ends)))


def join_options(options: Sequence[Grammar]) -> Grammar:
    """One of these, or the only one."""
    return options[0] if len(options) == 1 else GrammarChoice(tuple(options))


def list_types(schema: Any, root: JSONSchema) -> frozenset[str]:
    """The JSON types that a schema allows: all if it names none, and numbers instead of integers if it allows both."""
    types = read_parameter_type(schema, root).types & TYPES or TYPES
    return types - {"integer"} if "number" in types else types


def list_strings(schema: Any, root: JSONSchema) -> list[str]:
    """The strings that a schema allows; empty if it allows others, or none."""
    found: list[str] = []
    for part in list_alternatives(schema, root):
        values = _list_choices(part)
        if values is None and "string" in list_types(part, root):
            return []
        found += [value for value in values or () if isinstance(value, str)]
    return found


def select_types(schema: Any, root: JSONSchema, types: Collection[str]) -> JSONSchema:
    """The schema of those values that have one of these types, with the definitions that it refers to. Raises
    `DialectError` if it refers to anything else."""
    other = _OTHER_REFERENCE.search(json.dumps(schema))
    if other is not None:
        raise DialectError(f"an argument's schema refers to {other[1]}, and can only refer to definitions")
    definitions = {word: root[word] for word in _DEFINITIONS if word in root}
    if isinstance(schema, Mapping) and list_types(schema, root) <= set(types):
        return {**definitions, **schema}
    wanted = {*types, "integer"} if "number" in types else set(types)
    parts = []
    for part in list_alternatives(schema, root):
        kept = list_types(part, root) & wanted
        if not kept:
            continue
        values = _list_choices(part)
        selected = {**part, "type": sorted(kept)}
        if values is not None:
            selected["enum"] = [one for one in values if {name_type(one), _widen(name_type(one))} & kept]
        parts.append(selected)
    parts = parts or [{"type": sorted(types)}]
    return {**definitions, **parts[0]} if len(parts) == 1 else {**definitions, "anyOf": parts}


def _widen(name: str) -> str:
    return "number" if name == "integer" else name


def _list_choices(part: Mapping[str, Any]) -> list[Any] | None:
    """The values that one alternative of a schema is limited to; None if it isn't."""
    if "const" in part:
        return [part["const"]]
    values = part.get("enum")
    return values if isinstance(values, list) else None
