"""What a Python task leaves: its result, its code, each attempt with what was wrong, and the checks of the result;
and the same as a model and a person read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ferrule._util.pluralize import pluralize
from ferrule.analysis.planning.briefing import shorten
from ferrule.analysis.result import Attempt, ResultCheck
from ferrule.builtin_tools.python_values import render_value
from ferrule.conversation import Image

if TYPE_CHECKING:
    from ferrule.analysis.data.task_value import TaskValue
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.python_executor.runs import CodeRun
    from ferrule.analysis.python_executor.stages import ExtractedData, Methodology
    from ferrule.analysis.result import ResultCheck


@dataclass(frozen=True, slots=True)
class PythonOutcome:
    """What a Python task left. `error` is None if it has a result, which may still have failed checks."""

    result: str = ""
    """The result as a model and a person read it, with failed checks and repairs said."""
    value: Any = None
    """The result as JSON data."""
    pickled: bytes | None = None
    """The result for later tasks, where JSON hasn't all of it."""
    error: str | None = None
    is_final: bool = False
    """Whether the task would fail in the same way if it were run again."""
    code: str | None = None
    methodology: Methodology | None = None
    extracted: ExtractedData | None = None
    functions: tuple[FunctionDoc, ...] = ()
    """Those that the model was shown."""
    output: str = ""
    figures: tuple[Image, ...] = ()
    checks: tuple[ResultCheck, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader of the result should know: repairs, values that the context doesn't hold, unknown functions."""

    @property
    def kept(self) -> TaskValue | None:
        """The result as the `TaskValue` that later tasks see as `results["t1"]`; None without a result."""
        if self.error is not None:
            return None
        from ferrule.analysis.data.task_value import TaskValue

        return TaskValue(self.value, self.pickled)


_LONGEST: Final = 10_000
"""Characters of a result, and of what was printed."""


def render_result(run: CodeRun, notes: Sequence[str]) -> str:
    """The value, what was printed, how many figures there are, the checks, and the notes."""
    parts = []
    if run.value is not None:
        parts.append(shorten(render_value(run.value), _LONGEST))
    elif run.missing:
        parts.append(f"a missing value ({run.missing})")
    if run.type and run.pickled is not None:
        parts.append(f"Later tasks have it whole, as {run.type}")
    elif run.omitted:
        parts.append(f"Not all of it is here: {'; '.join(run.omitted[:5])}")
    # The first line of a printed table begins with spaces, under which its columns stand.
    if printed := run.output.rstrip().lstrip("\r\n"):
        parts.append(f"Printed:\n{shorten(printed, _LONGEST)}")
    if run.figures:
        parts.append(pluralize(len(run.figures), "figure"))
    if run.checks:
        parts.append(render_checks(run.checks))
    parts += [f"Note: {note}" for note in notes]
    return "\n\n".join(parts)


def render_checks(checks: Sequence[ResultCheck]) -> str:
    """One line a check: what it states and how it came out."""
    lines = [
        f"- {check.status}: {check.description}" + (f" ({check.detail})" if check.detail else "") for check in checks
    ]
    return "\n".join(["Checks of the result:", *lines])
