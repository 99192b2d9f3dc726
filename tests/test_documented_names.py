"""Every name of ferrule that a page speaks of can be imported from what the page says."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import ferrule

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = ("architecture", "from-the-seeds")
"""They give files, and pages that describe each thing."""
OF_OTHERS = {
    "coming-from": {"RunContext", "Mode"},
    "tools": {"Field"},
    "coding": {"read_file"},
    "policy": {"decide_all"},
}
"""Names of other libraries, tools and methods that a class or function of ferrule happens to have, too."""
NAME = re.compile(r"(?<![\w.])([A-Z][a-z]\w*[a-z]\w*)(?=$|[(\[,. ])|(?<![\w.])([a-z]+(?:_[a-z]+)+)\((?=.)")


@cache
def find_modules() -> dict[str, list[str]]:
    """The modules that define each public class and function."""
    found: dict[str, list[str]] = {}
    for file in SOURCE.rglob("*.py"):
        module = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                found.setdefault(node.name, []).append(module)
    return found


def find_named(page: Path) -> set[str]:
    """The names in the prose of a page that are ferrule's and not in `ferrule` itself."""
    prose = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", prose)
    named = {match[1] or match[2] for span in spans for match in NAME.finditer(span)}
    return named & set(find_modules()) - set(ferrule.__all__) - OF_OTHERS.get(page.stem, set())


def has_name(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name)
    except ImportError:
        return False


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in ELSEWHERE], ids=lambda page: page.stem)
def test_a_page_says_where_each_name_is_imported_from(page: Path) -> None:
    text = page.read_text("utf-8")
    given = {*re.findall(r"\bferrule(?:\.[a-z_]\w*)+", text)}
    given |= {path.replace("/", ".").removesuffix(".py") for path in re.findall(r"\bferrule/[\w/]+\.py", text)}
    missing = {
        name: find_modules()[name] for name in find_named(page) if not any(has_name(module, name) for module in given)
    }
    assert missing == {}
