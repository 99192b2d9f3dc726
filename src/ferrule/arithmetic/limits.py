"""The calculator's limits, and the error that says why an expression was refused.

Every limit is checked before the work that it limits is done; `docs/calculator.md` lists them.
"""

from typing import Final

from ferrule.errors import FerruleError

MAX_LENGTH: Final = 2_000
"""Characters in an expression, including strings."""

MAX_OPERATIONS: Final = 250
"""Operator signs, brackets and calls in an expression."""

MAX_DEPTH: Final = 50
"""Nested brackets."""

MAX_LITERAL_DIGITS: Final = 640
"""Digits of a number as written: the longest that Python reads in any environment."""

MAX_DIGITS: Final = 2_000
"""Digits of an integer, in intermediate results and at the end."""

MAX_FRACTION_DIGITS: Final = 1_200
"""Digits of the numerator or the denominator of a fraction."""

MAX_EXPONENT: Final = 1_000
"""The largest absolute exponent, after `**` and after the `e` of `1e3`."""

FULL_DIGITS: Final = 30
"""A terminating result is written in full if it takes at most so many digits."""

ROUNDED_DIGITS: Final = 12
"""Significant digits of a rounded result."""

BOUND: Final[int] = 10**MAX_DIGITS
BOUND_BITS: Final[int] = BOUND.bit_length()
FRACTION_BOUND: Final[int] = 10**MAX_FRACTION_DIGITS
FRACTION_BITS: Final[int] = FRACTION_BOUND.bit_length() - 1


class CalculatorError(FerruleError, ValueError):
    """An expression was refused; its text is the reason, worded so that a model can act on it."""


def check_digits(number: int) -> int:
    """The same number; raises CalculatorError if it has more than MAX_DIGITS digits."""
    if -BOUND < number < BOUND:
        return number
    raise CalculatorError(_TOO_MANY_DIGITS)


def check_bits(bits: int) -> None:
    """Raises CalculatorError if a number of at least so many bits is beyond what may be computed."""
    if bits > BOUND_BITS:
        raise CalculatorError(_TOO_MANY_DIGITS)


def check_fraction(top: int, bottom: int) -> tuple[int, int]:
    """The same fraction; raises CalculatorError if a part of it has more than MAX_FRACTION_DIGITS digits."""
    if -FRACTION_BOUND < top < FRACTION_BOUND and bottom < FRACTION_BOUND:
        return (top, bottom)
    raise CalculatorError(f"a fraction would have more than {MAX_FRACTION_DIGITS:,} digits above or below its line")


_TOO_MANY_DIGITS: Final = f"a number would have more than {MAX_DIGITS:,} digits"
