"""How probably a number of an answer is one of a source: by their digits, their signs, and the words around both."""

from __future__ import annotations

import re
from typing import Final

from ferrule.analysis.numbers.bounds import Bound, is_equal, is_on_side
from ferrule.analysis.numbers.context import Context, read_words
from ferrule.analysis.numbers.finding import LARGEST, FoundNumber
from ferrule.analysis.numbers.source_numbers import SourceKind, SourceNumber

_WEIGHTS: dict[SourceKind, float] = {"run": 1.5, "question": 0.5, "profile": 0.5, "model": 0.0}
_STATISTICS: Final = read_words(
    "number text date time row column value missing distinct mean standard deviation quantile"
)
"""Words of every profile, which name no column."""
_STATISTIC_WORDS: Final = {
    "extreme": read_words(
        "maximum max minimum min highest lowest high low largest smallest most least best worst top peak peaked range "
        "ranges ranged ranging extreme up reach reached reaches never always greatest"
    ),
    "deviation": read_words("deviation sd std spread vary varied variation variability"),
    "quantile": read_words("quantile median percentile quartile typical typically half middle"),
}
"""Words of which a sentence has one if it gives such a statistic."""
_EXACT_FLOAT = 2**53
"""The first whole number above which a float doesn't hold every one."""
_ROUNDED = 100_000
"""From here on, three zeros at the end may be rounded digits: "412,000" for 412,331."""
_PENALTY_OF_RANGE = 1.2
"""What is taken from the score of one end of a range, such as 18 in the name "18-49" of a group."""


def find_tolerance(number: FoundNumber) -> float:
    """How far a number may be from one that it is the rounded form of, in its own unit.

    Half of the last digit shown, also where it is rounded up or to even. After "about", final zeros are digits that
    may not be shown, but for two; a bound, as in "over 5", may have been cut instead of rounded.
    """
    last_digit = number.last_digit
    if last_digit == 1 and abs(number.value) >= _ROUNDED and number.value % 1000 == 0:
        last_digit = 1000.0
    elif number.is_rough and number.value and last_digit >= 1:
        units = f"{abs(number.value) / last_digit:.0f}"
        zeros = len(units) - len(units.rstrip("0"))
        last_digit *= 10.0 ** max(0, min(zeros, len(units) - 2))
    half = last_digit if number.bound else last_digit / 2
    return half + 1e-9 * max(abs(number.value), last_digit)


def may_compare(number: FoundNumber, factor: float, candidate: SourceNumber) -> bool:
    """Whether the two may stand for the same in this reading: a percentage as such, or as a fraction of one."""
    if number.percent and candidate.is_percent:
        return factor == number.percent / 1e-2
    if number.percent:
        return factor == number.percent or (
            factor == 1.0 and not (_is_bare_count(candidate) or _is_fraction(candidate))
        )
    return factor == 1.0 or (candidate.is_percent and factor == 1e2)


def _is_bare_count(candidate: SourceNumber) -> bool:
    """Whether a whole number of an output or a profile is said to be no share, so that it isn't a percentage."""
    if candidate.source.kind not in ("run", "profile") or candidate.context.is_share:
        return False
    return candidate.text.isdigit() if candidate.text else candidate.value.is_integer()


def _is_fraction(candidate: SourceNumber) -> bool:
    """Whether an output says that a number is a share of one, so that 0.5 is 50% and no 0.5%."""
    return candidate.context.is_fraction and abs(candidate.value) < 1


def is_bounded(number: FoundNumber, candidate: SourceNumber) -> bool:
    """Whether a p-value of a source lies on the side of a bound that the answer names: "p < 0.001" for 2e-9.

    An output that has a bound itself has one for each wider bound: "p < 0.001" for "p < 0.05".
    """
    limit = number.value * (number.percent or 1.0)
    if limit > 0.5 or not 0 <= candidate.value <= 1:
        return False
    if candidate.bound:
        wider: Bound = "<=" if number.bound[0] == "<" else ">="
        return candidate.bound[0] == number.bound[0] and is_on_side(candidate.value, wider, limit)
    return is_on_side(candidate.value, number.bound, limit)


def _may_have_bound(number: FoundNumber, factor: float, candidate: SourceNumber) -> bool:
    """Whether an output is on the side of a bound that the answer names, or is the bound itself.

    It is the bound itself if it is the same number, and the output compares others with it, or it is no output. What an
    output calls a bound is no value that could be on a side of another.
    """
    if not number.bound:
        return True
    limit, value = number.value * factor, candidate.value
    if limit * value < 0:
        # What a minus says is said by a word, as in "fell by more than 4%".
        limit, value = (limit, abs(value)) if limit > 0 else (limit, -value)
    if is_equal(value, limit):
        is_given = candidate.source.kind in ("question", "profile") or candidate.is_threshold or candidate.is_range
        return is_given or number.bound.endswith("=")
    return not candidate.bound and is_on_side(value, number.bound, limit)


def _may_have_digits(number: FoundNumber, candidate: SourceNumber) -> bool:
    """Whether two whole numbers of more digits than a float holds are written with the same ones."""
    if abs(number.value) < _EXACT_FLOAT or number.last_digit != 1 or candidate.last_digit != 1 or not candidate.text:
        return True
    return _has_same_digits(number.text, candidate.text)


def score(number: FoundNumber, factor: float, context: Context, candidate: SourceNumber) -> float | None:
    """How probably the number came from there, or None if it can't have: the more words in common, the more so."""
    if LARGEST in (abs(number.value), abs(candidate.value)) and not _has_same_digits(number.text, candidate.text):
        return None
    difference = abs(abs(candidate.value) - abs(number.value) * factor)
    is_exact = difference <= 1e-9 * abs(candidate.value)
    if not _may_match(number, factor, context, candidate, is_exact=is_exact):
        return None
    near, words = len(context.near & candidate.context.near), len(context.words & candidate.context.words)
    if not (is_exact or words) and _is_by_chance(number, candidate):
        return None
    total = 0.6 * min(near, 3) + 0.3 * min(words, 4) + _WEIGHTS[candidate.source.kind] - 0.01 * candidate.order
    if is_exact:
        total += 1.5 if _is_count(number) else 0.5
    if number.text == candidate.text:
        total += 0.6
    if candidate.is_range and not context.is_range:
        total -= _PENALTY_OF_RANGE
    return total - (0.25 if factor != 1.0 else 0.0)


def _may_match(
    number: FoundNumber, factor: float, context: Context, candidate: SourceNumber, *, is_exact: bool
) -> bool:
    """Whether the digits that are shown, the signs, and what both are said to be allow that it is the same number."""
    if not is_exact and (context.is_chosen or candidate.last_digit > 2 * find_tolerance(number) * factor):
        return False
    if candidate.is_range and number.percent and factor == 1.0:
        return False
    return (
        _may_have_digits(number, candidate)
        and _may_have_bound(number, factor, candidate)
        and _may_have_sign(number, context, candidate)
        and _may_have_role(number, candidate, is_exact=is_exact)
        and (candidate.source.kind != "profile" or _may_be_given(number, factor, context, candidate))
    )


def _is_by_chance(number: FoundNumber, candidate: SourceNumber) -> bool:
    """Whether a rounded number has so few digits that many outputs have it, or is a small count."""
    digits = abs(number.value) / number.last_digit
    limit = 100 if candidate.text else 1000
    return digits < 0.5 or (digits < limit and candidate.is_crowded) or (_is_count(number) and not number.is_rough)


def _may_be_given(number: FoundNumber, factor: float, context: Context, candidate: SourceNumber) -> bool:
    """Whether a number may repeat one of a profile, whose counts and quantiles small numbers equal by chance.

    A percentage repeats one, or where the column and the statistic are named, a fraction or a number with three digits.
    """
    if candidate.context.is_chosen:
        return context.is_chosen
    if number.role != "quantity":
        return True
    shared = context.words & candidate.context.words
    is_small = abs(number.value) < 100 * number.last_digit
    if number.percent and not candidate.is_percent:
        is_fraction = factor == number.percent and 0 < abs(candidate.value) < 1
        return bool(shared - _STATISTICS) and (is_fraction or not is_small) and _says_statistic(context, candidate)
    return not is_small or number.last_digit < 1 or "quantile" not in candidate.context.words or bool(shared)


def _says_statistic(context: Context, candidate: SourceNumber) -> bool:
    """Whether a sentence says which statistic of a column it gives; a mean may be given as the value itself."""
    if candidate.statistic == "extreme" and context.is_range:
        return True
    words = _STATISTIC_WORDS.get(candidate.statistic)
    return words is None or bool(context.words & words)


def _has_same_digits(one: str, other: str) -> bool:
    """Whether two numbers that are too large for a float are written with the same digits."""
    return re.sub(r"\D", "", one) == re.sub(r"\D", "", other)


def _is_count(number: FoundNumber) -> bool:
    return number.last_digit == 1 and not number.percent and abs(number.value) < 10


def _may_have_sign(number: FoundNumber, context: Context, candidate: SourceNumber) -> bool:
    is_same = number.value * candidate.value >= 0
    is_run = number.value > 0 and candidate.source.kind == "run"
    if is_run and context.change and not _may_change(context.change, candidate):
        return False
    if is_run and context.is_fall and candidate.context.is_changed and not _may_change(-1, candidate):
        return False
    if is_same or number.is_in_parentheses or (context.is_cost and number.value > 0 and not number.percent):
        return True
    return candidate.context.is_decrease if number.value < 0 else context.is_decrease


def _may_change(sign: int, candidate: SourceNumber) -> bool:
    """Whether an output has the sign of the change that a sentence gives, or is called a decrease itself."""
    if sign > 0:
        return candidate.value >= 0
    return candidate.value <= 0 or candidate.context.is_decrease


def _may_have_role(number: FoundNumber, candidate: SourceNumber, *, is_exact: bool) -> bool:
    if number.days:
        return any(one.startswith(day) for day in number.days for one in candidate.days)
    if number.role != "quantity":
        return is_exact and candidate.role in {number.role, "quantity"}
    # Four digits by themselves look like a year, whatever they count; "Q3" is no 3.
    return candidate.role != "ordinal" or (is_exact and candidate.source.kind == "question")
