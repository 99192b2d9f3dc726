"""The page on the architecture names real files, and functions that are in them; no imports go in circles."""

from __future__ import annotations

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from draw_floors import MODULES, find_imports

from tables import each_case

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "ferrule"

FILES = sorted(set(re.findall(r"`([a-z][a-z_/]*(?:\.py|/))[`:]", PAGE)) - {"src/ferrule/"})
FUNCTIONS = sorted(set(re.findall(r"`([a-z_/]+\.py): ([\w.]+)`", PAGE)))


@each_case("name", FILES)
def test_a_file_that_is_named_exists(name: str) -> None:
    assert (PACKAGE / name).exists()


@each_case(("file", "function"), FUNCTIONS)
def test_a_function_that_is_named_exists(file: str, function: str) -> None:
    scope: list[ast.stmt] = ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body
    for name in function.split("."):
        found = [node for node in scope if getattr(node, "name", "") == name]
        assert found, f"{file} has no {function}"
        scope = getattr(found[-1], "body", [])


def test_no_imports_go_in_circles() -> None:
    """An import in a function counts: it delays loading, but neither module can be understood alone."""
    graph = {module: {*find_imports(module, for_types=False)} - {module} for module in MODULES}
    del graph["ferrule"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))
