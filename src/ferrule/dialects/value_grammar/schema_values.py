"""Replaces the values of a grammar by plain terms: `JsonValue` by texts, characters, sequences, choices and counted
repetitions, of bounded length.

Every text of what is made is a value that its schema allows, in one style: JSON with the separators of `json.dumps`, or
a Python literal alike. Not every value that the schema allows is a text of it: keys come in the schema's order, an
object that names keys has no others, and strings, arrays, numbers and recursion are bounded by `ValueLimits`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ferrule.capabilities import Loss
from ferrule.dialects.grammar import Grammar, GrammarChoice, GrammarSequence, JsonValue, Repetition
from ferrule.dialects.value_grammar.limits import Unsatisfiable, ValueLimits
from ferrule.dialects.value_grammar.lowering import ValueLowering
from ferrule.errors import DialectError

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
        self._terms: dict[int, Grammar] = {}
        self.losses: dict[Loss, None] = {}

    def lower(self, term: Grammar) -> Grammar:
        """The term itself if it has no value in it."""
        known = self._terms.get(id(term))
        if known is None:
            known = self._terms[id(term)] = self._lower(term)
        return known

    def _lower(self, term: Grammar) -> Grammar:
        if isinstance(term, JsonValue):
            return self._lower_value(term)
        if isinstance(term, GrammarSequence):
            items = tuple(map(self.lower, term.items))
            return term if _are_same(items, term.items) else GrammarSequence(items)
        if isinstance(term, GrammarChoice):
            options = tuple(map(self.lower, term.options))
            return term if _are_same(options, term.options) else GrammarChoice(options)
        if isinstance(term, Repetition):
            item = self.lower(term.item)
            return term if item is term.item else replace(term, item=item)
        return term

    def _lower_value(self, value: JsonValue) -> Grammar:
        key = id(value.schema), value.is_python
        if key not in self._values:
            lowering = ValueLowering(value.schema, value.is_python, self._limits)
            try:
                self._values[key] = lowering.lower_document()
            except Unsatisfiable as error:
                raise DialectError(f"no value fits the schema: {error}") from None
            except RecursionError:
                raise DialectError("the schema is nested too deeply to be followed") from None
            self.losses.update(dict.fromkeys(lowering.losses))
        return self._values[key]


def _are_same(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return all(one is other for one, other in zip(some, others, strict=True))
