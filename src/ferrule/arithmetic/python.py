"""CPython's own arithmetic for `style="python"`: integers and floats, bounded before each operation.

Results are identical to CPython's; what it would raise, or write as `inf` or `nan`, is refused.
"""

import math
import operator
from collections.abc import Callable
from typing import Final

from ferrule.arithmetic.exact import MAX_EXPONENT, CalculatorError, check_bits, check_digits, write_whole

Number = int | float

TOO_LARGE: Final = "the result is too large for a float"


def read_decimal(written: str) -> float:
    """The float nearest to a number with a decimal point or an exponent."""
    return _check_finite(float(written))


def multiply(left: Number, right: Number) -> Number:
    """The product."""
    if isinstance(left, int) and isinstance(right, int):
        check_bits(left.bit_length() + right.bit_length() - 1)
    return _apply(operator.mul, left, right)


def power(base: Number, exponent: Number) -> Number:
    """The power; exponents go from -MAX_EXPONENT to MAX_EXPONENT and a complex result is refused."""
    if abs(exponent) > MAX_EXPONENT:
        raise CalculatorError(f"an exponent goes from -{MAX_EXPONENT:,} to {MAX_EXPONENT:,}")
    if isinstance(base, int) and isinstance(exponent, int):
        check_bits((base.bit_length() - 1) * exponent)
    return _apply(operator.pow, base, exponent)


def _bind_operation(operation: Callable[[Number, Number], Number]) -> Callable[[Number, Number], Number]:
    def operate(left: Number, right: Number) -> Number:
        return _apply(operation, left, right)

    return operate


def negate(number: Number) -> Number:
    """The number with the opposite sign."""
    return -number


def write(number: Number) -> str:
    """The number as CPython prints it."""
    return write_whole(number) if isinstance(number, int) else repr(number)


def to_whole(number: Number) -> int | None:
    """The number if it is an `int`: CPython doesn't accept a float such as 2.0 as an index."""
    return number if isinstance(number, int) else None


def _apply(operation: Callable[[Number, Number], Number], left: Number, right: Number) -> Number:
    try:
        result: object = operation(left, right)
    except ZeroDivisionError:
        raise CalculatorError("division by zero") from None
    except OverflowError:
        raise CalculatorError(TOO_LARGE) from None
    if isinstance(result, int):
        return check_digits(result)
    if isinstance(result, float):
        return _check_finite(result)
    raise CalculatorError("a fractional power of a negative number is not a real number")


def _check_finite(number: float) -> float:
    if math.isfinite(number):
        return number
    raise CalculatorError(TOO_LARGE)


OPERATIONS: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "Add": _bind_operation(operator.add),
    "Sub": _bind_operation(operator.sub),
    "Mult": multiply,
    "Div": _bind_operation(operator.truediv),
    "FloorDiv": _bind_operation(operator.floordiv),
    "Mod": _bind_operation(operator.mod),
    "Pow": power,
}
