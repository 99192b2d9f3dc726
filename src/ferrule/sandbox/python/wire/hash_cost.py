"""Estimates the worst-case cost of building a set, or a dictionary's keys, from untrusted values.

Python's hashes of numbers, and of values made of numbers, are predictable, so collisions can be constructed: each value
is then compared with each other one, and different hashes can share probe sequences. Text and bytes are hashed with a
random secret of the process, so theirs can't be constructed (unless `PYTHONHASHSEED` sets it).
"""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ferrule.sandbox.python.wire.display import format_value

WORK: Final = 25_000_000
"""The limit of `estimate_hash_work` for one answer: 5,000 numbers as keys, which take about 20 ms at worst."""


@dataclass(frozen=True, slots=True, repr=False)
class UnhashedDict:
    """A dictionary that wasn't built because hashing its keys could take long: keys and values, in order."""

    items: tuple[tuple[Any, Any], ...]

    def __repr__(self) -> str:
        return format_value(self)


@dataclass(frozen=True, slots=True, repr=False)
class UnhashedSet:
    """A set that wasn't built because hashing its members could take long: the members, in no order."""

    items: tuple[Any, ...]

    def __repr__(self) -> str:
        return format_value(self)


_SECRET: Final = frozenset({str, bytes, bool, type(None)})
_MADE_OF_NUMBERS: Final = frozenset(
    {complex, datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)  # fmt: skip
_DEPTH: Final = 4
_DIGITS: Final = 50
_EXPONENT: Final = 1000
_INTEGER: Final = 2**63
_BITS: Final = 1024


def estimate_hash_work(keys: Sequence[Any], most: int) -> int:
    """Estimate the steps, of a few nanoseconds each, of building a table of these keys; over `most` if too many.

    A single key whose hash or comparison may take long is too many. Raises `TypeError` for unhashable keys.
    """
    kinds = {type(key) for key in keys}
    if kinds <= _SECRET:
        return 0
    if kinds == {int} and min(keys) >= -_INTEGER and max(keys) < _INTEGER:
        return 0 if _count_upwards(keys) else len(keys) ** 2
    count = total = 0
    for key in keys:
        weight = _weight(key, 0)
        if weight:
            count += 1
            total += weight
            if weight > most or count * total > most:
                return most + 1
    return count * total


def _count_upwards(numbers: Sequence[int]) -> bool:
    """Check that the numbers are consecutive and small: then no two collide."""
    first = numbers[0]
    return abs(first) < 2**53 and all(map(int.__eq__, numbers, range(first, first + len(numbers))))


def _weight(key: Any, depth: int) -> int:
    kind = type(key)
    if kind in _SECRET:
        return 0
    if kind is float or (kind is int and -_INTEGER <= key < _INTEGER):
        return 1
    if kind is int and key.bit_length() <= _BITS:
        return 20
    if kind in _MADE_OF_NUMBERS:
        return 30
    if kind is tuple and depth < _DEPTH:
        return 20 + sum(_weight(part, depth + 1) + 1 for part in key)
    if kind is frozenset and depth < _DEPTH:
        return 60 + 4 * len(key) * (2 + sum(_weight(part, depth + 1) + 1 for part in key))
    if kind is decimal.Decimal and key.is_finite() and _is_short(key):
        return 600
    if kind is fractions.Fraction and max(abs(key.numerator), key.denominator) < _INTEGER:
        return 2000
    if kind.__hash__ is None:
        raise TypeError(f"unhashable type: {kind.__name__}")
    return WORK + 1


def _is_short(number: decimal.Decimal) -> bool:
    return abs(number.adjusted()) <= _EXPONENT and len(number.as_tuple().digits) <= _DIGITS
