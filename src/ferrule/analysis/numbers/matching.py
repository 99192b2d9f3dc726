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
from itertools import pairwise
from typing import Final, Literal

from ferrule.analysis.numbers import patterns
from ferrule.analysis.numbers.bounds import are_limits, is_on_side, read_direction
from ferrule.analysis.numbers.context import Context, Sentences
from ferrule.analysis.numbers.finding import FoundNumber, find_numbers
from ferrule.analysis.numbers.scoring import find_tolerance, is_bounded, may_compare, score
from ferrule.analysis.numbers.source_numbers import P_WORD, NumberSource, SourceKind, SourceNumber, read_source
from ferrule.analysis.numbers.units import Unit

MOST_NUMBERS: Final = 5_000
"""How many numbers of a text are matched; the rest isn't looked at."""
_MOST_COMPARED: Final = 1_000_000
"""How many comparisons all numbers of a text may take together, a few seconds."""
LinkKind = Literal["computed", "given", "stated", "year", "ordinal", "not computed"]
_KINDS: dict[SourceKind, LinkKind] = {"run": "computed", "question": "given", "profile": "given", "model": "stated"}
_HAS_SCALE = re.compile(r"[$€£¥₹]|[a-zA-Z]$")


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


@dataclass(frozen=True)
class SourceIndex:
    """The numbers of all sources, sorted by size, so that an answer's number is looked up by bisection.

    Reading the sources takes by far the most time (seconds a megabyte): make one index for several texts. They are
    read when the first number is looked up.
    """

    sources: Sequence[NumberSource]

    @cached_property
    def _numbers(self) -> list[SourceNumber]:
        # What a source repeats in the same words is compared once.
        unlike: dict[tuple[object, ...], SourceNumber] = {}
        for order, source in enumerate(self.sources):
            for number in read_source(order, source):
                key = (number.value, number.last_digit, order, number.context, number.role, number.text)
                unlike.setdefault(key, number)
        return sorted(unlike.values(), key=lambda number: abs(number.value))

    @cached_property
    def _p_values(self) -> list[SourceNumber]:
        found = [number for number in self._numbers if P_WORD in number.context.near]
        kinds: tuple[SourceKind, ...] = ("run", "model")
        return next((of_kind for kind in kinds if (of_kind := [one for one in found if one.source.kind == kind])), [])

    @cached_property
    def _sizes(self) -> list[float]:
        return [abs(number.value) for number in self._numbers]

    @cached_property
    def _prefixed(self) -> frozenset[Unit]:
        return frozenset(unit for number in self._numbers for unit in number.context.units)

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

        def find(number: FoundNumber) -> NumberSource | None:
            context = sentences.read_context(number)
            key = replace(number, start=0, end=0), context
            if key not in same:
                same[key] = self._find(number, context, most)
            return same[key]

        numbers = list(_leave_out_bounds(answer, numbers))
        found = [find(number) for number in numbers]
        for place, (low, high) in enumerate(pairwise(numbers)):
            # Two numbers of outputs are rounded ends; of one alone, the sentence says that another is a limit.
            if are_limits(answer, (low.start, low.end), (high.start, high.end)) and (found[place] is None) != (
                found[place + 1] is None
            ):
                found[place] = find(replace(low, bound=">="))
                found[place + 1] = find(replace(high, bound="<="))
        for first, second in _find_contradictions(answer, numbers):
            found[first] = found[second] = None
        return [_link(answer, number, source) for number, source in zip(numbers, found, strict=True)]

    def _find(self, number: FoundNumber, context: Context, most: int) -> NumberSource | None:
        """The source that a number of an answer most probably came from.

        What a model wrote often repeats what code computed, so that code comes first, unless nothing around its number
        speaks of the same.
        """
        if number.is_of_p_value and self._p_values:
            return self._find_p_value(number, context)
        best: dict[bool, tuple[float, bool, NumberSource]] = {}
        for factor, candidate in self._find_candidates(number, most):
            probability = score(number, factor, context, candidate)
            is_model = candidate.source.kind == "model"
            if probability is not None and (is_model not in best or probability > best[is_model][0]):
                shares_words = bool(context.words & candidate.context.words)
                best[is_model] = probability, shares_words, candidate.source
        if True in best and (False not in best or (best[True][1] and not best[False][1])):
            return best[True][2]
        return best[False][2] if False in best else None

    def _find_p_value(self, number: FoundNumber, context: Context) -> NumberSource | None:
        """The source of a p-value on the side of a bound, of those whose lines have most words of the sentence.

        A clause about all values, or none, needs each of them there.
        """
        shared = [
            2 * len(context.near & one.context.near) + len(context.words & one.context.words) for one in self._p_values
        ]
        nearest = [one for one, words in zip(self._p_values, shared, strict=True) if words == max(shared)]
        on_side = [one.source for one in nearest if is_bounded(number, one)]
        return on_side[0] if on_side and (len(on_side) == len(nearest) or not context.is_of_all) else None

    def _find_candidates(self, number: FoundNumber, most: int) -> Iterator[tuple[float, SourceNumber]]:
        """The numbers of sources that may be this one, each with what this one is multiplied with to be it.

        With each factor, these are the `most` that are nearest to it.
        """
        units = {1 / unit for unit in self._units} if _HAS_SCALE.search(number.text) else set()
        others = self._find_prefixes(number)
        for factor in {1.0, number.percent or 1.0, number.percent / 1e-2 or 1e2} | units | others.keys():
            tolerance, size = find_tolerance(number) * factor, abs(number.value) * factor
            first, last = bisect_left(self._sizes, size - tolerance), bisect_right(self._sizes, size + tolerance)
            if last - first > most:
                first = max(first, min(bisect_left(self._sizes, size) - most // 4, last - most))
                last = first + most
            for candidate in self._numbers[first:last]:
                is_converted = factor in others and _may_convert(number, others[factor], candidate)
                if factor in units or is_converted or may_compare(number, factor, candidate):
                    yield factor, candidate

    def _find_prefixes(self, number: FoundNumber) -> dict[float, Unit]:
        """What a number with a unit is multiplied with to be in the same one with another prefix that a source has."""
        if number.unit is None or abs(number.value) < 10 * number.last_digit:
            return {}
        base, size = number.unit
        return {size / other[1]: other for other in self._prefixed if other[0] == base and other[1] != size}


def _leave_out_bounds(answer: str, numbers: Sequence[FoundNumber]) -> Iterator[FoundNumber]:
    """The numbers of an answer, where one that another number is compared with isn't a bound.

    In "45.6 is higher than 41.2 in the South", both are what they seem, and the first is on the side that is said.
    """
    for before, number in zip([None, *numbers], numbers, strict=False):
        if number.bound and before and _is_compared(answer, before, number):
            yield replace(number, bound="", is_rough=False)
        else:
            yield number


def _find_contradictions(answer: str, numbers: Sequence[FoundNumber]) -> Iterator[tuple[int, int]]:
    """The places of two numbers of which the sentence says the opposite: "rose from 7 to 5".

    Numbers below zero, of which a loss may grow, and those with different units or scales aren't compared.
    """
    quantities = [(place, number) for place, number in enumerate(numbers) if number.role == "quantity"]
    for (place, first), (next_place, second) in pairwise(quantities):
        is_scaled = bool(re.search("[a-zA-Z]", first.text)) == bool(re.search("[a-zA-Z]", second.text))
        if is_scaled and first.unit == second.unit and min(first.value, second.value) >= 0:
            direction = read_direction(answer, (first.start, first.end), (second.start, second.end))
            if direction * (second.value - first.value) < 0:
                yield place, next_place


def _is_compared(answer: str, before: FoundNumber, number: FoundNumber) -> bool:
    between = answer[before.end : number.start]
    if number.is_of_p_value or before.role != "quantity" or bool(before.percent) != bool(number.percent):
        return False
    is_one_clause = len(between) <= 30 and not re.search(r"[.;\n]|\b(?:and|or|but|while|whereas|then)\b", between)
    return is_one_clause and is_on_side(before.value, number.bound, number.value)


def _may_convert(number: FoundNumber, unit: Unit, candidate: SourceNumber) -> bool:
    """Whether a number of a source may be in a unit: its line names it, or none while another line or source does."""
    units = candidate.context.units
    return unit in units or (not units and abs(number.value) >= 100 * number.last_digit)
