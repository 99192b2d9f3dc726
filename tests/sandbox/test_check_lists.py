"""The lists of `strict`: the fourth seed's character for character, and the table of the documents as they are."""

import ast
import re
from pathlib import Path

import pytest

from ferrule.sandbox.checks import check
from ferrule.sandbox.checks.name_lists import ATTRIBUTES, BUILTINS, MODULES, UNUSABLE_MODULES
from tables import each_case

# The blocks of code of the fourth seed, as it prints them.
SEED = """
dangerous_modules = {
    # File I/O
    "os", "io", "pathlib", "glob", "shutil", "tempfile",
    
    # Network
    "socket", "http", "urllib", "ftplib", "email", "smtplib",
    
    # System access
    "subprocess", "sys", "signal", "ctypes", "multiprocessing",
    
    # Code execution
    "code", "codeop", "imp",
    
    # Database
    "sqlite3", "dbm",
    # ... and more
}
dangerous_builtins = {
    "open", "exec", "eval", "compile",
    "__import__", "input", "breakpoint",
    "getattr", "setattr", "delattr",
    "globals", "locals", "vars", "dir",
}
dangerous_attrs = {
    # System/process
    "system", "popen", "spawn", "exec", "kill",
    
    # File operations
    "remove", "unlink", "rmdir", "mkdir",
    "chmod", "chown", "read", "write",
    
    # Directory traversal
    "listdir", "scandir", "walk", "glob",
    
    # Pandas file I/O
    "to_csv", "read_excel", "to_excel",
    # ... and more
}
"""  # noqa: W293 - character for character
LISTS = {"dangerous_modules": MODULES, "dangerous_builtins": BUILTINS, "dangerous_attrs": ATTRIBUTES}


def read_seed() -> dict[str, set[str]]:
    """The three sets of the seed."""
    return {
        assigned.targets[0].id: ast.literal_eval(assigned.value)
        for assigned in ast.parse(SEED).body
        if isinstance(assigned, ast.Assign) and isinstance(assigned.targets[0], ast.Name)
    }


@pytest.mark.parametrize("name", LISTS)
def test_the_original_lists_are_those_of_the_seed(name):
    original = {listed for listed, forbidden in LISTS[name].items() if forbidden.listed == "original"}
    assert original == read_seed()[name]


FORMS = {"module": "import {}", "built-in": "x = {}('a')", "attribute": "x.{}()", "text": "f({!r})", "call": "pd.{}(x)"}
PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text("utf-8")


def read_table() -> list[tuple[str, str, list[str], list[str], list[str]]]:
    """The rows of the table: kind, what for, and the names of its three columns."""
    table = PAGE.partition("<!-- refused -->")[2].partition("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
    return [(row[0], row[1], *(re.findall(r"`([^`]+)`", cell) for cell in row[2:])) for row in rows]


@each_case("row", read_table(), ids=lambda row: f"{row[0]}, {row[1]}")
def test_each_row_of_the_documented_table_is_what_the_profiles_find(row):
    kind, _, original, added, advised = row
    for listed, names in (("original", original), ("added", added)):
        for name in names:
            findings = check(FORMS[kind].format(name), profile="strict")
            assert [(one.listed, one.refuses) for one in findings] == [(listed, True)], name
            assert check(FORMS[kind].format(name), profile="off") == ()
            advice = check(FORMS[kind].format(name))
            assert bool(advice) == (name in advised), name
            assert not any(finding.refuses for finding in advice)
    for name in set(advised) - {*original, *added}:
        assert check(FORMS[kind].format(name)), name
        assert check(FORMS[kind].format(name), profile="strict") == (), name


def test_the_documented_table_has_every_name_of_the_lists():
    rows = read_table()
    for kind, names in (("module", MODULES), ("built-in", BUILTINS), ("attribute", ATTRIBUTES)):
        documented = [name for row in rows if row[0] == kind for name in (*row[2], *row[3])]
        assert sorted(documented) == sorted(names)
    advised = {name for row in rows if row[0] == "module" for name in row[4]}
    listed = {name for name in UNUSABLE_MODULES if name in MODULES or name.partition(".")[0] not in MODULES}
    assert advised == listed
