"""The keywords of schemas that limit values, so that those that a notation doesn't enforce are named.

Notations that don't write values as JSON take schemas apart: into alternatives, and these into types. All keywords that
limit a type count, except those that a writer says it enforces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from ferrule.dialects.reader.parameters import list_alternatives, read_parameter_type, resolve_reference
from ferrule.toolspec import JSONSchema

_COMBINING = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef", "$recursiveRef"})
_BY_TYPE: Mapping[str, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "boolean": frozenset(),
    "array": frozenset({
        "items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems",
        "contains", "minContains", "maxContains",
    }),
    "object": frozenset({
        "properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties",
        "propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
    }),
}  # fmt: skip
_VALIDATING = frozenset({"type", "enum", "const"}).union(_COMBINING, *_BY_TYPE.values())
_CALL_KEYWORDS = frozenset({"properties", "required", "additionalProperties", "unevaluatedProperties"})
"""What a call fits that has none but the named arguments, and all that are required."""
_NONE_IF_EMPTY = frozenset({
    "uniqueItems", "minItems", "minContains", "minLength", "minProperties", "required", "properties", "allOf",
    "patternProperties", "dependentRequired", "dependentSchemas", "dependencies", "pattern", "format",
})  # fmt: skip
"""Which allow any value if they are false, zero or empty."""


def find_lost_arguments(parameters: JSONSchema, least: int, most: int) -> tuple[str, ...]:
    """The keywords of a tool's parameters that calls may not fit which have `least` to `most` of the named arguments,
    and all that are required. The same for an object inside them."""
    lost = _list_limits(parameters) & (_BY_TYPE["object"] | _COMBINING | {"enum", "const"}) - _CALL_KEYWORDS
    return _sort(lost - _list_met_counts(parameters, least, most))


def find_lost_keywords(schema: Any, root: JSONSchema, kind: str, enforced: Sequence[str] = ()) -> tuple[str, ...]:
    """The keywords that limit values of one type in the alternatives of a schema, without those `enforced`. Numbers are
    those of `integer` too."""
    words = (_BY_TYPE[kind] | _COMBINING).difference(enforced)
    parts = (part for part in list_alternatives(schema, root) if kind in _list_types(part, root))
    return _sort({word for part in parts for word in _list_limits(part) & words})


def find_lost_text_keywords(schema: Any, root: JSONSchema) -> tuple[str, ...]:
    """The keywords of a string's schema that any text may not fit."""
    return _sort({*find_dropped_keywords(schema, root), *find_lost_keywords(schema, root, "string")})


def is_limited(schema: JSONSchema) -> bool:
    """Whether a schema says more than a type."""
    return not _list_limits(schema) <= {"type"}


def find_dropped_keywords(schema: Any, root: JSONSchema) -> tuple[str, ...]:
    """The keywords that are in none of a schema's alternatives, as they limit several or combine them."""
    return _sort(set(_list_dropped(schema, root, set())))


def _list_dropped(schema: Any, root: JSONSchema, seen: set[str]) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    limits = _list_limits(schema)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from limits - {"$ref"}
        target = resolve_reference(reference, root)
        if target is None:
            yield "$ref"
        if reference not in seen:
            seen.add(reference)
            yield from _list_dropped(target, root, seen)
        return
    lists = {word: schema[word] for word in ("anyOf", "oneOf", "allOf") if isinstance(schema.get(word), list)}
    if "type" in schema or not any(lists.values()):
        return
    yield from limits - lists.keys()
    if len(lists) > 1 or len(lists.get("allOf", ())) > 1:
        yield from lists.keys() - {"anyOf"}
    if not _are_exclusive(lists.get("oneOf", ()), root):
        yield "oneOf"
    for branches in lists.values():
        for branch in branches:
            yield from _list_dropped(branch, root, seen)


def _are_exclusive(options: Sequence[Any], root: JSONSchema) -> bool:
    """Whether it is plain that no value fits two of the options: they have other types, or list other values."""
    for one, other in combinations(options, 2):
        ours, theirs = _list_values(one, root), _list_values(other, root)
        have_other_values = bool(ours and theirs) and ours.isdisjoint(theirs)
        if not have_other_values and not _list_types(one, root).isdisjoint(_list_types(other, root)):
            return False
    return True


def _list_values(schema: Any, root: JSONSchema) -> set[str]:
    return {json.dumps(choice, sort_keys=True) for choice in read_parameter_type(schema, root).choices}


def _list_types(schema: Any, root: JSONSchema) -> frozenset[str]:
    """The types that a schema allows, an integer being a number."""
    types = read_parameter_type(schema, root).types - {"any"} or {*_BY_TYPE, "null"}
    return frozenset("number" if one == "integer" else one for one in types)


def _list_limits(schema: JSONSchema) -> frozenset[str]:
    """The keywords of one schema that may limit its values."""
    return frozenset(word for word in _VALIDATING & schema.keys() if word not in _NONE_IF_EMPTY or schema[word])


def _list_met_counts(schema: JSONSchema, least: int, most: int) -> set[str]:
    """Which numbers of properties any object with `least` to `most` of them has."""
    met = {"minProperties"} if schema.get("minProperties", 0) <= least else set()
    return met | ({"maxProperties"} if schema.get("maxProperties", most) >= most else set())


def _sort(words: Iterator[str] | set[str] | frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(words))
