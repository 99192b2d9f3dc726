"""Regular expressions are applied to what models, servers, files and commands wrote: none of these backtracks badly."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ferrule
from ferrule.agent.json_answers import _find_fenced
from ferrule.dialects.notations import harmony, native_words, sections
from ferrule.dialects.reader.python import _PYTHON_NUMBER
from ferrule.dialects.template.cuts import _SPECIAL
from ferrule.execution.error_results import _compile_volatile_pattern
from tables import each_case

N = 40_000

CASES: dict[str, tuple[Callable[[str], Any], str]] = {
    "white space in a header": (harmony._FRAMING.findall, " " * N + "x"),
    "white space in a header that is cut off": (harmony._CUT_FRAMING.findall, "to" + " " * N + "x"),
    "a long attribute": (sections._ATTRIBUTE.findall, "a" * N),
    "attributes and spaces": (sections._ATTRIBUTE.findall, "a " * (N // 2) + " " * N),
    "an attribute of a result": (native_words._ATTRIBUTE.findall, "a-" * (N // 2)),
    "a number": (_PYTHON_NUMBER.fullmatch, "0" * N + "x"),
    "a number with an exponent": (_PYTHON_NUMBER.fullmatch, "1." + "0" * N + "e"),
    "a marker": (_SPECIAL.findall, "<a" + "_of_a" * (N // 5)),
    "a temporary file": (_compile_volatile_pattern().findall, "/tmp/" + "_" * N),
    "temporary files": (_compile_volatile_pattern().findall, ("/tmp/" + "a-" * 120) * (N // 245)),
    "a fence and lines": (_find_fenced, "```" + "\n" * N),
    "fences that nothing closes": (_find_fenced, "x```\n" * (N // 5)),
    "fences and spaces": (_find_fenced, "```\n" + "\n " * (N // 2)),
}


@each_case("case", CASES)
def test_a_pattern_takes_time_that_grows_with_the_text(case: str) -> None:
    """Milliseconds for each; most took more than 15 s before they were mended, the others hold what was right."""
    work, text = CASES[case]
    started = time.process_time()
    work(text)
    assert time.process_time() - started < 1.5


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ('Here:\n```json\n{"a": 1}\n```\nso', ['{"a": 1}']),
        ("```\n1\n  ```", ["1"]),
        ("```json \n\n1\n\n```", ["\n1\n"]),
        ("a ```\n1\n``` b ```\n2\n```", ["1", "2"]),
        ("```\n1", []),
        ("```python\n1\n```", []),
    ],
)
def test_fenced_blocks_are_found(text: str, blocks: list[str]) -> None:
    assert _find_fenced(text) == blocks


def test_no_group_is_repeated_possessively() -> None:
    """Before Python 3.11.5 such a repetition keeps what a failed last round had matched: `(?:ab)++` takes "aba" whole.

    https://github.com/python/cpython/issues/106052; an atomic group around a plain repetition, `(?>(?:ab)+)`, is right.
    """
    source = Path(ferrule.__file__).parent
    found = [
        f"{path.relative_to(source)}:{number}"
        for path in source.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\)(?:[+*?]|\{[0-9,]+\})\+", line)
    ]
    assert found == []
