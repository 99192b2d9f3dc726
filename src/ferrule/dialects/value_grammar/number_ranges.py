"""Numbers between two bounds, digit by digit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from ferrule.dialects.grammar import NOTHING, CharacterSet, Grammar
from ferrule.dialects.value_grammar.terms import DIGITS, Unsatisfiable, choose, join, make_digit, repeat

EXACT_DIGITS = 15
"""Decimals of so many digits are told apart by floats."""
_DIGIT = CharacterSet(DIGITS)


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The numbers between two bounds, which may be excluded, that are multiples of `multiple`."""

    is_integer: bool
    minimum: Fraction | None = None
    maximum: Fraction | None = None
    excludes_minimum: bool = False
    excludes_maximum: bool = False
    multiple: Fraction | None = None

    def scale(self, places: int, digits: int) -> tuple[int, int]:
        """The least and the greatest number of `places` decimal places in the range, times 10^places. Where it has no
        bound, numbers have at most `digits` digits before the point."""
        unit = 10**places
        low = high = None
        if self.minimum is not None:
            low = ceil(self.minimum * unit)
            low += self.excludes_minimum and low == self.minimum * unit
        if self.maximum is not None:
            high = floor(self.maximum * unit)
            high -= self.excludes_maximum and high == self.maximum * unit
        # A bound beyond the digits leaves as many more to the other side.
        most = 10**digits * unit - 1
        if low is None:
            low = -most if high is None or high > -most else high * 10
        if high is None:
            high = most if low < most else low * 10
        return low, high


@lru_cache(1024)
def make_number(numbers: NumberRange, digits: int, places: int) -> Grammar:
    """A number of the range, with at most `places` decimal places; see `NumberRange.scale` for `digits`. Raises
    `Unsatisfiable`."""
    bounds = [bound for bound in (numbers.minimum, numbers.maximum) if bound is not None]
    if numbers.is_integer:
        low, high = numbers.scale(0, digits)
        if low > high:
            raise Unsatisfiable("no integer is between its bounds")
        return make_integers(low, high)
    largest = max((len(str(abs(int(bound)))) for bound in bounds), default=0)
    places = max(0, min(places, EXACT_DIGITS - largest))
    low, high = numbers.scale(places, digits)
    if low > high:
        raise Unsatisfiable(f"no number of {places} decimal places is between its bounds")
    number = _make_decimals(low, high, places)
    return number if bounds else join(number, choose((_EXPONENT, NOTHING)))


_EXPONENT = join(CharacterSet("eE"), choose((CharacterSet("+-"), NOTHING)), repeat(_DIGIT, 1, 2))


def make_integers(low: int, high: int) -> Grammar:
    """The integers from `low` to `high`, of which there is at least one."""
    options = []
    if high >= 0:
        options.append(_make_naturals(max(low, 0), high))
    if low < 0:
        options.append(join("-", _make_naturals(max(-high, 1), -low)))
    return choose(options)


def _make_naturals(low: int, high: int) -> Grammar:
    """The natural numbers from `low` to `high`, by their numbers of digits."""
    options: list[Grammar] = []
    whole: list[int] = []
    for count in range(len(str(low)), len(str(high)) + 1):
        least = 10 ** (count - 1) if count > 1 else 0
        first, last = max(low, least), min(high, 10**count - 1)
        if count > 1 and (first, last) == (least, 10**count - 1):
            whole.append(count)
        else:
            options.append(make_digits(str(first), str(last)))
    if whole:
        options.append(join(make_digit(1), repeat(_DIGIT, whole[0] - 1, whole[-1] - 1)))
    return choose(options)


def make_digits(low: str, high: str) -> Grammar:
    """Digits from `low` to `high`, which are as long."""
    count = len(low)
    shared = next((place for place in range(count) if low[place] != high[place]), count)
    if shared:
        return join(low[:shared], make_digits(low[shared:], high[shared:]) if shared < count else NOTHING)
    first, last = int(low[0]), int(high[0])
    options: list[Grammar] = []
    if low[1:].strip("0"):
        options.append(join(low[0], make_digits(low[1:], "9" * (count - 1))))
        first += 1
    if is_partial := bool(high[1:].strip("9")):
        last -= 1
    if first <= last:
        options.append(join(make_digit(first, last), repeat(_DIGIT, count - 1, count - 1)))
    if is_partial:
        options.append(join(high[0], make_digits("0" * (count - 1), high[1:])))
    return choose(options)


def _make_decimals(low: int, high: int, places: int) -> Grammar:
    """The numbers of `places` decimal places from `low` to `high`, which are times 10^places; zeros at the end may be
    missing."""
    options = []
    if high >= 0:
        options.append(_make_magnitudes(max(low, 0), high, places))
    if low < 0:
        options.append(join("-", _make_magnitudes(max(-high, 1), -low, places)))
    return choose(options)


def _make_magnitudes(low: int, high: int, places: int) -> Grammar:
    unit = 10**places
    (first, least), (last, most) = divmod(low, unit), divmod(high, unit)
    if first == last:
        return join(str(first), _make_fraction(_pad(least, places), _pad(most, places)))
    options: list[Grammar] = []
    if least:
        options.append(join(str(first), _make_fraction(_pad(least, places), "9" * places)))
        first += 1
    if most < unit - 1:
        options.append(join(str(last), _make_fraction("0" * places, _pad(most, places))))
        last -= 1
    if first <= last:
        options.append(join(_make_naturals(first, last), _make_fraction("0" * places, "9" * places)))
    return choose(options)


def _pad(number: int, places: int) -> str:
    return str(number).zfill(places) if places else ""


def _make_fraction(low: str, high: str) -> Grammar:
    """A point and decimals from `low` to `high`, which are as long; nothing stands for zeros."""
    options: list[Grammar] = [join(".", _make_decimal_places(low, high))] if low else []
    return choose((*options, NOTHING)) if not low.strip("0") else choose(options)


def _make_decimal_places(low: str, high: str) -> Grammar:
    """Decimals from `low` to `high`, at least one; those that are missing at the end are zeros."""
    count = len(low)
    if not low.strip("0") and not high.strip("9"):
        return repeat(_DIGIT, 1, count)
    first, last = int(low[0]), int(high[0])
    if first == last:
        return join(low[0], _make_more_places(low[1:], high[1:]))
    options: list[Grammar] = []
    if low[1:].strip("0"):
        options.append(join(low[0], _make_more_places(low[1:], "9" * (count - 1))))
        first += 1
    if is_partial := bool(high[1:].strip("9")):
        last -= 1
    if first <= last:
        options.append(join(make_digit(first, last), repeat(_DIGIT, 0, count - 1)))
    if is_partial:
        options.append(join(high[0], _make_more_places("0" * (count - 1), high[1:])))
    return choose(options)


def _make_more_places(low: str, high: str) -> Grammar:
    options: list[Grammar] = [_make_decimal_places(low, high)] if low else []
    return choose((*options, NOTHING)) if not low.strip("0") else choose(options)
