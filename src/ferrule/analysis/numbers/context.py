"""What stands around a number: the words of its sentence or line, which say what the number is of."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ferrule.analysis.numbers import patterns
from ferrule.analysis.numbers.finding import FoundNumber
from ferrule.analysis.numbers.units import Unit

_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)|\n")
_WORD = re.compile(r"[^\W\d_]{2,}")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the of and in to is was are were for by with at from that this on it as an be has had have than or its their "
        "about which per all but not each between",
    )
)
_RANGE_AFTER = re.compile(r" ?(?:[-–—]|to|and) ?[-−$€£¥]?[0-9.]")
_RANGE_BEFORE = re.compile(r"[0-9]\S? ?(?:[-–—]|to|and) ?[-−$€£¥]?$")
_OF_ALL = re.compile(r"\b(?:all|both|every|each|none|neither)\b[^.,;]*$", re.IGNORECASE)
_BLOCK: Final = 500
"""How many characters of a longer sentence are read on each side of a number, so that reading takes linear time."""


@dataclass(frozen=True, slots=True)
class Context:
    """The words of a number's sentence or line, and those next to it."""

    words: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    is_decrease: bool = False
    is_cost: bool = False
    """Whether the sentence speaks of an amount that goes out."""
    change: int = 0
    """The sign of a change that a verb right before the number gives: 1 for "grew by", -1 for "fell by", else 0."""
    is_fall: bool = False
    """Whether a verb somewhere in the clause before the number says "fell", and none "rose"."""
    is_changed: bool = False
    """Whether the line of a source says that its numbers are changes."""
    is_fraction: bool = False
    """Whether it says that its numbers are fractions, and not that they are percentages."""
    is_share: bool = False
    """Whether the line of a source says that its numbers are shares or changes, so that they may be percentages."""
    is_chosen: bool = False
    is_range: bool = False
    """Whether another number follows or comes before, with a dash or "to" between them."""
    is_of_all: bool = False
    """Whether the clause before the number speaks of all values, or of none."""
    units: frozenset[Unit] = frozenset()
    """The units that a line of a source names."""


class Sentences:
    """The sentences of an answer, whose words are read once for all of their numbers."""

    def __init__(self, text: str) -> None:
        self._text = text
        ends = [match.span() for match in _SENTENCE_END.finditer(text)]
        self._stops = [*(start for start, _ in ends), len(text)]
        self._starts = [0, *(end for _, end in ends)]
        self._words: dict[tuple[int, int], frozenset[str]] = {}

    def read_context(self, number: FoundNumber) -> Context:
        text = self._text
        start, stop = self._find_sentence(number)
        if (start, stop) not in self._words:
            self._words[start, stop] = read_words(text[start:stop])
        near = text[max(start, number.start - 40) : number.end + 25]
        is_decrease = patterns.DECREASE.search(text[max(start, number.start - 60) : number.end + 40]) is not None
        is_cost = patterns.COST.search(text[max(start, number.start - 60) : min(stop, number.end + 40)]) is not None
        is_chosen = patterns.EXACT.match(text, number.end) is not None
        is_chosen = is_chosen or patterns.EXACTLY.search(text[max(0, number.start - 14) : number.start]) is not None
        before, after = text[max(start, number.start - 12) : number.start], text[number.end : number.end + 12]
        is_range = bool(_RANGE_AFTER.match(after) or _RANGE_BEFORE.search(before))
        clause = text[max(start, number.start - 60) : number.start]
        return Context(
            self._words[start, stop],
            read_words(near),
            is_decrease,
            is_cost,
            _read_change(clause),
            is_fall=patterns.FALL_IN_CLAUSE.search(clause) is not None and not patterns.RISE.search(clause),
            is_chosen=is_chosen,
            is_range=is_range,
            is_of_all=_OF_ALL.search(clause) is not None,
        )

    def _find_sentence(self, number: FoundNumber) -> tuple[int, int]:
        """Where the number's sentence begins and ends; of a long one, the blocks around the number."""
        start = self._starts[bisect_right(self._starts, number.start) - 1]
        stop = self._stops[min(bisect_left(self._stops, number.end), len(self._stops) - 1)]
        block = start + (number.start - start) // _BLOCK * _BLOCK
        return max(start, block - _BLOCK), max(number.end, min(stop, block + 2 * _BLOCK))


def _read_change(before: str) -> int:
    if patterns.WORSE.search(before):
        return 0
    return 1 if patterns.RISE_BEFORE.search(before) else -1 if patterns.FALL_BEFORE.search(before) else 0


def read_words(text: str) -> frozenset[str]:
    """The words of a text, without endings of the plural and words that every sentence has."""
    return frozenset(_strip_plural(word) for word in set(_WORD.findall(text.replace("_", " ").lower())) - _STOP_WORDS)


@lru_cache(maxsize=10_000)
def _strip_plural(word: str) -> str:
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 1 else word
