"""Numbers that fit all of several schemas.

Multiples are written digit by digit: what follows depends on the remainder so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil, gcd, log10
from typing import Any

from ferrule.dialects.grammar import NOTHING, CharacterSet, Grammar, LiteralText, make_text_choice
from ferrule.dialects.value_grammar.number_ranges import EXACT_DIGITS, NumberRange, make_number
from ferrule.dialects.value_grammar.schema_parts import LoweringContext, Parts, SchemaPart
from ferrule.dialects.value_grammar.terms import DIGITS, Unsatisfiable, choose, join, repeat

_EXACT = 2**53
"""Integers below this are exact as floats."""
_FORMATS: Mapping[str, tuple[int, int] | None] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": None,
    "float": None,
    "double": None,
}
"""Formats of numbers with their bounds, None if any number that is written fits."""
_MAX_LISTED = 200
"""So many multiples are listed, each as a text."""
_MAX_STATES = 300
"""The maximum number of remainders, at all places together, that are told apart."""
_LARGEST = 10**EXACT_DIGITS
_DIGIT = CharacterSet(DIGITS)


def lower_number(parts: Parts, is_integer: bool, context: LoweringContext) -> Grammar:
    """A number. Raises `Unsatisfiable`."""
    lower, upper = [], []
    for part in parts:
        lower += _collect_bounds(part, "minimum", "exclusiveMinimum")
        upper += _collect_bounds(part, "maximum", "exclusiveMaximum")
        if limits := _FORMATS.get(part.schema.get("format", "")):
            lower.append((Fraction(limits[0]), False))
            upper.append((Fraction(limits[1]), False))
        if part.schema.get("format", "double") not in _FORMATS:
            context.note_loss(part, "format", f"{part.schema['format']!r} isn't a known format of numbers")
    # Of equal bounds the one that is excluded.
    minimum, excludes_minimum = max(lower, default=(None, False))
    maximum, includes_maximum = min(((bound, not excludes) for bound, excludes in upper), default=(None, True))
    is_large = max(minimum or 0, -(maximum or 0)) >= 10**EXACT_DIGITS
    multiple = _find_common_multiple([one for part in parts for one in _collect_multiples(part, is_large, context)])
    numbers = NumberRange(is_integer, minimum, maximum, excludes_minimum, not includes_maximum, multiple)
    make = make_number if multiple is None else make_multiples
    try:
        return make(numbers, context.limits.integer_digits, context.limits.fraction_digits)
    except Unsatisfiable as error:
        raise Unsatisfiable(f"{parts[0].place or 'the schema'}: {error}") from None


def _collect_multiples(part: SchemaPart, is_large: bool, context: LoweringContext) -> list[Fraction]:
    """What a part wants multiples of; `is_large` if all numbers have more digits than a float."""
    written = part.schema.get("multipleOf")
    multiple = _read_number(written)
    if multiple is None or multiple <= 0:
        return []
    if Fraction(written) != multiple or (is_large and isinstance(written, float)):
        context.note_loss(part, "multipleOf", "exact multiples are written, some of which a check by floats refuses")
    return [multiple]


def _find_common_multiple(multiples: list[Fraction]) -> Fraction | None:
    """The least number that is a multiple of all."""
    if not multiples:
        return None
    unit = math.lcm(*(one.denominator for one in multiples))
    return Fraction(math.lcm(*(int(one * unit) for one in multiples)), unit)


def _collect_bounds(part: SchemaPart, word: str, exclusive: str) -> list[tuple[Fraction, bool]]:
    """The bounds of a part on one side, and whether each is excluded. Up to draft 4 a boolean excluded the other."""
    schema = part.schema
    bounds = []
    if word in schema and (bound := _read_number(schema[word])) is not None:
        bounds.append((bound, schema.get(exclusive) is True))
    if exclusive in schema and (bound := _read_number(schema[exclusive])) is not None:
        bounds.append((bound, True))
    return bounds


def _read_number(value: Any) -> Fraction | None:
    """A number as it is written, if that is exact enough; None if it is none, or isn't finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    # A decimal rounds to a float as the bound did, so it is the written ones that are compared.
    return Fraction(repr(value)) if abs(value) < _EXACT else Fraction(value)


@lru_cache(1024)
def make_multiples(numbers: NumberRange, digits: int, places: int) -> Grammar:
    """The numbers of a range that are multiples of its `multiple`, with at most `places` decimal places; where it has
    no bound, of at most `digits` digits before the point. Raises `Unsatisfiable`."""
    assert numbers.multiple is not None
    options = []
    needed = next((count for count in range(places) if (numbers.multiple * 10**count).denominator == 1), places)
    for count in range(0 if numbers.is_integer else needed, -1, -1):
        # In units of the last place: the least multiple that is a whole number of them.
        unit = (numbers.multiple * 10**count).numerator
        options += _make_with_places(numbers, unit, digits, count)
    if not options:
        raise Unsatisfiable("no multiple is between its bounds")
    return choose(options)


def _make_with_places(numbers: NumberRange, unit: int, digits: int, places: int) -> list[Grammar]:
    """The multiples with exactly so many decimal places."""
    kept = _limit_digits(unit, digits, places)
    low, high = numbers.scale(places, kept)
    # Whether a longer number is a multiple can't be told from the float that it is read as.
    if places or max(low, -high) < _LARGEST:
        low, high = max(low, 1 - _LARGEST), min(high, _LARGEST - 1)
    low, high = -(-low // unit), high // unit
    if low > high:
        return []
    if high - low < _MAX_LISTED:
        return [make_text_choice(_write(number * unit, places) for number in range(low, high + 1))]
    if _count_states(unit, len(str(max(abs(low), abs(high)) * unit))) > _MAX_STATES:
        # Too many remainders: those next to zero, or to the bound that is next to it.
        low = max(low, min(high - _MAX_LISTED, -_MAX_LISTED // 2))
        return [make_text_choice(_write(number * unit, places) for number in range(low, low + _MAX_LISTED))]
    writer = _DigitWriter(unit, places)
    options = list(writer.write_naturals(max(low * unit, 0), high * unit)) if high >= 0 else []
    if low < 0:
        negative = list(writer.write_naturals(max(-high * unit, 1), -low * unit))
        options += [join("-", choose(negative))] if negative else []
    return options


def _limit_digits(unit: int, digits: int, places: int) -> int:
    """The digits before the point for which the remainders aren't too many; they have to be exact as floats."""
    digits = min(digits, EXACT_DIGITS - places)
    while digits > 1 and _count_states(unit, digits + places) > _MAX_STATES:
        digits -= 1
    return max(digits, min(EXACT_DIGITS, ceil(log10(unit * _MAX_LISTED)) - places), 1)


def _count_states(unit: int, count: int) -> int:
    """The remainders of a number with so many digits, at all of them, as far as any digits can follow."""
    return sum(min(unit // gcd(unit, 10**left), 10**left) for left in range(count))


def _write(number: int, places: int) -> str:
    text = str(abs(number)).zfill(places + 1)
    sign = "-" if number < 0 else ""
    return f"{sign}{text[:-places]}.{text[-places:]}" if places else sign + text


class _DigitWriter:
    """Writes the digits of multiples of `unit`, with a point before the last `places` of them."""

    def __init__(self, unit: int, places: int) -> None:
        self._unit, self._places = unit, places
        self._known: dict[tuple[int, int], Grammar | None] = {}
        # From this many digits on, those before don't matter.
        self._free = next((count for count in range(len(str(unit)) * 4) if 10**count % unit == 0), None)

    def write_naturals(self, low: int, high: int) -> Iterator[Grammar]:
        """The multiples from `low` to `high`, by their numbers of digits."""
        shortest = self._places + 1
        for count in range(max(shortest, len(str(low))), max(shortest, len(str(high))) + 1):
            least = 10 ** (count - 1) if count > shortest else 0
            first, last = max(low, least), min(high, 10**count - 1)
            if first <= last and (found := self._write(str(first).zfill(count), str(last).zfill(count), 0)):
                yield found

    def _write(self, low: str, high: str, remainder: int) -> Grammar | None:
        """Digits from `low` to `high`, which are as long, after others that leave a remainder."""
        count = len(low)
        if not low.strip("0") and not high.strip("9"):
            return self._write_any(count, remainder)
        options: list[tuple[str, Grammar]] = []
        for digit in range(int(low[0]), int(high[0]) + 1):
            one = str(digit)
            first = low[1:] if one == low[0] else "0" * (count - 1)
            last = high[1:] if one == high[0] else "9" * (count - 1)
            if (rest := self._write(first, last, self._add(remainder, digit))) is not None:
                options.append((one, rest))
        return self._choose(count, options)

    def _write_any(self, count: int, remainder: int) -> Grammar | None:
        """Any digits, so many."""
        if count == 0:
            return NOTHING if remainder % self._unit == 0 else None
        # Remainders that come to the same after the digits that are left are the same.
        key = count, remainder * 10**count % self._unit
        if key not in self._known:
            self._known[key] = self._write_new(count, remainder)
        return self._known[key]

    def _write_new(self, count: int, remainder: int) -> Grammar | None:
        kept = None if self._free is None else max(self._free, self._places)
        if kept is not None and count > kept:
            rest = self._write_any(kept, 0)
            return None if rest is None else join(repeat(_DIGIT, count - kept, count - kept), rest)
        if self._unit == 1:
            return join("." if count == self._places else "", repeat(_DIGIT, count, count))
        options = [
            (digit, rest)
            for digit in DIGITS
            if (rest := self._write_any(count - 1, self._add(remainder, int(digit)))) is not None
        ]
        return self._choose(count, options)

    def _choose(self, count: int, options: list[tuple[str, Grammar]]) -> Grammar | None:
        """One of these digits, each with what follows it, at a place with so many digits from there on."""
        if not options:
            return None
        digits: dict[int, str] = {}
        for digit, rest in options:
            digits[id(rest)] = digits.get(id(rest), "") + digit
        rests = {id(rest): rest for _, rest in options}
        sets = [LiteralText(text) if len(text) == 1 else CharacterSet(text) for text in digits.values()]
        chosen = choose(join(one, rest) for one, rest in zip(sets, rests.values(), strict=True))
        return join(".", chosen) if count == self._places else chosen

    def _add(self, remainder: int, digit: int) -> int:
        return (remainder * 10 + digit) % self._unit
