"""Patterns of files: what they match, also compared with ripgrep's own reading."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from ferrule.coding.search.globs import GlobInvalid, compile_glob
from ferrule.coding.search.ripgrep import find_ripgrep, list_file_arguments, open_glob_file
from tables import each_case

PATHS = ("a.py", "b.ts", "src/a.py", "src/deep/c.tsx", "src/deep/d.py", "tests/x/src/a.py", "docs/[x].md", "Makefile")
CASES = {
    "*.py": {"a.py", "src/a.py", "src/deep/d.py", "tests/x/src/a.py"},
    "src": {"src/a.py", "src/deep/c.tsx", "src/deep/d.py", "tests/x/src/a.py"},
    "src/": {"src/a.py", "src/deep/c.tsx", "src/deep/d.py", "tests/x/src/a.py"},
    "/src/*": {"src/a.py", "src/deep/c.tsx", "src/deep/d.py"},
    "src/*.py": {"src/a.py"},
    "src/**/*.py": {"src/a.py", "src/deep/d.py"},
    "**/src/*.py": {"src/a.py", "tests/x/src/a.py"},
    "src/**": {"src/a.py", "src/deep/c.tsx", "src/deep/d.py"},
    "*.{ts,tsx}": {"b.ts", "src/deep/c.tsx"},
    "{src,docs}/*.{py,md}": {"src/a.py", "docs/[x].md"},
    "[a-b].*": {"a.py", "b.ts", "src/a.py", "tests/x/src/a.py"},
    "[!a].??": {"b.ts", "src/deep/d.py"},
    "*.rs": set(),
    "*": set(PATHS),
    "**": set(PATHS),
}


@each_case("glob", CASES)
def test_what_a_pattern_matches(glob: str) -> None:
    assert {path for path in PATHS if compile_glob(glob)(path)} == CASES[glob]


@pytest.mark.parametrize("glob", CASES)
def test_ripgrep_leaves_in_at_least_the_same(glob: str, tmp_path: Path) -> None:
    program = find_ripgrep()
    assert program is not None
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    with open_glob_file(glob) as globs:
        arguments = list_file_arguments(program, str(tmp_path), str(tmp_path), ())
        arguments.insert(1, f"--ignore-file={globs}")
        listed = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    found = {path.removeprefix(f"{tmp_path}/") for path in listed.split("\0") if path}
    assert found == CASES[glob]


@each_case("glob", ["", " ", "!a", "a\\b", "{a", "a}", "x" * 1001, "{a,b}" * 10])
def test_patterns_that_are_none(glob: str) -> None:
    with pytest.raises(GlobInvalid):
        compile_glob(glob)


@pytest.mark.parametrize("glob", ["*a" * 100 + "b", "**/" * 100 + "x", "*/" * 50 + "b", "[!x]*" * 50 + "b"])
def test_matching_takes_a_bounded_time(glob: str) -> None:
    began = time.process_time()
    for path in ("a" * 255, "a/" * 2000 + "a"):
        compile_glob(glob)(path)
    assert time.process_time() - began < 2
