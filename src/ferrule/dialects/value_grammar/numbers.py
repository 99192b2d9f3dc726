"""Numbers that fit all of several schemas."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from ferrule.dialects.grammar import Grammar
from ferrule.dialects.value_grammar.limits import Unsatisfiable
from ferrule.dialects.value_grammar.number_ranges import NumberRange, make_number
from ferrule.dialects.value_grammar.parts import Context, Part, Parts

_EXACT = 2**53
"""Integers below this are exact as floats."""
_FORMATS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "float": None, "double": None}


def lower_number(parts: Parts, is_integer: bool, context: Context) -> Grammar:
    """A number. Raises `Unsatisfiable`."""
    lower, upper = [], []
    for part in parts:
        lower += _collect_bounds(part, "minimum", "exclusiveMinimum")
        upper += _collect_bounds(part, "maximum", "exclusiveMaximum")
    minimum, excludes_minimum = max(lower, default=(None, False))
    maximum, excludes_maximum = min(((bound, not excludes) for bound, excludes in upper), default=(None, True))
    numbers = NumberRange(is_integer, minimum, maximum, excludes_minimum, not excludes_maximum)
    for part in parts:
        if "multipleOf" in part.schema:
            context.note_loss(part, "multipleOf", "")
    try:
        return make_number(numbers, context.limits.integer_digits, context.limits.fraction_digits)
    except Unsatisfiable as error:
        raise Unsatisfiable(f"{parts[0].place or 'the schema'}: {error}") from None


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
