"""BM25: scores texts by the words that they share with a query, after Robertson and Zaragoza (2009).

The scores of each word are computed when the index is built, so that a query only adds those of its own words. An index
is three flat arrays and its words, which can be stored; ties keep the order of the texts.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Self


class Bm25:
    """An index of texts. `vocabulary` numbers the words; those of number n have the entries `ends[n - 1]` to `ends[n]`
    of `texts` (int) and of `scores` (double)."""

    def __init__(
        self, vocabulary: Mapping[str, int], ends: Sequence[int], texts: array[int], scores: array[float]
    ) -> None:
        self.vocabulary = vocabulary
        self.ends = ends
        self.texts = texts
        self.scores = scores

    @classmethod
    def build(cls, texts: Sequence[Iterable[str]], saturation: float, length_weight: float) -> Self:
        """Index texts, each given as its words. The other two are BM25's k1 and b."""
        counts = [Counter(words) for words in texts]
        lengths = [one.total() for one in counts]
        mean = max(1.0, sum(lengths) / max(1, len(texts)))
        found: dict[str, list[tuple[int, int]]] = {}
        for number, one in enumerate(counts):
            for word, count in one.items():
                found.setdefault(word, []).append((number, count))
        index = cls({word: number for number, word in enumerate(found)}, ends := [], array("i"), array("d"))
        for entries in found.values():
            rarity = math.log(1 + (len(texts) - len(entries) + 0.5) / (len(entries) + 0.5))
            for number, count in entries:
                damping = saturation * (1 - length_weight + length_weight * lengths[number] / mean)
                index.texts.append(number)
                index.scores.append(rarity * count / (count + damping))
            ends.append(len(index.texts))
        return index

    def score(self, words: Iterable[str]) -> dict[int, float]:
        """The scores of the texts that have at least one of the words, by their numbers. Each word counts once."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words):
            if (number := self.vocabulary.get(word)) is not None:
                start, end = self.ends[number - 1] if number else 0, self.ends[number]
                for text, score in zip(self.texts[start:end], self.scores[start:end], strict=True):
                    scores[text] = scores.get(text, 0.0) + score
        return scores


def list_best(scores: Mapping[int, float], limit: int) -> list[int]:
    """The numbers with the highest scores, the best first; of those that are equal, the lower number first."""
    return sorted(scores, key=lambda number: (-scores[number], number))[:limit]
