"""Replaces the values of a grammar by plain terms: `JsonValue` by texts, characters, sequences, choices and counted
repetitions, of bounded length.

Every text of what is made is a value that its schema allows, in one style: JSON with the separators of `json.dumps`, or
a Python literal alike. Not every value that the schema allows is a text of it: keys come in the schema's order, an
object that names keys has no others, and strings, arrays, numbers and recursion are bounded by `ValueLimits`. Where a
text would end the value, one of its characters is written as an escape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ferrule.capabilities import Loss
from ferrule.dialects.grammar import (
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    Repetition,
    TextUntil,
)
from ferrule.dialects.value_grammar.any_values import ValueLimits
from ferrule.dialects.value_grammar.lowering import ValueLowering
from ferrule.dialects.value_grammar.terms import Unsatisfiable, choose
from ferrule.errors import DialectError
from ferrule.toolspec import JSONSchema

_OUTSIDE_STRINGS = "{}[]\"'\\,:.+- "
"""What else a value is written with, apart from letters and digits."""
_DEFAULT_LIMITS = ValueLimits()


def lower_values(grammar: Grammar, limits: ValueLimits = _DEFAULT_LIMITS) -> tuple[Grammar, tuple[Loss, ...]]:
    """A grammar without `JsonValue`, and the keywords of its schemas that it doesn't enforce.

    Equal parts are the same objects, as far as they are known to be equal: an engine can compile each once. Raises
    `DialectError` for a schema that no value fits, or that isn't one.
    """
    lowering = _GrammarLowering(limits)
    return lowering.lower(grammar), tuple(lowering.losses)


class _GrammarLowering:
    def __init__(self, limits: ValueLimits) -> None:
        self._limits = limits
        self._values: dict[tuple[int, bool], Grammar] = {}
        self._escapes: dict[str, _Escaping] = {}
        self._terms: dict[int, Grammar] = {}
        self._places: list[str] = []
        self.losses: dict[Loss, None] = {}

    def lower(self, term: Grammar) -> Grammar:
        """The term itself if it has no value in it."""
        known = self._terms.get(id(term))
        if known is None:
            known = self._terms[id(term)] = self._lower_term(term)
        return known

    def _lower_term(self, term: Grammar) -> Grammar:
        if isinstance(term, JsonValue):
            return self._lower_value(term)
        if isinstance(term, TextUntil):
            self._note_losses(term.unenforced, ": the string is written without quotes or escapes")
        if not isinstance(term, GrammarSequence) or not (term.place or term.unenforced):
            return _rebuild(term, self.lower)
        places = [term.place] if term.place else []
        self._places += places
        self._note_losses(term.unenforced, "")
        lowered = _rebuild(term, self.lower)
        del self._places[len(self._places) - len(places) :]
        return lowered

    def _note_losses(self, words: Sequence[str], reason: str) -> None:
        for word in words:
            self._note_loss(f"{word} isn't enforced{reason}")

    def _note_loss(self, detail: str) -> None:
        """Note a loss, whose detail begins with a place inside this one."""
        self.losses[Loss("schema", ".".join((*self._places, detail)))] = None

    def _lower_value(self, value: JsonValue) -> Grammar:
        characters = _choose_escaped(value.closers)
        if characters not in self._escapes:
            self._escapes[characters] = _Escaping(characters)
        return self._escapes[characters].escape(self._lower_schema(value.schema, value.is_python))

    def _lower_schema(self, schema: JSONSchema, is_python: bool) -> Grammar:
        key = id(schema), is_python
        if key not in self._values:
            lowering = ValueLowering(schema, is_python, self._limits)
            try:
                self._values[key] = lowering.lower_document()
            except Unsatisfiable as error:
                raise DialectError(f"no value fits the schema: {error}") from None
            except RecursionError:
                raise DialectError("the schema is nested too deeply to be followed") from None
            for loss in lowering.losses:
                self._note_loss(loss.detail)
        return self._values[key]


class _Escaping:
    """Rewrites the terms of a value so that these characters are written as escapes only, as JSON and Python read
    alike. They must not occur outside its strings."""

    def __init__(self, characters: str) -> None:
        self._characters = characters
        self._texts = {one: f"\\u{ord(one):04x}" for one in characters}
        self._table = str.maketrans(self._texts)
        self._terms: dict[int, Grammar] = {}

    def escape(self, term: Grammar) -> Grammar:
        """The term itself if it has none of the characters. It has to be kept, as it is told apart by identity."""
        if not self._characters:
            return term
        known = self._terms.get(id(term))
        if known is None:
            known = self._terms[id(term)] = self._rewrite(term)
        return known

    def _rewrite(self, term: Grammar) -> Grammar:
        if isinstance(term, LiteralText):
            text = term.text.translate(self._table)
            return term if text == term.text else LiteralText(text)
        if isinstance(term, CharacterSet):
            return self._take_out(term)
        return _rebuild(term, self.escape)

    def _take_out(self, term: CharacterSet) -> Grammar:
        """The same characters, these as escapes."""
        found = [one for one in self._characters if (one in term.characters) is not term.is_excluded]
        if not found:
            return term
        if term.is_excluded:
            plain = term.characters + "".join(found)
        else:
            plain = "".join(one for one in term.characters if one not in found)
        escapes = [LiteralText(self._texts[one]) for one in found]
        return choose((replace(term, characters=plain), *escapes) if plain else escapes)


def _choose_escaped(closers: Sequence[str]) -> str:
    """A character of each closer that only strings have, so that none is in a value where these are escapes.

    Raises `DialectError` for a closer without one: it may be in a value outside its strings, or be part of an escape.
    """
    found: dict[str, None] = {}
    for closer in closers:
        # Control characters are always escapes.
        if any(one < " " for one in closer):
            continue
        usable = [one for one in closer if not one.isalnum() and one not in _OUTSIDE_STRINGS and one <= "\uffff"]
        if not usable:
            raise DialectError(f"a value can't be kept from containing {closer!r}")
        found.setdefault(usable[0])
    return "".join(sorted(found))


def _rebuild(term: Grammar, change: Callable[[Grammar], Grammar]) -> Grammar:
    """The term with each term inside it changed; the term itself if nothing is."""
    if isinstance(term, GrammarSequence):
        items = tuple(map(change, term.items))
        return term if _are_same(items, term.items) else GrammarSequence(items)
    if isinstance(term, GrammarChoice):
        options = tuple(map(change, term.options))
        return term if _are_same(options, term.options) else GrammarChoice(options)
    if isinstance(term, Repetition):
        item = change(term.item)
        return term if item is term.item else replace(term, item=item)
    return term


def _are_same(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))
