"""Chooses what keeps an engine's generations to their grammars: llguidance's masks, or ids that are tried."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ferrule.dialects.grammar import Grammar
from ferrule.engines.constraints import GrammarMatcher, TokenConstraint, Vocabulary, VocabularyIndex

if TYPE_CHECKING:
    from ferrule.engines.masking import MaskCompiler


class ConstraintCompiler:
    """Compiles the grammars that one engine is given. What it needs of the vocabulary is made at the first of them.

    If it `tries_ids`, no llguidance is needed: see `GrammarMatcher`.
    """

    def __init__(self, vocabulary: Vocabulary, *, tries_ids: bool = False) -> None:
        self._vocabulary = vocabulary
        self._tries_ids = tries_ids
        self._index: VocabularyIndex | None = None
        self._masks: MaskCompiler | None = None

    @cached_property
    def is_available(self) -> bool:
        """Whether it can compile: llguidance is installed, or not needed."""
        return self._tries_ids or find_spec("llguidance") is not None

    def compile(self, grammar: Grammar, stop_ids: Sequence[int], budget: int) -> TokenConstraint:
        """A constraint for a generation of at most `budget` tokens, in which any stop id ends a text of the grammar.

        Raises `EngineError` for a grammar that can't be followed, or none of whose texts ends in the budget.
        """
        if self._index is None:
            self._index = VocabularyIndex(self._vocabulary)
        if self._tries_ids:
            return GrammarMatcher(grammar, self._index, stop_ids)
        if self._masks is None:
            from ferrule.engines.masking import MaskCompiler  # needs llguidance

            self._masks = MaskCompiler(self._index)
        return self._masks.compile(grammar, stop_ids, budget)
