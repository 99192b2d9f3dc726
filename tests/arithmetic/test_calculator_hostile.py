"""What no expression may do: run code, escape with an error, take over 50 ms of CPU or 32 MB, or grow its answer."""

import os
import re
import subprocess
import sys
import threading
import time
import tracemalloc

import pytest
from hostile_expressions import BOUNDED, REFUSED
from hypothesis import given
from hypothesis import strategies as st

from ferrule.arithmetic.evaluate import CalculatorError, calculate, evaluate
from ferrule.arithmetic.exact import MAX_DIGITS, MAX_LENGTH
from tables import each_case

STYLES = ("exact", "python")
MAX_SECONDS = 0.050
MAX_BYTES = 32 * 1024 * 1024
LONGEST_RESULT = max(MAX_DIGITS, MAX_LENGTH) + 40
ODDITIES = "0123456789+-*/%.,()[]:'\"\\ eExlencouta_\n\x00é\ud800"


def names(expressions):
    return [f"{number}:{ascii(text)[:40]}" for number, text in enumerate(expressions)]


def seconds(expression, style):
    """CPU seconds of one call: the best of three, so that a neighbour's work on the machine is not counted."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        calculate(expression, style=style)
        best = min(best, time.process_time() - begin)
        if best < MAX_SECONDS / 5:
            break
    return best


def check_reason(text):
    reason = text.removeprefix("error: ")
    assert text != reason
    assert 8 < len(reason) < 200
    assert reason.isprintable()
    assert not re.search(r"0x[0-9a-f]{6}|<calculator>|Traceback|object at|line [0-9]", reason)


def test_the_corpus_is_large_and_has_no_line_twice():
    assert len(REFUSED) + len(BOUNDED) >= 200
    assert len(set(REFUSED + BOUNDED)) == len(REFUSED) + len(BOUNDED)


@each_case("expression", REFUSED, ids=names(REFUSED))
def test_hostile_expressions_are_refused_with_a_reason(expression):
    text = calculate(expression)
    check_reason(text)
    with pytest.raises(CalculatorError) as caught:
        evaluate(expression)
    assert text == f"error: {caught.value}"


@pytest.mark.parametrize("style", STYLES)
@each_case("expression", [*REFUSED, *BOUNDED], ids=names([*REFUSED, *BOUNDED]))
def test_every_answer_is_short_and_quick(expression, style):
    text = calculate(expression, style=style)
    if text.startswith("error: "):
        check_reason(text)
    assert len(text) <= LONGEST_RESULT
    assert seconds(expression, style) < MAX_SECONDS


@pytest.mark.parametrize("style", STYLES)
def test_memory_stays_small(style):
    tracemalloc.start()
    try:
        for expression in [*REFUSED, *BOUNDED]:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            calculate(expression, style=style)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < MAX_BYTES, ascii(expression)[:60]
    finally:
        tracemalloc.stop()


def test_memory_of_the_process_stays_small():
    """What the parser takes outside Python's own allocator is counted too."""
    program = (
        "import resource, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from hostile_expressions import BOUNDED, REFUSED\n"
        "from ferrule.arithmetic.evaluate import calculate\n"
        "calculate('1 + 1')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for expression in [*REFUSED, *BOUNDED]: calculate(expression)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    here = os.path.dirname(__file__)  # noqa: PTH120 - handed to another process as text
    grown = subprocess.run([sys.executable, "-c", program, here], capture_output=True, text=True, check=True)
    assert int(grown.stdout) * 1024 < MAX_BYTES


@given(st.text(ODDITIES, max_size=60), st.sampled_from(STYLES))
def test_no_text_escapes_with_another_error(expression, style):
    text = calculate(expression, style=style)
    if text.startswith("error: "):
        check_reason(text)


@given(st.text(max_size=300))
def test_no_unicode_escapes_with_another_error(expression):
    assert isinstance(calculate(expression), str)


@pytest.mark.parametrize("given_value", [None, 5, b"1 + 1", ["1"], 1.5])
def test_what_is_not_text_is_refused(given_value):
    assert calculate(given_value) == "error: the expression must be text"


def test_it_works_off_the_main_thread_and_in_many_at_once():
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.extend(calculate("1/3 + 123456 * 789") for _ in range(50)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["97406784.3333"] * 400


@pytest.mark.parametrize("room", [12, 30, 60, 120])
def test_little_room_on_the_stack_gives_a_refusal_or_the_result(room):
    expression = "(1+" * 40 + "1" + ")" * 40

    def deeper(levels):
        return deeper(levels - 1) if levels else calculate(expression)

    frame, depth = sys._getframe(), 0
    while frame:
        frame, depth = frame.f_back, depth + 1
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 130)
    try:
        text = deeper(125 - room)
    finally:
        sys.setrecursionlimit(limit)
    assert text == "41" or text.startswith("error: the expression is nested too deeply")


def test_the_environment_changes_no_answer():
    """Python's limit on digits can be lowered from outside; the text of a result must not depend on it."""
    program = (
        "from ferrule.arithmetic.evaluate import calculate\n"
        "for text in ['9**1000', '9' * 640, '9' * 641, '9**1000/7', '1e700/3', '9**999 + 1/2', '-9**1000']:\n"
        "    print(calculate(text))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONINTMAXSTRDIGITS": limit},
        ).stdout
        for limit in ("640", "0", "4300")
    }
    assert len(outputs) == 1
    assert str(9**1000) in outputs.pop()
