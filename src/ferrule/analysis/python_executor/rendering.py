"""Writes the outcome of a Python task as a model and a person read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ferrule._util.pluralize import pluralize
from ferrule.analysis.planning.briefing import shorten
from ferrule.builtin_tools.python_values import render_value

if TYPE_CHECKING:
    from ferrule.analysis.python_executor.runs import CodeRun
    from ferrule.analysis.result import ResultCheck

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
