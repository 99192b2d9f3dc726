"""Ranks functions by BM25: a library builds and scores the index, which can be stored as arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

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

    def __init__(self, index: Any, curated: int) -> None:
        self._index = index
        self._curated = curated

    @classmethod
    def build(cls, texts: Sequence[str], curated: int) -> FunctionIndex:
        """Index texts. Raises `ImportError` if the library isn't installed."""
        index = _make_index()
        index.index([split_into_terms(text) for text in texts], show_progress=False)
        return cls(index, curated)

    def rank(self, query: str, limit: int, curated_only: bool = False) -> list[int]:
        """The numbers of the texts that fit a query, the best first; none without a term in common."""
        vocabulary = self._index.vocab_dict
        # Each term counts once, however often a question repeats it.
        found = [vocabulary[term] for term in dict.fromkeys(split_question_into_terms(query)) if term in vocabulary]
        if not found:
            return []
        scores = self._index.get_scores_from_ids(found)
        scores[: self._curated] *= CURATED_WEIGHT
        if curated_only:
            scores = scores[: self._curated]
        order = np.argsort(-scores, kind="stable")[:limit]
        return [int(number) for number in order if scores[number] > 0]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The index as arrays, from which `from_arrays` restores it."""
        scores = self._index.scores
        vocabulary = json.dumps(self._index.vocab_dict).encode()
        return {
            "data": scores["data"],
            "indices": scores["indices"],
            "indptr": scores["indptr"],
            "counts": np.array([scores["num_docs"], self._curated]),
            "vocabulary": np.frombuffer(vocabulary, np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> FunctionIndex:
        """Restore an index. Raises `KeyError` or `ValueError` for arrays of anything else."""
        total, curated = map(int, arrays["counts"])
        index = _make_index()
        index.scores = {name: arrays[name] for name in ("data", "indices", "indptr")} | {"num_docs": total}
        index.vocab_dict = json.loads(arrays["vocabulary"].tobytes())
        index.nonoccurrence_array = None
        return cls(index, curated)


def load_libraries() -> None:
    """Import what searching needs. Raises `ImportError` if a library isn't installed."""
    _make_index()
    split_into_terms("")


def _make_index() -> Any:
    import bm25s

    return bm25s.BM25(k1=_SATURATION, b=_LENGTH_WEIGHT, backend="numpy", csc_backend="numpy")
