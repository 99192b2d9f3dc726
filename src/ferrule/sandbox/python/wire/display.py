"""Formats returned values as text. Never raises, and takes little time for any value.

Python itself refuses to format an integer of more than about 4,000 digits, and numpy takes minutes for a small array
of many dimensions.
"""

from __future__ import annotations

import dataclasses
import fractions
import reprlib
import sys
from typing import Any, Final

_BITS_PER_DIGIT: Final = 3
"""Rounded down, so that the estimate never exceeds the limit."""
_SHOWN: Final = 40
"""Hexadecimal digits shown at either end of a long integer."""
_ITEMS: Final = 1000
_DIMENSIONS: Final = 4


def is_writable(number: int) -> bool:
    """Check whether Python formats an integer in decimal, and quickly."""
    most = sys.int_info.default_max_str_digits
    return number.bit_length() <= _BITS_PER_DIGIT * min(sys.get_int_max_str_digits() or most, most)


def format_integer(number: int) -> str:
    """Format an integer in decimal, or in hexadecimal and cut in the middle if it is too long."""
    if is_writable(number):
        return str(number)
    digits = hex(number)
    return f"{digits[:_SHOWN]}…{digits[-_SHOWN:]} (an integer of {number.bit_length():,} bits)"


def format_fraction(number: fractions.Fraction) -> str:
    """Format a fraction as `1/3`."""
    if number.denominator == 1:
        return format_integer(number.numerator)
    return f"{format_integer(number.numerator)}/{format_integer(number.denominator)}"


def format_array(array: Any) -> str:
    """Return numpy's `repr` of an array; for a large one of many dimensions, of its first items, flattened."""
    if array.size <= _ITEMS or array.ndim <= _DIMENSIONS:
        return repr(array)
    return f"{array.reshape(-1)[:_ITEMS]!r} (the first {_ITEMS:,} items of an array of the shape {array.shape})"


class _ShortRepr(reprlib.Repr):
    """`reprlib.Repr`, extended to values for which it raises or takes long."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 8
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 50
        self.maxstring = self.maxlong = self.maxother = 4000

    def repr_int(self, number: int, _: int) -> str:
        return format_integer(number)

    def repr_Fraction(self, number: fractions.Fraction, _: int) -> str:  # noqa: N802 - a class's own name
        return f"Fraction({format_integer(number.numerator)}, {format_integer(number.denominator)})"

    def repr_ndarray(self, array: Any, _: int) -> str:
        return format_array(array)

    def repr_instance(self, value: Any, level: int) -> str:
        if dataclasses.is_dataclass(value) and level > 0:
            fields = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value) if one.repr)
            inside = ", ".join(f"{name}={self.repr1(part, level - 1)}" for name, part in fields)
            return f"{type(value).__name__}({inside})"
        try:
            return super().repr_instance(value, level)
        except Exception as error:  # noqa: BLE001 - a class that isn't Python's own may raise anything
            return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"


_SHORT_REPR: Final = _ShortRepr()


def format_value(value: Any) -> str:
    """Return the `repr` of a value, shortened if it is long."""
    return _SHORT_REPR.repr(value)
