"""Random expressions against two oracles: `fractions.Fraction` for the exact style, CPython's `eval` for the other."""

import math
import re
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.arithmetic.evaluate import calculate
from ferrule.arithmetic.exact import FULL_DIGITS, ROUNDED_DIGITS

WHOLE = st.integers(0, 10**15).map(str) | st.integers(0, 12).map(str)
DECIMAL = st.builds(
    lambda number, places: f"{number // 10**places}.{number % 10**places:0{places}d}",
    st.integers(0, 10**9),
    st.integers(1, 9),
)
SHORT = st.sampled_from([".5", "5.", "0.1", "0.2", ".25", "0.0", "1e3", "2.5e-2", "0", "1", "1,000", "12,345.75"])
NUMBERS = WHOLE | DECIMAL | SHORT
OPERATORS = st.sampled_from(["+", "-", "*", "/", "//", " % ", " + ", " - ", " * ", " / ", " // "])


def combined(parts):
    chain = st.builds(
        lambda first, rest: first + "".join(sign + operand for sign, operand in rest),
        parts,
        st.lists(st.tuples(OPERATORS, parts), min_size=1, max_size=4),
    )
    signed = st.builds(lambda sign, part: f"{sign}({part})", st.sampled_from(["", "-", "+", "--"]), parts)
    raised = st.builds(
        lambda part, exponent: f"({part})**{exponent}", parts, st.sampled_from(["0", "1", "2", "3", "-1"])
    )
    return chain | signed | raised


EXPRESSIONS = st.recursive(NUMBERS, combined, max_leaves=10)


def by_fractions(expression):
    """The exact value, or None for a division by zero."""
    plain = re.sub(r"(?<=\d),(?=\d)", "", expression)
    wrapped = re.sub(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?", lambda number: f"F('{number[0]}')", plain)
    try:
        return Fraction(eval(wrapped, {"F": Fraction}))
    except ZeroDivisionError:
        return None


def decimals_end(value):
    """The number of decimals, or None if they never end."""
    denominator, twos, fives = value.denominator, 0, 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None


def check_written(text, value):
    """The text is the value: in full where it should be, else the nearest of 12 significant digits, ties to even."""
    places = decimals_end(value)
    digits = None if places is None else max(places, len(str(abs(value.numerator) * 10**places // value.denominator)))
    if value.denominator == 1 or (digits is not None and digits <= FULL_DIGITS):
        assert Fraction(text) == value
        assert re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", text)
        assert text != "-0"
        return
    power = math.floor(math.log10(abs(value)))
    power += (abs(value) >= Fraction(10) ** (power + 1)) - (abs(value) < Fraction(10) ** power)
    unit = Fraction(10) ** (power - ROUNDED_DIGITS + 1)
    assert Fraction(text) == round(value / unit) * unit


@given(EXPRESSIONS)
@settings(max_examples=400)
def test_exact_results_are_those_of_fractions(expression):
    value = by_fractions(expression)
    text = calculate(expression)
    if value is None:
        assert text == "error: division by zero"
    else:
        check_written(text, value)


@given(EXPRESSIONS)
@settings(max_examples=400)
def test_python_results_are_those_of_cpython(expression):
    try:
        expected = eval(re.sub(r"(?<=\d),(?=\d)", "", expression))
    except ZeroDivisionError:
        assert calculate(expression, style="python") == "error: division by zero"
        return
    except OverflowError:
        assert calculate(expression, style="python") == "error: the result is too large for a float"
        return
    text = calculate(expression, style="python")
    if isinstance(expected, float) and not math.isfinite(expected):
        assert text.startswith("error: ")
    else:
        assert text == str(expected)


@given(st.integers(-(10**40), 10**40), st.integers(1, 10**25))
def test_any_fraction_is_written_right(top, bottom):
    check_written(calculate(f"({top}) / {bottom}"), Fraction(top, bottom))


@given(st.integers(-(10**14), 10**14), st.sampled_from([2, 4, 5, 8, 20, 125]), st.integers(0, 40))
def test_ties_go_to_the_even_digit(top, bottom, places):
    check_written(calculate(f"({top}) / {bottom} / 10 ** {places}"), Fraction(top, bottom * 10**places))


@given(EXPRESSIONS)
def test_a_result_can_be_written_back(expression):
    text = calculate(expression)
    if not text.startswith("error: "):
        assert Fraction(calculate(text)) == Fraction(text)
        assert Fraction(calculate(f"-({text})")) == -Fraction(text)


LETTERS = st.text("abcAB ,.%xé0", max_size=30)


@given(LETTERS, LETTERS, st.none() | st.integers(-35, 35), st.none() | st.integers(-35, 35), st.integers(1, 4))
def test_strings_are_those_of_cpython(text, part, start, stop, step):
    lower, upper = ("" if place is None else str(place) for place in (start, stop))
    assert calculate(f"{text!r}.count({part!r})") == str(text.count(part))
    assert calculate(f"len({text!r})") == str(len(text))
    for sign in (1, -1):
        result = calculate(f"{text!r}[{lower}:{upper}:{sign * step}]", style="python")
        assert result == text[start : stop : sign * step]


@given(st.integers(1000, 10**30), st.integers(0, 999))
def test_grouped_numbers_are_their_digits(number, decimals):
    assert calculate(f"{number:,}.{decimals:03d}") == calculate(f"{number}.{decimals:03d}")
    assert calculate(f"{number:,}") == str(number)
