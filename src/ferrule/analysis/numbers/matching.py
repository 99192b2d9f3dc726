"""Matches each number of an answer to the output that it came from.

Two numbers are the same if the output's, rounded to the digits that the answer shows, is the answer's. Where several
outputs have it, that one is taken whose line has most words in common with the sentence of the answer. What was
chosen and never computed, as the years and the numbers of steps, is listed as such; of the rest, what no output has
is "not computed".
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from ferrule.analysis.numbers import patterns
from ferrule.analysis.numbers.context import Context, Sentences, read_words
from ferrule.analysis.numbers.finding import LARGEST, FoundNumber, find_numbers

MOST_NUMBERS: Final = 5_000
"""How many numbers of a text are matched; the rest isn't looked at."""
_MOST_COMPARED: Final = 1_000_000
"""How many comparisons all numbers of a text may take together, a few seconds."""
LinkKind = Literal["computed", "given", "stated", "year", "ordinal", "not computed"]
SourceKind = Literal["run", "question", "profile", "model"]
_WEIGHTS: dict[SourceKind, float] = {"run": 1.5, "question": 0.5, "profile": 0.5, "model": 0.0}
_KINDS: dict[SourceKind, LinkKind] = {"run": "computed", "question": "given", "profile": "given", "model": "stated"}
_STATISTICS: Final = read_words(
    "number text date time row column value missing distinct mean standard deviation quantile"
)
"""Words of every profile, which name no column."""
_LEGEND = re.compile(r"quantiles \([^)]*\)")
"""What a profile says its quantiles are of: numbers that stand in no data."""
_EXACT_FLOAT = 2**53
"""The first whole number above which a float doesn't hold every one."""
_CROWD = 40
"""With more numbers than these in a source, one of two digits may be found there by chance."""
_HAS_SCALE = re.compile(r"[$€£¥₹]|[a-zA-Z]$")
_P_WORD = "p-value"
_P_VALUE = re.compile(r"\bp(?:[-_ ]?val(?:ue)?s?\b|[ ]*[:=]|[ ]+$)|\bpvalue|\bPr\b|\bprob\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NumberSource:
    """A text that an answer's numbers may have come from.

    `id` is a task's ("t1"), "question", or of a profile ("sales.profile"). A "run" is of code; a "model" wrote the
    text without running any. `values` are numbers of the same source that its text may show rounded.
    """

    id: str
    kind: SourceKind
    text: str
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberLink:
    """A number of an answer, and where it came from. Offsets are in characters of the answer.

    `kind`: "computed" by a run, "given" in the question or a profile, "stated" by a task in which a model reasoned or
    recalled and no code ran, a "year" (a date, a time), an "ordinal" (a rank, quarter, step, item of a list), or "not
    computed". `source` is the id of what has this number; years and ordinals may have one, too. `value` is what the
    digits say: 0.123 for "12.3%", 1200000 for "1.2M".
    """

    start: int
    end: int
    text: str
    kind: LinkKind
    source: str | None
    value: float


def match_numbers(answer: str, sources: Sequence[NumberSource]) -> list[NumberLink]:
    """The numbers of an answer in its order, at most `MOST_NUMBERS`, each with the source that it was found in."""
    return SourceIndex(sources).match(answer)


def _link(answer: str, number: FoundNumber, source: NumberSource | None) -> NumberLink:
    kind: LinkKind
    is_asked = source is not None and source.kind == "question" and answer[: number.start].lower().endswith("top ")
    if number.role != "quantity" and not is_asked:
        kind = number.role
    elif source is None:
        kind = "not computed"
    else:
        kind = _KINDS[source.kind]
    value = number.value * (number.percent or 1.0)
    # The finder may have read another space than the answer has.
    text = answer[number.start : number.end]
    return NumberLink(number.start, number.end, text, kind, source.id if source else None, value)


@dataclass(frozen=True, slots=True)
class _SourceNumber:
    """A number of a source: its value as a plain number, how exactly it is known, and what stands around it."""

    value: float
    last_digit: float
    source: NumberSource
    order: int
    context: Context
    is_percent: bool
    is_crowded: bool
    role: str
    text: str


@dataclass(frozen=True)
class SourceIndex:
    """The numbers of all sources, sorted by size, so that an answer's number is looked up by bisection.

    Reading the sources takes by far the most time (seconds a megabyte): make one index for several texts. They are
    read when the first number is looked up.
    """

    sources: Sequence[NumberSource]

    @cached_property
    def _numbers(self) -> list[_SourceNumber]:
        # What a source repeats in the same words is compared once.
        unlike: dict[tuple[object, ...], _SourceNumber] = {}
        for order, source in enumerate(self.sources):
            for number in _read_source(order, source):
                key = (number.value, number.last_digit, order, number.context, number.role, number.text)
                unlike.setdefault(key, number)
        return sorted(unlike.values(), key=lambda number: abs(number.value))

    @cached_property
    def _p_values(self) -> list[_SourceNumber]:
        return [number for number in self._numbers if _P_WORD in number.context.near]

    @cached_property
    def _sizes(self) -> list[float]:
        return [abs(number.value) for number in self._numbers]

    @cached_property
    def _units(self) -> frozenset[float]:
        """Thousand, million: what a source says that its numbers are counted in."""
        texts = [source.text.lower() for source in self.sources]
        return frozenset(size for unit, size in patterns.UNITS if any(unit.search(text) for text in texts))

    def match(self, answer: str) -> list[NumberLink]:
        """See `match_numbers`."""
        numbers = find_numbers(answer)[:MOST_NUMBERS]
        sentences = Sentences(answer)
        most = _MOST_COMPARED // max(1, len(numbers))
        same: dict[tuple[FoundNumber, Context], NumberSource | None] = {}
        links = []
        for number in numbers:
            context = sentences.read_context(number)
            key = replace(number, start=0, end=0), context
            if key not in same:
                same[key] = self._find(number, context, most)
            links.append(_link(answer, number, same[key]))
        return links

    def _find(self, number: FoundNumber, context: Context, most: int) -> NumberSource | None:
        """The source that a number of an answer most probably came from.

        What a model wrote often repeats what code computed, so that code comes first, unless nothing around its number
        speaks of the same.
        """
        best: dict[bool, tuple[float, bool, NumberSource]] = {}
        for factor, candidate in self._find_candidates(number, most):
            score = _score(number, factor, context, candidate)
            is_model = candidate.source.kind == "model"
            if score is not None and (is_model not in best or score > best[is_model][0]):
                shares_words = bool(context.words & candidate.context.words)
                best[is_model] = score, shares_words, candidate.source
        if True in best and (False not in best or (best[True][1] and not best[False][1])):
            return best[True][2]
        if False not in best and number.bound:
            return next((candidate.source for candidate in self._p_values if _is_bounded(number, candidate)), None)
        return best[False][2] if False in best else None

    def _find_candidates(self, number: FoundNumber, most: int) -> Iterator[tuple[float, _SourceNumber]]:
        """The numbers of sources that may be this one, each with what this one is multiplied with to be it.

        With each factor, these are the `most` that are nearest to it.
        """
        units = {1 / unit for unit in self._units} if _HAS_SCALE.search(number.text) else set()
        for factor in {1.0, number.percent or 1.0, number.percent / 1e-2 or 1e2} | units:
            tolerance, size = _find_tolerance(number) * factor, abs(number.value) * factor
            first, last = bisect_left(self._sizes, size - tolerance), bisect_right(self._sizes, size + tolerance)
            if last - first > most:
                first = max(first, min(bisect_left(self._sizes, size) - most // 4, last - most))
                last = first + most
            for candidate in self._numbers[first:last]:
                if factor in units or _may_compare(number, factor, candidate):
                    yield factor, candidate


def _read_source(order: int, source: NumberSource) -> Iterator[_SourceNumber]:
    lines = [(line, find_numbers(line, is_output=True)) for line in source.text.splitlines()]
    is_crowded = len(source.values) + sum(len(numbers) for _, numbers in lines) > _CROWD
    header: frozenset[str] = frozenset()
    for line, numbers in lines:
        words = read_words(line)
        if all(number.role != "quantity" for number in numbers):
            header = words or header
        is_decrease = patterns.DECREASE.search(line) is not None
        around = words | header
        legend = _LEGEND.search(line) if source.kind == "profile" else None
        for number in numbers:
            near = read_words(line[max(0, number.start - 30) : number.end + 15])
            if _P_VALUE.search(line[max(0, number.start - 24) : number.start]):
                near |= {_P_WORD}
            is_legend = legend is not None and legend.start() < number.start < legend.end()
            context = Context(around, near, is_decrease=is_decrease, is_chosen=is_legend)
            is_percent = number.percent == 1e-2
            yield _SourceNumber(
                number.value,
                number.last_digit,
                source,
                order,
                context,
                is_percent,
                is_crowded,
                number.role,
                number.text,
            )
    for value in source.values:
        yield _SourceNumber(value, 0.0, source, order, Context(), False, is_crowded, "quantity", "")


def _find_tolerance(number: FoundNumber) -> float:
    """How far a number may be from one that it is the rounded form of, in its own unit.

    Half of the last digit shown, also where it is rounded up or to even. After "about", final zeros are digits that
    may not be shown, but for two; after "over" or "nearly", the number may have been cut instead of rounded.
    """
    last_digit = number.last_digit
    if number.is_rough and number.value and last_digit >= 1:
        units = f"{abs(number.value) / last_digit:.0f}"
        zeros = len(units) - len(units.rstrip("0"))
        last_digit *= 10.0 ** max(0, min(zeros, len(units) - 2))
    half = last_digit if number.is_rough and number.bound else last_digit / 2
    return half + 1e-9 * max(abs(number.value), last_digit)


def _may_compare(number: FoundNumber, factor: float, candidate: _SourceNumber) -> bool:
    """Whether the two may stand for the same in this reading: a percentage as such, or as a fraction of one."""
    if number.percent and candidate.is_percent:
        return factor == number.percent / 1e-2
    if number.percent:
        return factor in {1.0, number.percent}
    return factor == 1.0 or (candidate.is_percent and factor == 1e2)


def _is_bounded(number: FoundNumber, candidate: _SourceNumber) -> bool:
    """Whether a p-value of a source lies on the side of a bound that the answer names: "p < 0.001" for 2e-9."""
    if number.value > 0.5 or number.percent:
        return False
    return 0 <= candidate.value < number.value if number.bound == "below" else number.value < candidate.value <= 1


def _may_have_digits(number: FoundNumber, candidate: _SourceNumber) -> bool:
    """Whether two whole numbers of more digits than a float holds are written with the same ones."""
    if abs(number.value) < _EXACT_FLOAT or number.last_digit != 1 or candidate.last_digit != 1 or not candidate.text:
        return True
    return _has_same_digits(number.text, candidate.text)


def _score(number: FoundNumber, factor: float, context: Context, candidate: _SourceNumber) -> float | None:
    """How probably the number came from there, or None if it can't have: the more words in common, the more so."""
    if LARGEST in (abs(number.value), abs(candidate.value)) and not _has_same_digits(number.text, candidate.text):
        return None
    difference = abs(abs(candidate.value) - abs(number.value) * factor)
    is_exact = difference <= 1e-9 * abs(candidate.value)
    if not is_exact and (context.is_chosen or candidate.last_digit > 2 * _find_tolerance(number) * factor):
        return None
    if not _may_have_digits(number, candidate):
        return None
    if not _may_have_sign(number, context, candidate) or not _may_have_role(number, candidate, is_exact=is_exact):
        return None
    if candidate.source.kind == "profile" and not _may_be_given(number, factor, context, candidate):
        return None
    near, words = len(context.near & candidate.context.near), len(context.words & candidate.context.words)
    if not is_exact and not words:
        # Few digits are found by chance among many numbers, and a small count in any decimal fraction.
        digits = abs(number.value) / number.last_digit
        by_chance = 100 if candidate.text else 1000
        if digits < 0.5 or (digits < by_chance and candidate.is_crowded) or (_is_count(number) and not number.is_rough):
            return None
    score = 0.6 * min(near, 3) + 0.3 * min(words, 4) + _WEIGHTS[candidate.source.kind] - 0.01 * candidate.order
    if is_exact:
        score += 1.5 if _is_count(number) else 0.5
    if number.text == candidate.text:
        score += 0.6
    return score - (0.25 if factor != 1.0 else 0.0)


def _may_be_given(number: FoundNumber, factor: float, context: Context, candidate: _SourceNumber) -> bool:
    """Whether a number may repeat one of a profile, whose counts and quantiles small numbers equal by chance.

    A percentage repeats one, or where the column is named, a fraction or a number with three digits.
    """
    if candidate.context.is_chosen:
        return context.is_chosen
    if number.role != "quantity":
        return True
    shared = context.words & candidate.context.words
    is_small = abs(number.value) < 100 * number.last_digit
    if number.percent and not candidate.is_percent:
        is_fraction = factor == number.percent and 0 < abs(candidate.value) < 1
        return bool(shared - _STATISTICS) and (is_fraction or not is_small)
    return not is_small or number.last_digit < 1 or "quantile" not in candidate.context.words or bool(shared)


def _has_same_digits(one: str, other: str) -> bool:
    """Whether two numbers that are too large for a float are written with the same digits."""
    return re.sub(r"\D", "", one) == re.sub(r"\D", "", other)


def _is_count(number: FoundNumber) -> bool:
    return number.last_digit == 1 and not number.percent and abs(number.value) < 10


def _may_have_sign(number: FoundNumber, context: Context, candidate: _SourceNumber) -> bool:
    if number.value * candidate.value >= 0:
        return True
    return candidate.context.is_decrease if number.value < 0 else context.is_decrease


def _may_have_role(number: FoundNumber, candidate: _SourceNumber, *, is_exact: bool) -> bool:
    if number.role != "quantity":
        return is_exact and candidate.role in {number.role, "quantity"}
    # Four digits by themselves look like a year, whatever they count; "Q3" is no 3.
    return candidate.role != "ordinal" or (is_exact and candidate.source.kind == "question")
