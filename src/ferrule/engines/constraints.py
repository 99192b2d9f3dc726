"""Keeps what is sampled to a grammar: which ids may come next, given those that came before.

A grammar is followed as a set of places in it, as an automaton without backtracking would be: a token is legal if at
least one place can read all of its bytes. `GrammarMatcher` tries only the ids that a sampler would choose, likeliest
first. That is what the model in the package is steered with: a question to it would take 33 ms more (of 570) to import
llguidance alone, and a wheel of 3 MB more to install. For all others `masking` has llguidance find the legal ids, and
`closing` follows the places only where a budget gets short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ferrule.dialects.grammar import Grammar
from ferrule.engines.places import GrammarPlaces, Place, resolve_markers
from ferrule.errors import TokenizerError

TokenMask: TypeAlias = NDArray[np.uint8]
"""A bit for each id, 1 for legal ones: that of id `n` is `mask[n // 8] >> n % 8 & 1`. Those of no id are 0."""


class Vocabulary(Protocol):
    """What an engine must know of a tokenizer to follow a grammar; every `Tokenizer` has it."""

    @property
    def control(self) -> Mapping[str, int]:
        """Every added token and its id."""
        ...

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest id."""
        ...

    def decode_token(self, token: int) -> bytes:
        """The bytes that a token represents."""
        ...


class VocabularyIndex:
    """A vocabulary by what its tokens are: control tokens by id, the others by their first byte."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.size = vocabulary.vocabulary_size
        self.control = dict(vocabulary.control)
        self.names = {token: name for name, token in vocabulary.control.items()}
        self.texts: dict[int, bytes] = {}
        self.by_first_byte: dict[int, list[int]] = defaultdict(list)
        for token in range(vocabulary.vocabulary_size):
            if token in self.names:
                continue
            try:
                text = vocabulary.decode_token(token)
            except TokenizerError:  # an id without a token: no text continues with it
                continue
            if text:
                self.texts[token] = text
                self.by_first_byte[text[0]].append(token)


class TokenConstraint(Protocol):
    """Keeps one generation to a grammar. An engine asks for the `mask`, samples among the legal ids, and calls
    `advance` with what it sampled."""

    def mask(self) -> TokenMask:
        """The legal ids; valid until `advance`. No id is legal where nothing continues what was sampled.

        Raises `EngineError` if that can't be found out.
        """
        ...

    def advance(self, token: int) -> int:
        """Go on with a legal id. Returns the one that was taken: another one if only that ends the call in time."""
        ...


_END = -1
"""Stands for a stop id among bytes."""


class GrammarMatcher:
    """The places of one generation in its grammar, at whose end a stop id is legal: a `TokenConstraint`, which can also
    be asked for single ids.

    Raises `EngineError` for a grammar that it can't follow.
    """

    def __init__(self, grammar: Grammar, vocabulary: VocabularyIndex, stop_ids: Collection[int] = ()) -> None:
        self._vocabulary = vocabulary
        self._stop_ids = stop_ids
        self._grammar = GrammarPlaces(resolve_markers(grammar, vocabulary.control))
        self._places = self._grammar.start()
        self._tried: dict[int, list[Place]] = {}

    def allows(self, token: int) -> bool:
        """Whether the grammar can go on with this id."""
        if token not in self._tried:
            self._tried[token] = self._find_places_after(token)
        return bool(self._tried[token]) or (token in self._stop_ids and self._is_complete)

    def mask(self) -> TokenMask:
        """See `TokenConstraint`. Every id is tried."""
        return np.packbits([self.allows(token) for token in range(self._vocabulary.size)], bitorder="little")

    def advance(self, token: int) -> int:
        """See `TokenConstraint`. A call is never ended: its grammar says how long it may be."""
        self._places = self._tried.get(token) or self._find_places_after(token)
        self._tried = {}
        return token

    @property
    def is_forced(self) -> bool:
        """Whether only one id is legal."""
        following: set[str | int | None] = set()
        for one in self._grammar.list_entered(self._places):
            if not one.is_complete:  # what follows a complete one is entered too
                following.add(_END if one.leaf is None else one.only_next)
            if len(following) > 1 or None in following:
                return False
        (only,) = following
        if only == _END:
            return len(self._stop_ids) == 1
        return isinstance(only, str) or sum(map(self.allows, self._vocabulary.by_first_byte[cast(int, only)])) == 1

    @property
    def _is_complete(self) -> bool:
        return any(place.leaf is None for place in self._grammar.list_entered(self._places))

    def _find_places_after(self, token: int) -> list[Place]:
        name = self._vocabulary.names.get(token)
        if name is not None:
            return self._grammar.pass_control(self._places, name)
        text = self._vocabulary.texts.get(token)
        return self._grammar.read(self._places, text) if text else []
