"""CPython's own arithmetic for `style="python"`: whole numbers and floats, bounded before each operation.

Results are CPython's to the last character; what it would raise, or write as `inf` or `nan`, is refused.
"""

import math
import operator
from collections.abc import Callable
from typing import Final

from ferrule.sandbox.calculator_exact import write_whole
from ferrule.sandbox.calculator_limits import MAX_EXPONENT, CalculatorError, checked, checked_bits

Number = int | float

TOO_LARGE: Final = "the result is too large for a float"


def read_decimal(written: str) -> float:
    """The float nearest to a number written with a point or an exponent."""
    return _finite(float(written))


def multiply(left: Number, right: Number) -> Number:
    """The product."""
    if isinstance(left, int) and isinstance(right, int):
        checked_bits(left.bit_length() + right.bit_length() - 1)
    return _applied(operator.mul, left, right)


def power(base: Number, exponent: Number) -> Number:
    """The power; exponents go from -MAX_EXPONENT to MAX_EXPONENT and a complex result is refused."""
    if abs(exponent) > MAX_EXPONENT:
        raise CalculatorError(f"an exponent goes from -{MAX_EXPONENT:,} to {MAX_EXPONENT:,}")
    if isinstance(base, int) and isinstance(exponent, int):
        checked_bits((base.bit_length() - 1) * exponent)
    return _applied(operator.pow, base, exponent)


def _bounded(operation: Callable[[Number, Number], Number]) -> Callable[[Number, Number], Number]:
    def bounded(left: Number, right: Number) -> Number:
        return _applied(operation, left, right)

    return bounded


def negate(number: Number) -> Number:
    """The number with its sign turned."""
    return -number


def write(number: Number) -> str:
    """The number as CPython prints it."""
    return write_whole(number) if isinstance(number, int) else repr(number)


def whole(number: Number) -> int | None:
    """The number if it is an `int`: a float such as 2.0 is no position in a string for CPython."""
    return number if isinstance(number, int) else None


def _applied(operation: Callable[[Number, Number], Number], left: Number, right: Number) -> Number:
    try:
        result: object = operation(left, right)
    except ZeroDivisionError:
        raise CalculatorError("division by zero") from None
    except OverflowError:
        raise CalculatorError(TOO_LARGE) from None
    if isinstance(result, int):
        return checked(result)
    if isinstance(result, float):
        return _finite(result)
    raise CalculatorError("a fractional power of a negative number is not a real number")


def _finite(number: float) -> float:
    if math.isfinite(number):
        return number
    raise CalculatorError(TOO_LARGE)


OPERATIONS: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "Add": _bounded(operator.add),
    "Sub": _bounded(operator.sub),
    "Mult": multiply,
    "Div": _bounded(operator.truediv),
    "FloorDiv": _bounded(operator.floordiv),
    "Mod": _bounded(operator.mod),
    "Pow": power,
}
