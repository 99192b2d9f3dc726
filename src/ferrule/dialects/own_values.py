"""The values that a schema allows, for notations that write objects and lists in a way of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.reader.parameters import list_alternatives, read_parameter_type
from ferrule.dialects.value_terms import STRUCTURES, TYPES, join_options, list_types
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema

_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Member:
    """A value of an object, with its key."""

    key: str
    value: Grammar
    is_optional: bool


class OwnValueTerms(Protocol):
    """How one notation writes values. None stands for values that it can't write."""

    def describe_plain(self, schema: Any, root: JSONSchema, types: frozenset[str]) -> Grammar:
        """The values that are neither objects nor lists; `types` are all that the schema allows."""
        ...

    def describe_list(self, item: Grammar | None, minimum: int, maximum: int | None) -> Grammar | None:
        """Lists of so many items."""
        ...

    def describe_object(self, members: Sequence[Member], *, may_be_empty: bool) -> Grammar | None:
        """Objects with these members in their order, without those that may be left out or with them."""
        ...


def describe_own_value(schema: Any, root: JSONSchema, terms: OwnValueTerms) -> Grammar:
    """The values that a schema allows: no objects with keys that it doesn't name, and nothing nested deeper than six
    levels. Raises `DialectError` if these are all."""
    found = _describe(schema, root, terms, 0)
    if found is None:
        raise DialectError("an argument takes objects or lists whose form its schema doesn't say, or without end")
    return found


def _describe(schema: Any, root: JSONSchema, terms: OwnValueTerms, depth: int) -> Grammar | None:
    if depth > _DEEPEST:
        return None
    types = list_types(schema, root)
    options = [terms.describe_plain(schema, root, types)] if types - STRUCTURES else []
    if not read_parameter_type(schema, root).types:
        return join_options(options)
    is_only = len(types) == 1
    for part in list_alternatives(schema, root):
        own = list_types(part, root)
        if "enum" in part or "const" in part:
            continue
        found = []
        if "array" in own and own != TYPES:
            found.append(_describe_list(part, root, terms, depth, is_only=is_only))
        if "object" in own and own != TYPES:
            found.append(_describe_object(part, root, terms, depth, is_only=is_only))
        options += [one for one in found if one is not None]
    return join_options(options) if options else None


def _describe_list(
    part: Mapping[str, Any], root: JSONSchema, terms: OwnValueTerms, depth: int, *, is_only: bool
) -> Grammar | None:
    if "prefixItems" in part:
        return None
    item = _describe(part.get("items", {}), root, terms, depth + 1)
    return terms.describe_list(item, max(part.get("minItems", 0), 0 if is_only else 1), part.get("maxItems"))


def _describe_object(
    part: Mapping[str, Any], root: JSONSchema, terms: OwnValueTerms, depth: int, *, is_only: bool
) -> Grammar | None:
    required = part.get("required") or ()
    members = []
    for key, schema in (part.get("properties") or {}).items():
        value = _describe(schema, root, terms, depth + 1)
        if value is not None:
            members.append(Member(key, value, key not in required))
        elif key in required:
            return None
    return terms.describe_object(members, may_be_empty=is_only)
