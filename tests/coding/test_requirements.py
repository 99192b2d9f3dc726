"""Each defect, hole and wish in `requirements.toml` has tests, and these exist."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
REQUIREMENTS = tomllib.loads(Path(__file__).with_name("requirements.toml").read_text(encoding="utf-8"))


@cache
def list_tests(path: Path) -> frozenset[str]:
    """The names of the tests in a file."""
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize(
    ("name", "tests"), [pytest.param(*item, id=item[0]) for group in REQUIREMENTS.values() for item in group.items()]
)
def test_a_requirement_has_tests(name: str, tests: list[str]) -> None:
    assert tests, name
    for each in tests:
        path, _, function = each.partition("::")
        assert function in list_tests(TESTS / path), each


def test_no_requirement_is_missing() -> None:
    numbers = [int(name.partition("_")[0]) for name in REQUIREMENTS["defects"]]
    assert numbers == list(range(1, 19))
    assert {group: len(items) for group, items in REQUIREMENTS.items()} == {
        "defects": 18, "holes": 12, "wishes": 8, "elsewhere": 3,
    }  # fmt: skip
