"""Programs with a wrong name in them fail at the line that holds it, before anything runs, and type checkers find it.

Each file of `wrong_programs/` marks that line `# wrong`.
"""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule import FerruleError
from tables import each_case

PROGRAMS = sorted((Path(__file__).parent / "wrong_programs").glob("*.py"))
MYPY_ERROR = re.compile(r"(\w+\.py):(\d+): error: ")


def wrong_line(program: Path) -> int:
    """The number of the line that is marked."""
    (line,) = [number for number, text in enumerate(program.read_text().splitlines(), 1) if text.endswith("  # wrong")]
    return line


EXPECTED = {(program.name, wrong_line(program)) for program in PROGRAMS}


def test_there_are_twenty() -> None:
    assert len(PROGRAMS) == 20


@each_case("program", PROGRAMS, ids=lambda program: program.stem)
def test_it_fails_at_the_call(program: Path) -> None:
    with pytest.raises((FerruleError, TypeError, AttributeError, ImportError)) as caught:
        runpy.run_path(str(program))
    lines = [entry.lineno + 1 for entry in caught.traceback if str(entry.path) == str(program)]
    assert lines[-1] == wrong_line(program)


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """The programs in a folder of their own, where no setting of this project holds."""
    for program in PROGRAMS:
        shutil.copy(program, tmp_path)
    return tmp_path


@pytest.mark.slow
def test_mypy_finds_it(copies: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--python-executable", sys.executable]
    done = subprocess.run([*command, "."], cwd=copies, capture_output=True, text=True, check=False)
    assert {(name, int(line)) for name, line in MYPY_ERROR.findall(done.stdout)} == EXPECTED, done.stdout + done.stderr


@pytest.mark.slow
def test_basedpyright_finds_it(copies: Path) -> None:
    (copies / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=copies, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    places = {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in found}
    assert places == EXPECTED, done.stdout + done.stderr
