"""Numbers that fit all of several schemas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.limits import Unsatisfiable
from ferrule.dialects.value_grammar.multiples import make_multiples
from ferrule.dialects.value_grammar.number_ranges import EXACT_DIGITS, NumberRange, make_number
from ferrule.dialects.value_grammar.parts import Context, Part, Parts

_EXACT = 2**53
"""Integers below this are exact as floats."""
_FORMATS: Mapping[str, tuple[int, int] | None] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": None,
    "float": None,
    "double": None,
}
"""Formats of numbers with their bounds, None if any number that is written fits."""


def lower_number(parts: Parts, is_integer: bool, context: Context) -> Grammar:
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


def _collect_multiples(part: Part, is_large: bool, context: Context) -> list[Fraction]:
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


def _collect_bounds(part: Part, word: str, exclusive: str) -> list[tuple[Fraction, bool]]:
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
