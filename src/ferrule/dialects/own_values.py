"""The values that a schema allows, for notations that write objects and lists in a way of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ferrule.dialects.grammar import Grammar, GrammarSequence, note_unenforced
from ferrule.dialects.reader.parameters import list_alternatives, read_parameter_type
from ferrule.dialects.schema_limits import find_dropped_keywords, find_lost_arguments, find_lost_keywords
from ferrule.dialects.value_terms import SCALARS, STRUCTURES, TYPES, join_options, list_types
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema

_DEEPEST = 6
_LIST_KEYWORDS = ("items", "minItems", "maxItems")


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
    dropped = () if types <= SCALARS else find_dropped_keywords(schema, root)
    return note_unenforced(join_options(options), dropped) if options else None


def _describe_list(
    part: Mapping[str, Any], root: JSONSchema, terms: OwnValueTerms, depth: int, *, is_only: bool
) -> Grammar | None:
    if "prefixItems" in part:
        return None
    item = _describe(part.get("items", {}), root, terms, depth + 1)
    placed = None if item is None else GrammarSequence((item,), "[]")
    found = terms.describe_list(placed, max(part.get("minItems", 0), 0 if is_only else 1), part.get("maxItems"))
    enforced = () if isinstance(part.get("items"), list) else _LIST_KEYWORDS
    return None if found is None else note_unenforced(found, find_lost_keywords(part, root, "array", enforced))


def _describe_object(
    part: Mapping[str, Any], root: JSONSchema, terms: OwnValueTerms, depth: int, *, is_only: bool
) -> Grammar | None:
    required, properties = part.get("required") or (), part.get("properties") or {}
    if not properties.keys() >= set(required):
        return None
    members = []
    for key, schema in properties.items():
        value = _describe(schema, root, terms, depth + 1)
        if value is not None:
            members.append(Member(key, GrammarSequence((value,), key), key not in required))
        elif key in required:
            return None
    found = terms.describe_object(members, may_be_empty=is_only)
    lost = find_lost_arguments(part, len(required), len(members))
    return None if found is None else note_unenforced(found, lost)
