"""Runs every program of `examples/`, which must print what its docstring shows."""

import ast
import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"
PROGRAMS = sorted(FOLDER.glob("*.py"))
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_what_it_shows(program: Path, tmp_path: Path) -> None:
    command, shown = shown_by(program)
    assert command == f"python examples/{program.name}" or command.startswith("ferrule ")
    own = {name: value for name, value in os.environ.items() if not name.startswith("FERRULE")}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", *make_arguments(command)],
        cwd=tmp_path,
        env={**own, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert doctest.OutputChecker().check_output(shown, done.stdout, doctest.ELLIPSIS), done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_short_and_listed(program: Path) -> None:
    assert 20 <= len(program.read_text(encoding="utf-8").splitlines()) <= 80
    assert f"[{program.name}]({program.name})" in INDEX


def make_arguments(command: str) -> list[str]:
    """What Python is given for a command as it is typed in the clone."""
    name, *arguments = [word.replace("examples/", f"{FOLDER}/") for word in shlex.split(command)]
    return arguments if name == "python" else ["-m", name, *arguments]


def shown_by(program: Path) -> tuple[str, str]:
    """The command that a program's docstring shows, and the output below it."""
    docstring = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8")), clean=False)
    assert docstring is not None
    match = re.search(r"^    \$ (.+)\n((?:    .*\n?|\n)+)", docstring + "\n", re.MULTILINE)
    assert match is not None, "its docstring shows how it is run, and what it prints"
    return match[1], textwrap.dedent(match[2]).rstrip("\n") + "\n"
