"""Lowers the values of one schema: those that it lists, if they fit its other keywords, or others by their types."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ferrule.capabilities import Loss
from ferrule.dialects.grammar import Grammar, make_text_choice
from ferrule.dialects.notations.pythonic import write_literal
from ferrule.dialects.value_grammar.any_values import BOOLEANS, NULLS, ValueLimits, make_any_value
from ferrule.dialects.value_grammar.containers import lower_array, lower_object
from ferrule.dialects.value_grammar.numbers import lower_number
from ferrule.dialects.value_grammar.references import References
from ferrule.dialects.value_grammar.schema_keywords import JSON_TYPES, list_types, list_values, name_type
from ferrule.dialects.value_grammar.schema_parts import LoweringContext, Parts, Resolver, SchemaPart
from ferrule.dialects.value_grammar.strings import lower_string
from ferrule.dialects.value_grammar.terms import Unsatisfiable, choose
from ferrule.errors import DialectError
from ferrule.tools.schema_validator import TooManySteps, make_validator
from ferrule.toolspec import JSONSchema

_KEYWORDS: Mapping[str, frozenset[str]] = {
    "object": frozenset(
        {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"}
    ),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "fraction": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
}
"""What a schema without a type is about."""
_NUMBERS = frozenset({"integer", "fraction"})
_UNENFORCED = ("not", "if", "unevaluatedItems", "unevaluatedProperties")
_CHECKED = frozenset({
    "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties",
    "propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
    "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems",
    "not", "if",
})  # fmt: skip
"""The keywords for which the listed values are validated."""


class ValueLowering:
    """Lowers the values of one schema, sharing what is the same; `losses` are the keywords that aren't enforced.

    Schemas are told apart by identity, so the schema has to stay as it is.
    """

    def __init__(self, schema: JSONSchema, is_python: bool, limits: ValueLimits) -> None:
        self._schema, self._is_python, self._limits = schema, is_python, limits
        self._references = References(schema)
        self._resolver = Resolver(self._references, self._note_loss)
        self._context = LoweringContext(schema, is_python, limits, self.lower, self._note_loss)
        self._known: dict[tuple[tuple[int, int], ...], Grammar | Unsatisfiable] = {}
        self.losses: dict[Loss, None] = {}

    def lower_document(self) -> Grammar:
        """Lower the whole schema. Raises `Unsatisfiable`, `DialectError` and `RecursionError`."""
        recursion = self._limits.recursion
        while True:
            try:
                return self.lower((SchemaPart(self._schema, "", recursion),))
            except Unsatisfiable:
                # The least deep value follows no reference twice.
                if recursion >= self._references.recursive_count:
                    raise
                recursion = self._references.recursive_count

    def lower(self, parts: Parts) -> Grammar:
        """Lower a value that fits all of these parts. Raises `Unsatisfiable`."""
        key = tuple((id(part.schema), part.recursion) for part in parts)
        known = self._known.get(key)
        if known is None:
            try:
                known = choose(self._collect(parts))
            except Unsatisfiable as error:
                known = error
            self._known[key] = known
        if isinstance(known, Unsatisfiable):
            raise known
        return known

    def _collect(self, parts: Parts) -> list[Grammar]:
        options: list[Grammar] = []
        reasons: list[Unsatisfiable] = []
        for alternative in self._resolver.resolve(parts):
            try:
                options += self._lower_alternative(alternative)
            except Unsatisfiable as error:
                reasons.append(error)
        if not options:
            raise reasons[0]
        return options

    def _lower_alternative(self, parts: Parts) -> list[Grammar]:
        schemas = [part.schema for part in parts]
        if (values := list_values(schemas)) is not None:
            return [lower_enumeration(values.values(), parts, self._context)]
        words = frozenset[str]().union(*schemas)
        types = list_types(schemas, frozenset())
        if not any("type" in schema for schema in schemas):
            types = frozenset(name for name, keywords in _KEYWORDS.items() if not keywords.isdisjoint(words))
        for part in parts:
            for word in _UNENFORCED:
                if word in part.schema:
                    self._note_loss(part, word, "")
        if not types and "type" not in words:
            return [make_any_value(self._limits, self._is_python, self._limits.value_depth)]
        if not types:
            raise Unsatisfiable(f"{parts[0].place or 'the schema'}: its types exclude each other")
        return self._lower_types(parts, types)

    def _lower_types(self, parts: Parts, types: frozenset[str]) -> list[Grammar]:
        options: list[Grammar] = []
        reasons: list[Unsatisfiable] = []
        for name in ("string", "number", "boolean", "object", "array", "null"):
            if name not in types and not (name == "number" and types & _NUMBERS):
                continue
            try:
                options.append(self._lower_type(parts, name, types))
            except Unsatisfiable as error:
                reasons.append(error)
        if not options:
            raise reasons[0]
        return options

    def _lower_type(self, parts: Parts, name: str, types: frozenset[str]) -> Grammar:
        if name == "string":
            return lower_string(parts, self._context)
        if name == "number":
            return lower_number(parts, "fraction" not in types, self._context)
        if name == "object":
            return lower_object(parts, self._context)
        if name == "array":
            return lower_array(parts, self._context)
        return (BOOLEANS if name == "boolean" else NULLS)[self._is_python]

    def _note_loss(self, part: SchemaPart, word: str, reason: str) -> None:
        place = f"{part.place}.{word}".removeprefix(".")
        self.losses[Loss("schema", f"{place} isn't enforced{reason and ': '}{reason}")] = None


def lower_enumeration(values: Iterable[Any], parts: Parts, context: LoweringContext) -> Grammar:
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


def _filter(values: list[Any], part: SchemaPart, context: LoweringContext) -> list[Any]:
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
