"""Values that a schema lists, as far as they fit its other keywords."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ferrule.dialects.grammar import Grammar, make_text_choice
from ferrule.dialects.notations.pythonic import write_literal
from ferrule.dialects.value_grammar.limits import Unsatisfiable
from ferrule.dialects.value_grammar.parts import Context, Part, Parts
from ferrule.dialects.value_grammar.values import JSON_TYPES, list_types, name_type
from ferrule.errors import DialectError
from ferrule.tools.schema_validator import TooManySteps, make_validator

_CHECKED = frozenset({
    "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties",
    "propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
    "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems",
    "not", "if",
})  # fmt: skip
"""The keywords for which the listed values are validated."""


def lower_enumeration(values: Iterable[Any], parts: Parts, context: Context) -> Grammar:
    """One of these values, as far as it fits all parts. Raises `Unsatisfiable` if none does."""
    types = list_types((part.schema for part in parts), JSON_TYPES)
    found = [value for value in values if name_type(value) in types and _is_writable(value)]
    for part in parts:
        if not _CHECKED.isdisjoint(part.schema):
            found = _filter(found, part, context)
    if not found:
        raise Unsatisfiable(f"{parts[0].place or 'the schema'}: no listed value fits the other keywords")
    return make_text_choice(write_value(value, context.is_python) for value in found)


def write_value(value: Any, is_python: bool) -> str:
    """A value in the style of all of them."""
    return write_literal(value) if is_python else json.dumps(value, ensure_ascii=False)


def _is_writable(value: Any) -> bool:
    """Whether a text can hold the value: no half of a surrogate pair, no number that isn't finite."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= one <= "\udfff" for one in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(_is_writable(key) and _is_writable(inner) for key, inner in value.items())
    return all(map(_is_writable, value)) if isinstance(value, list | tuple) else True


def _filter(values: list[Any], part: Part, context: Context) -> list[Any]:
    """The values that fit a part."""
    from referencing.exceptions import Unresolvable

    validator, reason = make_validator(context.document, part.schema)
    if validator is None:
        raise DialectError(f"{part.place or 'the schema'}: its values can't be checked: {reason}")
    found = []
    for value in values:
        try:
            is_valid = not validator.errors(value)
        except Unresolvable:  # a reference that isn't followed; it is noted as a loss
            is_valid = True
        except (RecursionError, TooManySteps):
            is_valid = False
        if is_valid:
            found.append(value)
    return found
