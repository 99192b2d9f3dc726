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
        return [number for number in self._numbers if P_WORD in number.context.near]

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
            probability = score(number, factor, context, candidate)
            is_model = candidate.source.kind == "model"
            if probability is not None and (is_model not in best or probability > best[is_model][0]):
                shares_words = bool(context.words & candidate.context.words)
                best[is_model] = probability, shares_words, candidate.source
        if True in best and (False not in best or (best[True][1] and not best[False][1])):
            return best[True][2]
        if False not in best and number.bound:
            return next((candidate.source for candidate in self._p_values if is_bounded(number, candidate)), None)
        return best[False][2] if False in best else None

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


def _may_convert(number: FoundNumber, unit: Unit, candidate: SourceNumber) -> bool:
    """Whether a number of a source may be in a unit: its line names it, or none while another line or source does."""
    units = candidate.context.units
    return unit in units or (not units and abs(number.value) >= 100 * number.last_digit)
