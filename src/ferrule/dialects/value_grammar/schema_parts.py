"""Schemas taken apart: what a value must fit at once, with references, `allOf`, `anyOf` and `oneOf` resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.any_values import ValueLimits
from ferrule.dialects.value_grammar.references import References
from ferrule.dialects.value_grammar.schema_keywords import JSON_TYPES, check_keywords, list_types, list_values
from ferrule.dialects.value_grammar.terms import Unsatisfiable
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema

MAX_ALTERNATIVES = 64
"""The maximum number of alternatives that several `anyOf` of one schema multiply to; those after it aren't written."""


@dataclass(frozen=True, slots=True)
class SchemaPart:
    """A schema that a value must fit, where it is, and how many recursive references may still be followed in it."""

    schema: Any
    place: str
    recursion: int

    def descend(self, schema: Any, name: str) -> SchemaPart:
        """A schema inside this one."""
        return SchemaPart(schema, f"{self.place}.{name}".removeprefix("."), self.recursion)


Parts: TypeAlias = "tuple[SchemaPart, ...]"
NoteLoss: TypeAlias = "Callable[[SchemaPart, str, str], None]"
"""Notes that a part's keyword isn't enforced, and why; the reason may be empty."""


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """What lowering a value of one type needs: the whole `document`, and how values inside it are lowered."""

    document: JSONSchema
    is_python: bool
    limits: ValueLimits
    lower: Callable[[Parts], Grammar]
    note_loss: NoteLoss


class Resolver:
    """Finds the alternatives of a value: each is parts that it must fit at once, of which only the keywords of their
    own are left to consider."""

    def __init__(self, references: References, note_loss: NoteLoss) -> None:
        self._references = references
        self._note_loss = note_loss
        self._known: dict[tuple[int, int], list[Parts]] = {}
        self._compared: set[int] = set()

    def resolve(self, parts: Parts) -> list[Parts]:
        """The alternatives, at least one. Raises `Unsatisfiable` if there is none, `DialectError` for what isn't a
        schema."""
        alternatives: list[Parts] = [()]
        for part in parts:
            alternatives = _multiply(alternatives, self._resolve_part(part))
        return alternatives

    def _resolve_part(self, part: SchemaPart) -> list[Parts]:
        if isinstance(part.schema, bool):
            if not part.schema:
                raise Unsatisfiable(f"{part.place or 'the schema'}: `false` allows no value")
            return [()]
        if not isinstance(part.schema, Mapping):
            raise DialectError(f"{part.place or 'the schema'}: {part.schema!r:.60} isn't a schema; write an object")
        check_keywords(part.schema, part.place)
        key = id(part.schema), part.recursion
        if key not in self._known:
            alternatives: list[Parts] = [(part,)]
            for more in self._resolve_keywords(part):
                alternatives = _multiply(alternatives, more)
            self._known[key] = alternatives
        return self._known[key]

    def _resolve_keywords(self, part: SchemaPart) -> Iterator[list[Parts]]:
        schema = part.schema
        if isinstance(reference := schema.get("$ref"), str):
            yield self._follow(part, reference)
        for word in ("$dynamicRef", "$recursiveRef"):
            if word in schema:
                self._note_loss(part, word, "")
        for place, one in enumerate(schema.get("allOf", ())):
            yield self._resolve_part(part.descend(one, f"allOf[{place}]"))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                yield self._collect_options(part, word)

    def _follow(self, part: SchemaPart, reference: str) -> list[Parts]:
        try:
            target = self._references.find(reference)
        except LookupError:
            self._note_loss(part, "$ref", f"{reference!r} isn't in this schema")
            return [()]
        is_recursive = self._references.is_recursive(reference)
        if is_recursive and part.recursion == 0:
            raise Unsatisfiable(f"{part.place or 'the schema'}: `$ref` leads back to itself without an end")
        place = reference.partition("#")[2].strip("/").replace("/", ".")
        return self._resolve_part(SchemaPart(target, place, part.recursion - is_recursive))

    def _collect_options(self, part: SchemaPart, word: str) -> list[Parts]:
        options: list[list[Parts]] = []
        reason = Unsatisfiable(f"{part.place or 'the schema'}: `{word}` has no options")
        for place, one in enumerate(part.schema[word]):
            try:
                options.append(self._resolve_part(part.descend(one, f"{word}[{place}]")))
            except Unsatisfiable as error:
                reason = error
        if not options:
            raise reason
        if word == "oneOf":
            self._compare_options(part, options)
        return [alternative for option in options for alternative in option]

    def _compare_options(self, part: SchemaPart, options: list[list[Parts]]) -> None:
        """Note a loss if a value may fit several options of `oneOf`."""
        # What recursion cuts off was compared where it wasn't yet.
        is_complete = len(options) == sum(one is not False for one in part.schema["oneOf"])
        if not is_complete and id(part.schema) in self._compared:
            return
        self._compared.add(id(part.schema))
        if not is_complete or not _are_exclusive(options, part.schema):
            self._note_loss(part, "oneOf", "a value may fit several of its options")


def _multiply(alternatives: list[Parts], more: list[Parts]) -> list[Parts]:
    if len(alternatives) == 1 or len(more) == 1:
        return [one + other for one in alternatives for other in more]
    return [one + other for one in alternatives for other in more][:MAX_ALTERNATIVES]


def _are_exclusive(options: list[list[Parts]], schema: JSONSchema) -> bool:
    """Whether it is plain that no value fits two options of a schema."""
    values = [list_values(_schemas(parts)) for option in options for parts in option]
    listed = [one for one in values if one is not None]
    if len(listed) == len(values):
        return len(frozenset[str]().union(*listed)) == sum(map(len, listed))
    return len(values) <= MAX_ALTERNATIVES and all(
        _are_disjoint([*_schemas(one), schema], [*_schemas(other), schema])
        for many, others in combinations(options, 2)
        for one in many
        for other in others
    )


def _are_disjoint(schemas: list[JSONSchema], others: list[JSONSchema]) -> bool:
    """Whether it is plain that no value fits all of the one and all of the other schemas."""
    types = list_types(schemas, JSON_TYPES) & list_types(others, JSON_TYPES)
    if not types or _have_other_values(schemas, others):
        return True
    if types != {"object"}:
        return False
    ours, theirs = _find_required(schemas), _find_required(others)
    if any(map(_is_closed_to(ours), others)) or any(map(_is_closed_to(theirs), schemas)):
        return True
    return any(
        _have_other_values(_find_property(schemas, name), _find_property(others, name)) for name in ours & theirs
    )


def _have_other_values(schemas: list[JSONSchema], others: list[JSONSchema]) -> bool:
    ours, theirs = list_values(schemas), list_values(others)
    return ours is not None and theirs is not None and ours.keys().isdisjoint(theirs)


def _is_closed_to(names: set[str]) -> Callable[[JSONSchema], bool]:
    """Whether a schema allows none but its own keys, of which one of these isn't."""
    return lambda schema: (
        schema.get("additionalProperties") is False
        and "patternProperties" not in schema
        and not names <= schema.get("properties", {}).keys()
    )


def _schemas(parts: Parts) -> list[JSONSchema]:
    return [part.schema for part in parts]


def _find_required(schemas: list[JSONSchema]) -> set[str]:
    return {name for schema in schemas for name in schema.get("required", ())}


def _find_property(schemas: list[JSONSchema], name: str) -> list[JSONSchema]:
    found = [schema.get("properties", {}).get(name) for schema in schemas]
    return [one for one in found if isinstance(one, Mapping)]
