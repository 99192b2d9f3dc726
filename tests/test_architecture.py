"""The page on the architecture names real files, and functions that are in them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "ferrule"

FILES = sorted(set(re.findall(r"`([a-z][a-z_/]*(?:\.py|/))[`:]", PAGE)) - {"src/ferrule/"})
FUNCTIONS = sorted(set(re.findall(r"`([a-z_/]+\.py): ([\w.]+)`", PAGE)))


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_named_exists(name: str) -> None:
    assert (PACKAGE / name).exists()


@pytest.mark.parametrize(("file", "function"), FUNCTIONS)
def test_a_function_that_is_named_exists(file: str, function: str) -> None:
    scope: list[ast.stmt] = ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body
    for name in function.split("."):
        found = [node for node in scope if getattr(node, "name", "") == name]
        assert found, f"{file} has no {function}"
        scope = getattr(found[-1], "body", [])
