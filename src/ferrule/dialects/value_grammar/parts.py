"""Schemas taken apart: what a value must fit at once, with references, `allOf`, `anyOf` and `oneOf` resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.limits import Unsatisfiable, ValueLimits
from ferrule.dialects.value_grammar.references import References
from ferrule.dialects.value_grammar.values import JSON_TYPES, check_types, list_types, list_values
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema

MAX_ALTERNATIVES = 64
"""The maximum number of alternatives that several `anyOf` of one schema multiply to; those after it aren't written."""


@dataclass(frozen=True, slots=True)
class Part:
    """A schema that a value must fit, where it is, and how many recursive references may still be followed in it."""

    schema: Any
    place: str
    recursion: int

    def descend(self, schema: Any, name: str) -> Part:
        """A schema inside this one."""
        return Part(schema, f"{self.place}.{name}".removeprefix("."), self.recursion)


Parts: TypeAlias = "tuple[Part, ...]"
NoteLoss: TypeAlias = "Callable[[Part, str, str], None]"
"""Notes that a part's keyword isn't enforced, and why; the reason may be empty."""


@dataclass(frozen=True, slots=True)
class Context:
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

    def resolve(self, parts: Parts) -> list[Parts]:
        """The alternatives, at least one. Raises `Unsatisfiable` if there is none, `DialectError` for what isn't a
        schema."""
        alternatives: list[Parts] = [()]
        for part in parts:
            alternatives = _multiply(alternatives, self._resolve_part(part))
        return alternatives

    def _resolve_part(self, part: Part) -> list[Parts]:
        if isinstance(part.schema, bool):
            if not part.schema:
                raise Unsatisfiable(f"{part.place or 'the schema'}: `false` allows no value")
            return [()]
        if not isinstance(part.schema, Mapping):
            raise DialectError(f"{part.place or 'the schema'}: {part.schema!r:.60} isn't a schema; write an object")
        check_types(part.schema, part.place or "the schema")
        key = id(part.schema), part.recursion
        if key not in self._known:
            alternatives: list[Parts] = [(part,)]
            for more in self._resolve_keywords(part):
                alternatives = _multiply(alternatives, more)
            self._known[key] = alternatives
        return self._known[key]

    def _resolve_keywords(self, part: Part) -> Iterator[list[Parts]]:
        schema = part.schema
        if isinstance(reference := schema.get("$ref"), str):
            yield self._follow(part, reference)
        for word in ("$dynamicRef", "$recursiveRef"):
            if word in schema:
                self._note_loss(part, word, "")
        for place, one in enumerate(schema.get("allOf") or ()):
            yield self._resolve_part(part.descend(one, f"allOf[{place}]"))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                yield self._collect_options(part, word)

    def _follow(self, part: Part, reference: str) -> list[Parts]:
        try:
            target = self._references.find(reference)
        except LookupError:
            self._note_loss(part, "$ref", f"{reference!r} isn't in this schema")
            return [()]
        is_recursive = self._references.is_recursive(reference)
        if is_recursive and part.recursion == 0:
            raise Unsatisfiable(f"{part.place or 'the schema'}: `$ref` leads back to itself without an end")
        place = reference.partition("#")[2].strip("/").replace("/", ".")
        return self._resolve_part(Part(target, place, part.recursion - is_recursive))

    def _collect_options(self, part: Part, word: str) -> list[Parts]:
        options: list[list[Parts]] = []
        reason = Unsatisfiable(f"{part.place or 'the schema'}: `{word}` has no options")
        for place, one in enumerate(part.schema[word]):
            try:
                options.append(self._resolve_part(part.descend(one, f"{word}[{place}]")))
            except Unsatisfiable as error:
                reason = error
        if not options:
            raise reason
        if word == "oneOf" and not all(
            _are_disjoint(one, other) for many, others in combinations(options, 2) for one in many for other in others
        ):
            self._note_loss(part, word, "a value may fit several of its options")
        return [alternative for option in options for alternative in option]


def _multiply(alternatives: Iterable[Parts], more: list[Parts]) -> list[Parts]:
    return [one + other for one in alternatives for other in more][:MAX_ALTERNATIVES]


def _are_disjoint(parts: Parts, others: Parts) -> bool:
    """Whether it is plain that no value fits both."""
    if list_types(_schemas(parts), JSON_TYPES).isdisjoint(list_types(_schemas(others), JSON_TYPES)):
        return True
    if _have_other_values(_schemas(parts), _schemas(others)):
        return True
    shared = _find_required(parts) & _find_required(others)
    return any(_have_other_values(_find_property(parts, name), _find_property(others, name)) for name in shared)


def _have_other_values(schemas: list[Any], others: list[Any]) -> bool:
    ours, theirs = list_values(schemas), list_values(others)
    return ours is not None and theirs is not None and ours.keys().isdisjoint(theirs)


def _schemas(parts: Parts) -> list[Any]:
    return [part.schema for part in parts]


def _find_required(parts: Parts) -> set[str]:
    return {name for part in parts for name in part.schema.get("required") or ()}


def _find_property(parts: Parts, name: str) -> list[Any]:
    found = [(part.schema.get("properties") or {}).get(name) for part in parts]
    return [one for one in found if isinstance(one, Mapping)]
