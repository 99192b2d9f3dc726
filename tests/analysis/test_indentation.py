"""What is repaired of code whose indentation is wrong, and what is left for the model to write again."""

import ast
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indentation_corruptions import count_outcomes

from ferrule.analysis.python_executor.indentation import STRATEGIES, parse_program, repair_indentation
from tables import each_case


def test_half_of_500_corruptions_are_repaired_and_at_most_one_in_a_hundred_repairs_means_something_else():
    outcomes = count_outcomes(seed=14, count=500)["all"]
    assert outcomes["repaired"] >= 250, outcomes
    assert outcomes["wrong"] <= (outcomes["repaired"] + outcomes["wrong"]) / 100, outcomes


def test_the_strategies_are_those_of_the_seed_in_its_order():
    assert {name: [strategy(width, 4) for width in (4, 5, 6, 7)] for name, strategy in STRATEGIES.items()} == {
        "round down": [4, 4, 4, 4],
        "split the difference": [4, 4, 8, 8],
        "round up": [4, 8, 8, 8],
    }
    assert list(STRATEGIES) == ["round down", "split the difference", "round up"]


@pytest.mark.parametrize(
    ("code", "repaired", "said"),
    [
        (
            "def f(x):\n    y = 1\n     return x + y\n",
            "def f(x):\n    y = 1\n    return x + y\n",
            "the indentation of line 3 was repaired (round down",
        ),
        (
            "for x in y:\n    a = x\n    b = x\n   c = x\n    d = x\n    e = x\n",
            "for x in y:\n    a = x\n    b = x\n    c = x\n    d = x\n    e = x\n",
            "line 4 was repaired (split the difference and round up; they give the same program)",
        ),
        (
            "    x = 1\n    if x:\n        y = '''\n    text'''\n",
            "x = 1\nif x:\n    y = '''\ntext'''\n",
            "lines 1, 2, 3, 4 were repaired (remove the indentation that all lines share)",
        ),
        (
            "import math\n    x = 1\n    if x:\n        y = 2",
            "import math\nx = 1\nif x:\n    y = 2",
            "lines 2, 3, 4 were repaired (remove the indentation that all lines below the first share)",
        ),
        ("if x:\n\ty = 1\n        z = 2\n", "if x:\n    y = 1\n    z = 2\n", "round down"),
        ("def f():\n  y = 1\n   return 2\nw = 3\n", "def f():\n  y = 1\n  return 2\nw = 3\n", "line 3"),
        ("   def f():\n    return 1\n", "def f():\n    return 1\n", "line 1 was repaired (round down"),
    ],
)
def test_a_program_with_one_possible_meaning_is_repaired_and_told(code, repaired, said):
    repair = repair_indentation(code)
    assert repair is not None
    assert ast.dump(ast.parse(repair.code)) == ast.dump(ast.parse(repaired))
    assert said in str(repair)


@each_case(
    "code",
    [
        "x = 1\n",
        "print(1",
        # Both levels give a program: the model must say which one it means.
        "for x in y:\n    if x:\n        a = 1\n      b = 2\n",
        "def f():\n    if x:\n        return 1\n      return 2\n",
        "for x in y:\n    a = 1\n   b = 2\n",
        "def f():\nreturn 1\n",
        "x = 1\n" * 3000 + "  y = 2",
        "",
        "\0",
        "'''" * 3,
        "((((\n" * 50,
    ],
)
def test_other_code_is_left_as_it_is(code):
    assert repair_indentation(code) is None


def test_strings_and_continued_lines_keep_their_indentation():
    code = "def f():\n    x = '''\n  a\n b'''\n    y = (1,\n  2)\n     return x\n"
    repair = repair_indentation(code)
    assert repair is not None
    assert repair.code == code.replace("     return", "    return")
    assert repair.lines == (7,)


SIGNS = [
    "\n",
    "\n ",
    "\n    ",
    "\n\t",
    "   ",
    "#",
    "\\\n",
    "'''",
    '"',
    "(",
    ")",
    "if x:",
    "x = 1",
    "def f():",
    "return 1",
    "\0",
]


@settings(max_examples=40)
@given(st.text() | st.lists(st.sampled_from(SIGNS), max_size=40).map("".join))
def test_a_repair_of_any_text_is_a_program(code):
    repair = repair_indentation(code)
    assert repair is None or parse_program(repair.code) is not None


def test_code_that_takes_long_to_parse_costs_a_bounded_time():
    elifs = "if 1:\n pass\n" + "elif 1:\n  pass\n" * 600
    started = time.process_time()
    repair_indentation(elifs + "   x = 1\n y = 2\n  z = 3\n")
    repair_indentation("x = (" + "-" * 9000 + "1)\n   y = 2\n z = 1\n")
    assert time.process_time() - started < 10
