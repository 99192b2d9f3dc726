"""Python run in the sandbox from the command line: one file, or the cells of a session."""

from __future__ import annotations

import codeop
import sys
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ferrule.background import entered, run_synchronously
from ferrule.cli.sandbox_checking import code_of, profile_of
from ferrule.cli.sandbox_results import show_run
from ferrule.cli.standard_input import is_interactive, prompted_lines
from ferrule.errors import SettingsError
from ferrule.sandbox.python import PythonSandbox, Run
from ferrule.sandbox.python.sandbox import PACKAGES

_MB = 1024 * 1024
DONE, FAILED, REFUSED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Terms:
    """How code is run and shown: seconds, megabytes, `NAME=FILE`, a profile's name, a folder for what it leaves."""

    timeout: float
    memory: int
    inputs: tuple[str, ...]
    checks: str
    out: Path | None
    as_json: bool


def run_file(file: str, terms: Terms) -> int:
    """Run the code of a file and show what came of it; the exit status.

    Raises `SettingsError`, `OSError` or `FerruleError` for bad input, and where nothing can be contained here.
    """
    inputs, code = _inputs(terms.inputs), code_of(file)
    # Loading what one run doesn't import would only keep it waiting.
    packages = [name for name in PACKAGES if name in code]
    with entered(PythonSandbox(packages=packages, checks=profile_of(terms.checks))) as sandbox:
        run = run_synchronously(sandbox.run(code, inputs, timeout=terms.timeout, memory=terms.memory * _MB))
    show_run(run, terms.out, terms.as_json)
    return _status(run)


def run_session(file: str, terms: Terms) -> int:
    """Run cells that share their variables: that of a file if one is named, then those that are typed.

    The exit status is that of the last cell. Raises as `run_file`.
    """
    inputs: dict[str, Any] | None = _inputs(terms.inputs)
    first = [] if file == "-" else [code_of(file)]
    status = DONE
    with entered(PythonSandbox(checks=profile_of(terms.checks))) as sandbox:
        session = run_synchronously(sandbox.session(memory=terms.memory * _MB))
        for cell in chain(first, cells(prompted_lines())):
            run = _interruptible(session.run(cell, inputs, timeout=terms.timeout))
            if run is not None:
                show_run(run, terms.out, terms.as_json)
                status, inputs = _status(run), None
        run_synchronously(session.aclose())
    return status


def _interruptible(running: Coroutine[Any, Any, Run]) -> Run | None:
    """A run; None where somebody at the terminal ended it by Ctrl-C, which ends anything else altogether."""
    try:
        return run_synchronously(running)
    except KeyboardInterrupt:
        if not is_interactive():
            raise
        print("interrupted", file=sys.stderr)
        return None


def cells(lines: Iterable[str]) -> Iterator[str]:
    """Lines as cells, as at Python's own prompt: a statement on one line, or a block up to an empty line."""
    cell: list[str] = []
    for line in lines:
        if cell or line.strip():
            cell.append(line)
        if cell and _is_whole("\n".join(cell)):
            yield "\n".join(cell)
            cell = []
    if cell:
        yield "\n".join(cell)


def _is_whole(cell: str) -> bool:
    try:
        return codeop.compile_command(cell, "<cell>", "single") is not None
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return True


def _inputs(given: tuple[str, ...]) -> dict[str, Any]:
    """Files by the names under which the code finds them."""
    inputs: dict[str, Any] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise SettingsError(f"--input is NAME=FILE, not {text!r}")
        inputs[name] = Path(path)
    return inputs


def _status(run: Run) -> int:
    if run.error is None:
        return DONE
    return REFUSED if run.error.kind == "refused" else FAILED
