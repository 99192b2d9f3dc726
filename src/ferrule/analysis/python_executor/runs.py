"""Runs code with its result checks in the sandbox, and reads what comes back."""

from __future__ import annotations

import json
import marshal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Protocol

from ferrule.analysis.data.task_value import VALUE_FILE
from ferrule.analysis.python_executor.error_context import (
    ErrorContext,
    describe_exception,
    describe_invalid_input,
    describe_limit,
    describe_no_result,
)
from ferrule.analysis.result import ResultCheck
from ferrule.conversation import Image
from ferrule.errors import SandboxInputError

if TYPE_CHECKING:
    from ferrule.analysis.data.table import Table
    from ferrule.analysis.data.task_value import TaskValue
    from ferrule.analysis.python_executor.stages import CheckCode
    from ferrule.sandbox.python.result import PythonResult

_CHECKS_SHARE: Final = 0.25
"""The share of a run's time that its checks may take."""
_MOST_SECONDS: Final = 10.0
"""The longest time that all checks of a run may take."""
_MISSING: Final[Mapping[str, str]] = {
    "NaTType": "pandas.NaT",
    "NAType": "pandas.NA",
    "datetime64": "numpy.datetime64('NaT')",
    "timedelta64": "numpy.timedelta64('NaT')",
}
"""By type: the missing values of which each is a result, unlike None."""


class CodeSession(Protocol):
    """Where code runs with its tables bound: a `DataSession`, or one whose runs are recorded."""

    @property
    def tables(self) -> Sequence[Table]:
        """The tables that are bound."""
        ...

    async def run(self, code: str, results: Mapping[str, TaskValue], *, timeout: float) -> PythonResult:
        """Run code, with `results` of earlier tasks by their names. Raises `SandboxInputError`."""
        ...


@dataclass(frozen=True, slots=True)
class CodeRun:
    """What a run of code left: a value, or an error."""

    value: Any = None
    """As the sandbox decodes it."""
    pickled: bytes | None = None
    """The value for later tasks, where JSON hasn't all of it: see `TaskValue`."""
    type: str = ""
    """The type that later tasks have it with, where JSON hasn't all of it."""
    notes: tuple[str, ...] = ()
    """What later tasks don't have as it was."""
    checks: tuple[ResultCheck, ...] = ()
    error: ErrorContext | None = None
    output: str = ""
    figures: tuple[Image, ...] = ()
    seconds: float = 0.0
    omitted: tuple[str, ...] = ()
    """What of the value is missing or cut."""

    @property
    def missing(self) -> str:
        """The name of the missing value that the result is, which JSON has as null; empty if it is none."""
        return _MISSING.get(self.type, "") if self.value is None and not self.omitted else ""

    @property
    def failed_checks(self) -> tuple[ResultCheck, ...]:
        """The checks that ran and are false."""
        return tuple(check for check in self.checks if check.passed is False)


async def run_code(
    session: CodeSession,
    code: str,
    checks: Sequence[CheckCode],
    *,
    extracted: Mapping[str, Any],
    results: Mapping[str, TaskValue],
    timeout: float,
) -> CodeRun:
    """Run code, then the checks of its result. Never raises for what the code did."""
    seconds = min(timeout * _CHECKS_SHARE, _MOST_SECONDS)
    program = write_program(code, extracted, [check.code for check in checks], seconds)
    started = time.monotonic()
    try:
        done = await session.run(program, results, timeout=timeout)
    except SandboxInputError as error:
        return CodeRun(error=describe_invalid_input(str(error)))
    run = replace(_read_run(done, code, checks), seconds=time.monotonic() - started)
    has_value = run.value is not None or run.missing
    if run.error is None and not has_value and not run.output.strip() and not run.figures:
        return replace(run, error=describe_no_result())
    return run


def write_program(code: str, extracted: Mapping[str, Any], checks: Sequence[str], seconds: float) -> str:
    """A program of one line that runs `code` by the harness, in the session's own variables."""
    arguments = json.dumps([code, dict(extracted), list(checks), seconds])
    return (
        f"(lambda harness: (exec(__import__('marshal').loads({_compile_harness()!r}), harness), "
        f"harness['run_task'](globals(), *__import__('json').loads({arguments!r})))[1])({{'__name__': 'harness'}})"
    )


@cache
def _compile_harness() -> bytes:
    """The harness as bytecode: the sandbox runs the same Python, and compiling would take some ms of each run."""
    source = files("ferrule.analysis.python_executor").joinpath("harness.py").read_text("utf-8")
    return marshal.dumps(compile(source, "<harness>", "exec", dont_inherit=True, optimize=2))


def _read_run(done: PythonResult, code: str, checks: Sequence[CheckCode]) -> CodeRun:
    """Read what the harness returned. Code can replace the harness, so nothing of it is taken for granted."""
    run = CodeRun(output=done.stdout + done.stderr, figures=done.images)
    if done.error is not None:
        return replace(run, error=describe_limit(done.error, code))
    tree: Mapping[Any, Any] = done.value if isinstance(done.value, Mapping) else {}
    if "error" in tree:
        return replace(run, error=describe_exception(tree["error"], code))
    return replace(
        run,
        value=tree.get("result"),
        pickled=done.files.get(VALUE_FILE),
        type=str(tree.get("type") or "")[:600],
        notes=_read_notes(tree.get("notes"), done.omitted),
        checks=_read_checks(tree.get("checks"), checks),
        omitted=tuple(one.replace("value['result']", "result") for one in done.omitted),
    )


def _read_notes(notes: Any, omitted: Sequence[str]) -> tuple[str, ...]:
    """What the harness says of the value that it left, and whether it was too large to be returned."""
    found = [str(note)[:600] for note in notes[:20]] if isinstance(notes, list) else []
    reasons = [one.partition(": ")[2] for one in omitted if one.startswith(f"files['{VALUE_FILE}']")]
    found += [f"later tasks have the result as it is shown here: {reason}" for reason in reasons]
    return tuple(found)


def _read_checks(found: Any, checks: Sequence[CheckCode]) -> tuple[ResultCheck, ...]:
    trees = found if isinstance(found, list) and len(found) == len(checks) else [None] * len(checks)
    return tuple(_read_check(tree, check) for tree, check in zip(trees, checks, strict=True))


def _read_check(tree: Any, check: CheckCode) -> ResultCheck:
    status = tree.get("status") if isinstance(tree, Mapping) else None
    detail = tree.get("detail") if isinstance(tree, Mapping) else None
    passed = {"passed": True, "failed": False}.get(status) if isinstance(status, str) else None
    return ResultCheck(check.states, passed, str(detail or "")[:600], check.kind, check.code)
