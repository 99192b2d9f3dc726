"""Lowers the values of one schema, by their types."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.capabilities import Loss
from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.any_values import BOOLEANS, NULLS, make_any_value
from ferrule.dialects.value_grammar.arrays import lower_array
from ferrule.dialects.value_grammar.enumerations import lower_enumeration
from ferrule.dialects.value_grammar.limits import Unsatisfiable, ValueLimits
from ferrule.dialects.value_grammar.numbers import lower_number
from ferrule.dialects.value_grammar.objects import lower_object
from ferrule.dialects.value_grammar.parts import Context, Part, Parts, Resolver
from ferrule.dialects.value_grammar.references import References
from ferrule.dialects.value_grammar.strings import lower_string
from ferrule.dialects.value_grammar.terms import choose
from ferrule.dialects.value_grammar.values import list_types, list_values
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


class ValueLowering:
    """Lowers the values of one schema, sharing what is the same; `losses` are the keywords that aren't enforced.

    Schemas are told apart by identity, so the schema has to stay as it is.
    """

    def __init__(self, schema: JSONSchema, is_python: bool, limits: ValueLimits) -> None:
        self._schema, self._is_python, self._limits = schema, is_python, limits
        self._references = References(schema)
        self._resolver = Resolver(self._references, self._note_loss)
        self._context = Context(schema, is_python, limits, self.lower, self._note_loss)
        self._known: dict[tuple[tuple[int, int], ...], Grammar | Unsatisfiable] = {}
        self.losses: dict[Loss, None] = {}

    def lower_document(self) -> Grammar:
        """Lower the whole schema. Raises `Unsatisfiable`, `DialectError` and `RecursionError`."""
        recursion = self._limits.recursion
        while True:
            try:
                return self.lower((Part(self._schema, "", recursion),))
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

    def _note_loss(self, part: Part, word: str, reason: str) -> None:
        place = f"{part.place}.{word}".removeprefix(".")
        self.losses[Loss("schema", f"{place} isn't enforced{reason and ': '}{reason}")] = None
