"""What the calculator takes and how it writes results: examples, GSM8K's annotations, the documents' examples."""

import doctest
import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from ferrule.arithmetic.evaluate import CalculatorError, calculate, evaluate
from tables import each_case

ROOT = Path(__file__).parents[2]
GSM8K = ROOT.parent / "shared" / "vectors" / "gsm8k_test.jsonl"
NOT_A_THOUSANDS_COMMA = 'error: a comma only groups digits in threes, as in "1,234,567"'


@each_case(
    ("expression", "exact", "python"),
    [
        ("123456 * 789", "97406784", "97406784"),
        ("48/2", "24", "24.0"),
        ("0.1 + 0.2", "0.3", "0.30000000000000004"),
        ("(100 - 20) / 4", "20", "20.0"),
        ("0.15 * 240", "36", "36.0"),
        ("123.45 * 67.89", "8381.0205", "8381.0205"),
        ("2 + 3 * 4 - 5", "9", "9"),
        ("-2 ** 2", "-4", "-4"),
        ("(-2) ** 3", "-8", "-8"),
        ("2 ** 3 ** 2", "512", "512"),
        ("2 ** -3", "0.125", "0.125"),
        ("0.5 ** -2", "4", "4.0"),
        ("0 ** 0", "1", "1"),
        ("7 // 2", "3", "3"),
        ("-7 // 2", "-4", "-4"),
        ("7.5 // 2", "3", "3.0"),
        ("-7 % 3", "2", "2"),
        ("7 % -3", "-2", "-2"),
        ("7.5 % 2", "1.5", "1.5"),
        ("+-+5", "-5", "-5"),
        ("5. + .5", "5.5", "5.5"),
        ("1e3", "1000", "1000.0"),
        ("1.5e-3", "0.0015", "0.0015"),
        ("  1\t\n", "1", "1"),
        ("\t 2 + 2\n", "4", "4"),
        ("1/3 * 3", "1", "1.0"),
        ("1/7 + 6/7", "1", "1.0"),
    ],
)
def test_arithmetic(expression, exact, python):
    assert evaluate(expression) == exact
    assert evaluate(expression, style="python") == python


@each_case(
    ("expression", "result"),
    [
        ("1/3", "0.333333333333"),
        ("2/3", "0.666666666667"),
        ("-2/3", "-0.666666666667"),
        ("1/3000000", "0.000000333333333333"),
        ("100/3", "33.3333333333"),
        ("10**11/3", "33333333333.3"),
        ("10**12/3", "333333333333"),
        ("10**13/3", "3.33333333333e+12"),
        ("1/3**50", "1.3929555691e-24"),
        ("1/2**30", "0.000000000931322574615478515625"),
        ("1/2**31", "0.000000000465661287308"),
        ("1e-30", "0.000000000000000000000000000001"),
        ("1e-31", "1e-31"),
        ("10**29 + 0.5", "1e+29"),
        ("10**28 + 0.5", "10000000000000000000000000000.5"),
        ("999999999999.96 / 3 * 3", "999999999999.96"),
        ("999999999999.9 + 1/3", "1e+12"),
        ("123456789012.5", "123456789012.5"),
        ("123456789013.5 + 1/10**31", "123456789014"),
        ("123456789012.5 - 1/10**31", "123456789012"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0 * -1.5", "0"),
        ("0.5 - 1/2", "0"),
        ("-0.10", "-0.1"),
        ("100.00", "100"),
        ("1000000.00 * 1000000", "1000000000000"),
    ],
)
def test_how_results_are_written(expression, result):
    assert evaluate(expression) == result


def test_whole_results_are_written_in_full():
    assert evaluate("99 ** 1000") == str(99**1000)
    assert evaluate("-7 ** 1000") == str(-(7**1000))
    assert evaluate("10 ** 1000") == "1" + "0" * 1000
    assert evaluate("10 ** 1000", style="python") == "1" + "0" * 1000
    assert calculate("10**1000 * 10**1000") == "error: a number would have more than 2,000 digits"
    assert calculate("10**1000 * 10**500 / 7").startswith("error: a fraction would have more than 1,200 digits")
    assert evaluate("10**1000 * 10**999 / 10**1000") == "1" + "0" * 999
    assert evaluate("10**1000 * 10**999") == "1" + "0" * 1999


@each_case(
    ("expression", "result"),
    [
        ("1,234,567", "1234567"),
        ("1,234,567 + 1", "1234568"),
        ("(1,234)", "1234"),
        ("80,000 * 1.5", "120000"),
        ("1,234.5 * 2", "2469"),
        ("12,345/5", "2469"),
        ("1,2", NOT_A_THOUSANDS_COMMA),
        ("12,34", NOT_A_THOUSANDS_COMMA),
        ("1,2345", NOT_A_THOUSANDS_COMMA),
        ("1234,567", NOT_A_THOUSANDS_COMMA),
        ("1, 234", NOT_A_THOUSANDS_COMMA),
        ("0,123", NOT_A_THOUSANDS_COMMA),
        ("1.234,5", NOT_A_THOUSANDS_COMMA),
        ("'a,b,c'.count(',')", "2"),
        ("'1,234'.count(',') + 1,234", "1235"),
        ("'12,34'[::-1]", "43,21"),
    ],
)
def test_commas_only_group_digits(expression, result):
    assert calculate(expression) == result


@each_case(
    ("expression", "result"),
    [
        ('"banana".count("a")', "3"),
        ('"Anna".count("a") + "Anna".count("A")', "2"),
        ("'profile'.count('f')", "1"),
        ("'important'.count('t')", "2"),
        ("'dirty open import'.count('o')", "2"),
        ('"it\'s".count("s")', "1"),
        ("'it\\'s'.count(\"'\")", "1"),
        ('"hello"[::-1]', "olleh"),
        ('"hello"[1:3]', "el"),
        ('"hello"[-1]', "o"),
        ('"hello"[4/2:]', "llo"),
        ('"hello"[1:][::-1].count("l")', "2"),
        ('"hello".count("l", )', NOT_A_THOUSANDS_COMMA),
        ('len("hello")', "5"),
        ('len("hello world") - "hello world".count(" ")', "10"),
        ("len('')", "0"),
        ('"naïve café"[::-1]', "éfac evïan"),
        ('"naïve".count("ï") + 0.1 + 0.25', "1.35"),
        ("'a\\\\b'", "a\\b"),
        ("'a\\nb'.count('\\n')", "1"),
        ('"hello"[9:]', '""'),
    ],
)
def test_strings(expression, result):
    assert calculate(expression) == result
    if result not in {'""', NOT_A_THOUSANDS_COMMA, "1.35"} and "/" not in expression:
        assert str(eval(expression)) == result


@each_case(
    ("expression", "says"),
    [
        ("20%", "50 * 20 / 100"),
        ("20%*50", "50 * 20 / 100"),
        ("15% of 240", "50 * 20 / 100"),
        ("5% + 3", "5 % 3 for the other"),
        ("5x3", "write * for times"),
        ("5 × 3", "write * for times"),
        ("1/0", "division by zero"),
        ("5 % 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("2 ** 0.5", "the square root isn't exact"),
        ("(1/2) ** (1/2)", "the square root isn't exact"),
        ("(-4) ** 0.5", "no square root"),
        ("2 ** 0.25", "a whole number, or 0.5"),
        ("2 ** 1001", "from -1,000 to 1,000"),
        ("08 + 1", "write 8 for 08"),
        ("2(3)", "side by side"),
        ("(1 + 2", "missing its partner"),
        ("1 +", "nothing after it"),
        ("", "empty"),
        ("2 + 2 = 4", 'without "="'),
        ("2^3", "write ** for a power"),
        ("$5 * 3", 'without "$"'),
        ("1_000", "1000 or 1,000"),
        ("0x1f", "decimal numbers"),
        ("'a' * 3", "len() or .count()"),
        ("'a' 'b'", "side by side"),
        ("f'{1}'", "before a string's quote"),
        ("'a'.upper()", "not .upper"),
        ("sqrt(4)", '"sqrt"'),
        ("'abc'[7]", "length 3"),
    ],
)
def test_refusals_say_what_to_write(expression, says):
    assert says in calculate(expression)
    assert calculate(expression).startswith("error: ")
    assert says in calculate(expression, style="python") or "** 0." in expression or "** (" in expression


@pytest.mark.parametrize(
    ("expression", "root"),
    [
        ("144 ** 0.5", "12"),
        ("0 ** 0.5", "0"),
        ("2.25 ** .5", "1.5"),
        ("(4/9) ** (1/2) * 3", "2"),
        ("(1000 ** 100) ** 0.5 - 1000 ** 50", "0"),
        ("152415787532388367501905199875019052100 ** 0.5", "12345678901234567890"),
    ],
)
def test_square_roots_that_are_exact(expression, root):
    assert evaluate(expression) == root


def test_an_empty_string_is_shown_unless_python_is_asked_for():
    assert evaluate("''") == '""'
    assert evaluate("''", style="python") == ""


def test_an_unknown_style_is_the_callers_mistake():
    with pytest.raises(ValueError, match='"exact" or "python"'):
        evaluate("1", style="decimal")
    assert issubclass(CalculatorError, ValueError)


def annotations():
    if not GSM8K.exists():
        pytest.skip("../shared/vectors is missing")
    for line in GSM8K.read_text(encoding="utf-8").splitlines():
        for written in re.findall(r"<<(.*?)>>", json.loads(line)["answer"]):
            left, _, right = written.rpartition("=")
            yield left, right


def as_rational(expression):
    """The value by Python's own fractions: an oracle that shares nothing with the calculator."""
    return eval(
        re.sub(r"\d+\.?\d*|\.\d+", lambda number: f"Fraction('{number[0]}')", expression), {"Fraction": Fraction}
    )


def test_every_annotation_of_gsm8k_is_the_number_that_is_written():
    pairs = list(annotations())
    assert len(pairs) == 4282
    for left, right in pairs:
        assert as_rational(left) == as_rational(right)
        result = evaluate(left)
        assert result == evaluate(right), f"{left} = {right}"
        if "/" not in right:
            assert Fraction(result) == Fraction(right)


def test_annotations_in_python_style_are_what_python_prints():
    for left, _ in annotations():
        assert evaluate(left, style="python") == str(eval(left))


def test_the_examples_of_the_document_are_true():
    text = (ROOT / "docs" / "calculator.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
    assert blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "calculator.md", "docs/calculator.md", 0)
    outcome = doctest.DocTestRunner(verbose=False).run(test)
    assert outcome.failed == 0
    assert outcome.attempted > 10
