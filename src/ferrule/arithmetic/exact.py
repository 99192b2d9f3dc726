"""Exact arithmetic for the calculator within its limits, and the formatting of its results.

A number is an `int`, or a pair (numerator, denominator) with a positive denominator that need not be in lowest terms:
reducing only when a pair grows or is written makes a chain of decimals several times faster than `fractions.Fraction`.
Every limit is checked before the work that it bounds is done; `docs/calculator.md` lists them for readers.
"""

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import gcd, isqrt
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


Pair = tuple[int, int]
Number = int | Pair

REDUCE_BITS: Final = 256
FIVES: Final = {5**power: power for power in range(FULL_DIGITS + 1)}
FULL_BOUND: Final[int] = 10**FULL_DIGITS
SAFE_TEXT_DIGITS: Final = 600
SAFE_TEXT_BOUND: Final[int] = 10**SAFE_TEXT_DIGITS


def read_decimal(written: str) -> Number:
    """The exact value of a number with a decimal point or an exponent, such as `0.1`, `.5`, `5.` or `1.5e-3`."""
    mantissa, _, exponent_text = written.lower().partition("e")
    whole, _, decimals = mantissa.partition(".")
    exponent = int(exponent_text) if exponent_text else 0
    if abs(exponent) > MAX_EXPONENT:
        raise CalculatorError(f"the exponent of a number goes from -{MAX_EXPONENT:,} to {MAX_EXPONENT:,}")
    digits = int(whole + decimals)
    places = len(decimals) - exponent
    if places <= 0:
        return check_digits(digits * 10**-places)
    return _normalize(digits, 10**places)


def add(left: Number, right: Number) -> Number:
    """The sum."""
    if isinstance(left, int) and isinstance(right, int):
        return check_digits(left + right)
    (a, b), (c, d) = _make_pair(left), _make_pair(right)
    return _normalize(a + c, b) if b == d else _normalize(a * d + c * b, b * d)


def subtract(left: Number, right: Number) -> Number:
    """The difference."""
    if isinstance(left, int) and isinstance(right, int):
        return check_digits(left - right)
    (a, b), (c, d) = _make_pair(left), _make_pair(right)
    return _normalize(a - c, b) if b == d else _normalize(a * d - c * b, b * d)


def multiply(left: Number, right: Number) -> Number:
    """The product."""
    if isinstance(left, int) and isinstance(right, int):
        check_bits(left.bit_length() + right.bit_length() - 1)
        return check_digits(left * right)
    (a, b), (c, d) = _make_pair(left), _make_pair(right)
    return _normalize(a * c, b * d)


def divide(left: Number, right: Number) -> Number:
    """The quotient; raises CalculatorError for a division by zero."""
    (a, b), (c, d) = _make_pair(left), _make_pair(right)
    if c == 0:
        raise CalculatorError("division by zero")
    if c < 0:
        c, d = -c, -d
    return _normalize(a * d, b * c)


def floor_divide(left: Number, right: Number) -> Number:
    """The quotient rounded down to an integer, like Python's `//`."""
    (a, b), (c, d) = _make_pair(left), _make_pair(right)
    if c == 0:
        raise CalculatorError("division by zero")
    return check_digits((a * d) // (b * c))


def remainder(left: Number, right: Number) -> Number:
    """The remainder of `//`, with the sign of the divisor, like Python's `%`."""
    (a, b), (c, d) = _make_pair(left), _make_pair(right)
    if c == 0:
        raise CalculatorError("division by zero")
    return _normalize((a * d) % (c * b), b * d)


def power(base: Number, exponent: Number) -> Number:
    """The power; the exponent is an integer from -MAX_EXPONENT to MAX_EXPONENT, or a half for an exact square root."""
    times = to_whole(exponent)
    if times is None:
        if _reduce(exponent) == (1, 2):
            return find_square_root(base)
        raise CalculatorError("an exponent must be a whole number, or 0.5 for a square root")
    if abs(times) > MAX_EXPONENT:
        raise CalculatorError(f"an exponent goes from -{MAX_EXPONENT:,} to {MAX_EXPONENT:,}")
    top, bottom = _reduce(base)
    if times < 0:
        if top == 0:
            raise CalculatorError("division by zero")
        top, bottom, times = (bottom, top, -times) if top > 0 else (-bottom, -top, -times)
    check_bits((max(top.bit_length(), bottom.bit_length()) - 1) * times)
    return _normalize(check_digits(top**times), check_digits(bottom**times))


def find_square_root(number: Number) -> Number:
    """The square root of a number that is the square of a fraction; raises CalculatorError for any other."""
    top, bottom = _reduce(number)
    if top < 0:
        raise CalculatorError("a negative number has no square root")
    roots = isqrt(top), isqrt(bottom)
    if roots[0] ** 2 != top or roots[1] ** 2 != bottom:
        raise CalculatorError("the square root isn't exact")
    return _normalize(*roots)


def negate(number: Number) -> Number:
    """The number with the opposite sign."""
    return -number if isinstance(number, int) else (-number[0], number[1])


def to_whole(number: Number) -> int | None:
    """The number as an `int` if it is an integer, otherwise None."""
    if isinstance(number, int):
        return number
    top, bottom = _reduce(number)
    return top if bottom == 1 else None


def write(number: Number) -> str:
    """The number as text: integers and terminating decimals in full, others rounded half-even; never `-0`."""
    top, bottom = _reduce(number)
    if bottom == 1:
        return write_whole(top)
    return _write_terminating(top, bottom) or _write_rounded(top, bottom)


def write_whole(number: int) -> str:
    """An integer in full, whatever limit the environment sets for Python's own conversion."""
    if -SAFE_TEXT_BOUND < number < SAFE_TEXT_BOUND:
        return str(number)
    sign, rest, pieces = ("-" if number < 0 else ""), abs(number), []
    while rest:
        rest, piece = divmod(rest, SAFE_TEXT_BOUND)
        pieces.append(f"{piece:0{SAFE_TEXT_DIGITS}d}")
    return sign + "".join(reversed(pieces)).lstrip("0")


OPERATIONS: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "Add": add,
    "Sub": subtract,
    "Mult": multiply,
    "Div": divide,
    "FloorDiv": floor_divide,
    "Mod": remainder,
    "Pow": power,
}


def _make_pair(number: Number) -> Pair:
    return (number, 1) if isinstance(number, int) else number


def _reduce(number: Number) -> Pair:
    if isinstance(number, int):
        return (number, 1)
    top, bottom = number
    common = gcd(top, bottom)
    return (top // common, bottom // common)


def _normalize(top: int, bottom: int) -> Number:
    if bottom.bit_length() <= REDUCE_BITS and top.bit_length() <= FRACTION_BITS:
        return (top, bottom)
    top, bottom = _reduce((top, bottom))
    return check_digits(top) if bottom == 1 else check_fraction(top, bottom)


def _write_terminating(top: int, bottom: int) -> str | None:
    twos = (bottom & -bottom).bit_length() - 1
    fives = FIVES.get(bottom >> twos)
    if fives is None or twos > FULL_DIGITS:
        return None
    places = max(twos, fives)
    scaled = abs(top) * (10**places // bottom)
    if scaled >= FULL_BOUND:
        return None
    digits = str(scaled).rjust(places + 1, "0")
    return f"{'-' if top < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _write_rounded(top: int, bottom: int) -> str:
    context = Context(prec=ROUNDED_DIGITS, rounding=ROUND_HALF_EVEN)
    rounded = context.divide(Decimal(top), Decimal(bottom)).normalize(context)
    # In full, a number of 10**12 or more would end in zeros that were never computed.
    if rounded.adjusted() >= ROUNDED_DIGITS or -int(rounded.as_tuple().exponent) > FULL_DIGITS:
        return f"{rounded:e}"
    return f"{rounded:f}"
