"""Finds tools by what they are called and what they do: BM25 over names, descriptions and parameters."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from ferrule.toolspec import ToolSpec

_WORD = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDING = re.compile(r"(?<=\w{3})(?:ations?|ings?|ed|es|s|e)$")
_NAME_COUNTS = 3
"""A word of the name counts as so many of the description's."""
_SATURATION, _LENGTH = 1.2, 0.75
"""BM25's k1 and b, as Robertson and Zaragoza (2009) give them."""


class ToolIndex:
    """An index of tools. The same query finds the same tools in the same order."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = specs
        self._counts = [Counter(_terms(_text(spec))) for spec in specs]
        self._lengths = [counts.total() for counts in self._counts]
        self._mean = max(1.0, sum(self._lengths) / max(1, len(specs)))
        self._known = Counter(term for counts in self._counts for term in counts)

    def search(self, query: str, limit: int) -> list[ToolSpec]:
        """The tools that fit best, at most `limit`; none that has no word of the query."""
        terms = set(_terms(query))
        scores = [self._score(place, terms) for place in range(len(self._specs))]
        best = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:limit]
        return [self._specs[place] for place in best if scores[place] > 0]

    def _score(self, place: int, terms: set[str]) -> float:
        counts, score = self._counts[place], 0.0
        damping = _SATURATION * (1 - _LENGTH + _LENGTH * self._lengths[place] / self._mean)
        for term in terms & counts.keys():
            rarity = math.log(1 + (len(self._specs) - self._known[term] + 0.5) / (self._known[term] + 0.5))
            score += rarity * counts[term] * (_SATURATION + 1) / (counts[term] + damping)
        return score


def _text(spec: ToolSpec) -> str:
    properties = spec.parameters.get("properties")
    parameters = " ".join(properties) if isinstance(properties, dict) else ""
    return " ".join([*[spec.name] * _NAME_COUNTS, spec.description, parameters])


def _terms(text: str) -> list[str]:
    words = _WORD.findall(_HUMP.sub(" ", text))
    return [_ENDING.sub("", word.casefold()) for word in words]
