"""Finds what runs a project's tests, from the files that are there, and writes its command line.

A pattern is one argument of it; no shell interprets it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ferrule.errors import FileAccessRefused, ToolRetry
from ferrule.sandbox.file_access import FileAccess

__all__ = ["RunnerName", "TestRunner", "find_runners", "make_named_runner"]

RunnerName = Literal["pytest", "unittest", "cargo", "go", "npm", "make"]
_MAX_FILE_BYTES: Final = 1024 * 1024
_MOST_TEST_FILES: Final = 20
_NO_TEST_SPECIFIED: Final = "no test specified"
_PLACEHOLDER: Final = "{pattern}"
_TEST_TARGET: Final = re.compile(r"(?m)^test\s*:(?!=)")
_PYTEST_SECTIONS: Final = {
    "pyproject.toml": "[tool.pytest",
    "setup.cfg": "[tool:pytest]",
    "tox.ini": "[pytest]",
}


@dataclass(frozen=True, slots=True)
class TestRunner:
    """What runs the tests: its name, the reason why it was chosen, and its command line without a pattern."""

    name: str
    reason: str
    command: tuple[str, ...]

    def make_arguments(self, pattern: str, report: str) -> list[str]:
        """The command line for the tests that match a pattern, for all if it is empty; `report` is a path to write.

        Raises `ToolRetry` for a pattern that the runner would read as an option or doesn't support.
        """
        if pattern.startswith("-"):
            raise ToolRetry(f"the pattern {pattern!r} begins with '-', which {self.name} would take for an option")
        if "\0" in pattern or "\n" in pattern:
            raise ToolRetry("the pattern must be one line without NUL")
        return [*self.command, *_PATTERN_ARGUMENTS.get(self.name, _append)(pattern, report)]


def _append(pattern: str, _report: str) -> list[str]:
    return [pattern] if pattern else []


def _make_pytest_arguments(pattern: str, report: str) -> list[str]:
    is_path = "::" in pattern or "/" in pattern or pattern.endswith(".py")
    chosen = [pattern] if is_path else ["-k", pattern]
    return [f"--junit-xml={report}", *(chosen if pattern else [])]


def _refuse_pattern(pattern: str, _report: str) -> list[str]:
    if pattern:
        raise ToolRetry("the project's tests are run by `make test`, which can't choose tests by a pattern")
    return []


_PATTERN_ARGUMENTS: Final[dict[str, Callable[[str, str], list[str]]]] = {
    "pytest": _make_pytest_arguments,
    "unittest": lambda pattern, _: ["-k", pattern] if pattern else [],
    "go": lambda pattern, _: [*(["-run", pattern] if pattern else []), "./..."],
    "npm": lambda pattern, _: ["--", pattern] if pattern else [],
    "make": _refuse_pattern,
}


def make_named_runner(command: Sequence[str], source: str) -> TestRunner:
    """The runner that a settings file names: the pattern takes the place of `{pattern}`, else it comes last."""
    is_pytest = any(Path(each).name in ("pytest", "py.test") for each in command)
    return _NamedRunner("pytest" if is_pytest else Path(command[0]).name, source, tuple(command))


class _NamedRunner(TestRunner):
    __slots__ = ()

    def make_arguments(self, pattern: str, report: str) -> list[str]:
        """See `TestRunner`."""
        if not any(_PLACEHOLDER in each for each in self.command):
            return TestRunner.make_arguments(self, pattern, report)
        filled = [each.replace(_PLACEHOLDER, pattern) for each in self.command if pattern or each != _PLACEHOLDER]
        return [*filled, *([f"--junit-xml={report}"] if self.name == "pytest" else [])]


def find_runners(access: FileAccess) -> tuple[list[TestRunner], list[str]]:
    """The runners that the files of a workspace speak for, the likeliest first, and which files can't be read."""
    files = _Files(access)
    found = [
        runner
        for find in (_find_pytest, _find_cargo, _find_go, _find_npm, _find_unittest, _find_make)
        for runner in find(files)
    ]
    return found, files.problems


class _Files:
    """The files of a workspace, as far as tools may read them."""

    def __init__(self, access: FileAccess) -> None:
        self._access = access
        self._snapshot = access.take_snapshot()
        self.folder = access.workspace
        self.problems: list[str] = []

    def read(self, name: str) -> str | None:
        """The start of a file as text; None if it isn't there or can't be read."""
        try:
            with open(self._access.open_file(name, snapshot=self._snapshot), "rb") as file:  # noqa: PTH123 - a descriptor
                return file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
        except (OSError, FileAccessRefused):
            return None

    def find_python(self) -> str:
        """The interpreter of the project's own environment, else the one on the path."""
        for name in (".venv", "venv"):
            if (self.folder / name / "bin" / "python").exists():
                return f"{name}/bin/python"
        return "python3"

    def list_python_tests(self) -> list[str]:
        """Some files that pytest or unittest would take for tests."""
        found: list[str] = []
        for folder in (".", "tests", "test"):
            try:
                names = sorted(entry.name for entry in os.scandir(self.folder / folder))
            except OSError:
                continue
            found += [
                f"{folder}/{name}".removeprefix("./") for name in names if re.fullmatch(r"test.*\.py|.*_test\.py", name)
            ]
        return found[:_MOST_TEST_FILES]


def _find_pytest(files: _Files) -> Iterator[TestRunner]:
    command = (files.find_python(), "-m", "pytest", "-q")
    for name in ("pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"):
        if files.read(name) is not None:
            yield TestRunner("pytest", f"there is {name}", command)
            return
    for name, section in _PYTEST_SECTIONS.items():
        if section in (files.read(name) or ""):
            yield TestRunner("pytest", f"{name} has {section}", command)
            return
    for name in files.list_python_tests():
        text = files.read(name) or ""
        if "unittest.TestCase" not in text and "TestCase)" not in text and re.search(r"(?m)^(async )?def test", text):
            yield TestRunner("pytest", f"{name} has test functions", command)
            return


def _find_unittest(files: _Files) -> Iterator[TestRunner]:
    for name in files.list_python_tests():
        if "TestCase" in (files.read(name) or ""):
            folder = name.rpartition("/")[0]
            is_package = not folder or files.read(f"{folder}/__init__.py") is not None
            start = () if is_package else ("-s", folder)
            command = (files.find_python(), "-m", "unittest", "discover", "-v", *start)
            yield TestRunner("unittest", f"{name} has test cases of unittest", command)
            return


def _find_cargo(files: _Files) -> Iterator[TestRunner]:
    if files.read("Cargo.toml") is not None:
        yield TestRunner("cargo", "there is Cargo.toml", ("cargo", "test", "--no-fail-fast"))


def _find_go(files: _Files) -> Iterator[TestRunner]:
    if files.read("go.mod") is not None:
        yield TestRunner("go", "there is go.mod", ("go", "test", "-json"))


def _find_npm(files: _Files) -> Iterator[TestRunner]:
    text = files.read("package.json")
    try:
        script = json.loads(text)["scripts"]["test"] if text is not None else None
    except (KeyError, TypeError):
        return
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        files.problems.append(f"package.json can't be read as JSON ({reason})")
        return
    if isinstance(script, str) and script.strip() and _NO_TEST_SPECIFIED not in script:
        yield TestRunner("npm", "package.json has a script `test`", ("npm", "test"))


def _find_make(files: _Files) -> Iterator[TestRunner]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if _TEST_TARGET.search(files.read(name) or ""):
            yield TestRunner("make", f"{name} has a target `test`", ("make", "test"))
            return
