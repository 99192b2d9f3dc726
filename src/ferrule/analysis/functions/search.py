"""Ranks functions by BM25, in an index that can be stored as arrays."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from ferrule._util.bm25 import Bm25, list_best
from ferrule.analysis.functions.vocabulary import split_into_terms, split_question_into_terms

Arrays = Mapping[str, NDArray[Any]]

CURATED_WEIGHT: Final = 1.25
"""How much more the score of a curated function counts: enough that they come first where both fit.

Without it, the first result was less often right; from 2 on, what only introspection knows was pushed out of sight.
"""
_SATURATION: Final = 0.9
_LENGTH_WEIGHT: Final = 0.4
"""BM25's k1 and b. A curated function with many ways of asking is longer, not less relevant: b is low."""


class Embedder(Protocol):
    """Turns texts into vectors, one row a text: what `FunctionRepository.search_by_embedding` compares.

    Ferrule brings none, and claims nothing about any.
    """

    def __call__(self, texts: Sequence[str], /) -> NDArray[Any]:
        """Embed each text."""


class FunctionIndex:
    """A BM25 index of texts, the first `curated` of which count more."""

    def __init__(self, index: Bm25, curated: int) -> None:
        self._index = index
        self._curated = curated

    @classmethod
    def build(cls, texts: Sequence[str], curated: int) -> FunctionIndex:
        """Index texts. Raises `ImportError` if the stemmer isn't installed."""
        return cls(Bm25.build([split_into_terms(text) for text in texts], _SATURATION, _LENGTH_WEIGHT), curated)

    def rank(self, query: str, limit: int, curated_only: bool = False) -> list[int]:
        """The numbers of the texts that fit a query, the best first; none without a term in common."""
        found = self._index.score(split_question_into_terms(query))
        curated = {number: score * CURATED_WEIGHT for number, score in found.items() if number < self._curated}
        return list_best(curated if curated_only else found | curated, limit)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The index as arrays, from which `from_arrays` restores it."""
        index = self._index
        return {
            "numbers": np.array(index.texts),
            "scores": np.array(index.scores),
            "term_ends": np.array(index.ends),
            "curated": np.array(self._curated),
            "vocabulary": np.frombuffer(json.dumps(list(index.vocabulary)).encode(), np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> FunctionIndex:
        """Restore an index. Raises `KeyError` or `ValueError` for arrays of anything else."""
        vocabulary = {term: number for number, term in enumerate(json.loads(arrays["vocabulary"].tobytes()))}
        numbers, scores = array("i", arrays["numbers"].tobytes()), array("d", arrays["scores"].tobytes())
        return cls(Bm25(vocabulary, arrays["term_ends"].tolist(), numbers, scores), int(arrays["curated"]))
