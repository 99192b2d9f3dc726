"""The `ErrorContext` of what went wrong with code, whatever it was: syntax, a refusal, an exception, a limit.

An exception is explained where it was raised, in the sandbox (`harness`): that asks friendly-traceback, which looks at
the values of the program. Here only text arrives, and it is read as text of the model's code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ferrule.sandbox.checks import Finding
    from ferrule.sandbox.python.result import RunError

_LONGEST_MESSAGE: Final = 2000
_LONGEST_CODE: Final = 300
_MOST_FIXES: Final = 8
_PLACEHOLDER: Final = re.compile(r"\{\w+\}")

_MEMORY: Final = (
    "Select the columns and rows that are needed first, and aggregate before joining or copying.",
    "Work in parts (groupby, chunks of rows) in place of one large intermediate table.",
)
_LIMITS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "timeout": (
        "Timeout",
        (
            "Make sure that each loop ends.",
            "Use vectorised operations of numpy and pandas in place of loops over rows.",
            "Compute on a sample, or with fewer repetitions, and say so in the result.",
        ),
    ),
    "memory": ("OutOfMemory", _MEMORY),
    "output": (
        "TooMuchOutput",
        ("Print summaries only: never whole tables, and nothing in a loop.", "Assign the result to `result`."),
    ),
    "killed": ("Killed", ("Don't end the process (exit, os._exit, signals).", *_MEMORY)),
    "protocol": ("NoAnswer", ("Don't write to descriptors other than standard output.",)),
    "lost": ("SandboxLost", ("Nothing is known to be wrong with the code: the same code may be run again.",)),
}
"""By the kind of a run's error: the `error_type`, and what to do."""

_NOT_INSTALLED: Final = (
    "It isn't installed, and nothing can be installed: use the standard library, numpy, pandas, scipy, sklearn, "
    "statsmodels or matplotlib."
)

_SESSION: Final = re.compile(r"[;,] the session [^;]*$")
"""What a message says of the session: each run has one of its own, so the model has no use for it."""


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """What is known of an error, as the next attempt is told it. The fields are the fourth seed's."""

    error_type: str
    """The exception's class, or what ended the code: `Timeout`, `OutOfMemory`, `TooMuchOutput`, `NoResult`, …"""
    error_message: str
    problematic_line: int | None = None
    """Counted from 1."""
    problematic_code: str = ""
    """The code at that line."""
    variable_name: str = ""
    """The name, attribute or key that doesn't exist."""
    suggested_fixes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """One line: the line of the code, the type, the message."""
        is_said = self.error_message.startswith("line ")
        place = f"line {self.problematic_line}: " if self.problematic_line and not is_said else ""
        return f"{place}{self.error_type}: {self.error_message}"


def describe_limit(error: RunError, code: str) -> ErrorContext:
    """What ended code from outside: its time, memory or output."""
    # The harness explains exceptions; one that it couldn't is known by its message only.
    said = _SESSION.sub("", error.message)
    name, _, rest = said.partition(": ")
    kind, fixes = _LIMITS.get(error.kind, (name if rest else "RunError", ()))
    message = _cut(said if error.kind in _LIMITS else rest or name, _LONGEST_MESSAGE)
    return ErrorContext(kind, message, error.line, get_line(code, error.line), "", fixes)


def describe_exception(found: Any, code: str) -> ErrorContext:
    """What the harness found out about an exception. Anything that isn't of its form gives less, and no error."""
    tree: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    line = tree.get("line")
    number = line if type(line) is int and 0 < line <= code.count("\n") + 1 else None
    fixes = tree.get("fixes")
    texts = [one for one in fixes if isinstance(one, str)] if isinstance(fixes, list) else []
    # Some hints of friendly-traceback are templates that it didn't fill.
    texts = [text for text in texts if all(place in code for place in _PLACEHOLDER.findall(text))]
    if tree.get("type") == "ModuleNotFoundError":
        texts = [*(text for text in texts if "install" not in text), _NOT_INSTALLED]
    return ErrorContext(
        error_type=_cut(_get_text(tree, "type") or "Error", 100),
        error_message=_cut(_get_text(tree, "message"), _LONGEST_MESSAGE),
        problematic_line=number,
        problematic_code=get_line(code, number),
        variable_name=_cut(_get_text(tree, "name"), 100),
        suggested_fixes=tuple(dict.fromkeys(texts))[:_MOST_FIXES],
    )


def describe_finding(finding: Finding, code: str) -> ErrorContext:
    """A syntax error that the parser found."""
    kind, _, message = finding.message.partition(": ")
    fixes = (finding.instead,) if finding.instead else ()
    if not message:
        kind, message = "SyntaxError", finding.message
    return ErrorContext(kind, message, finding.line, get_line(code, finding.line), "", fixes)


def describe_no_result() -> ErrorContext:
    """Code that ended and left nothing: no result, no output, no figure."""
    return ErrorContext(
        "NoResult",
        "the code ended without a result: `result` isn't assigned or is None, nothing was printed or drawn",
        suggested_fixes=("Assign what the task asks for to the variable `result`, at the end and at the top level.",),
    )


def describe_invalid_input(message: str) -> ErrorContext:
    """Code or values that the sandbox doesn't take."""
    return ErrorContext(
        "InvalidInput",
        message,
        suggested_fixes=("Write a short program: data is in tables, results and extracted_values, never in the code.",),
    )


def describe_failed_checks(failed: Sequence[tuple[str, str]]) -> ErrorContext:
    """Checks that failed: pairs of what they state and what they found."""
    message = "; ".join(f"{states} ({detail})" for states, detail in failed)
    return ErrorContext(
        "CheckFailed",
        _cut(f"the result doesn't hold what it must: {message}", _LONGEST_MESSAGE),
        suggested_fixes=(
            "Find out whether the code or the check is wrong, and correct that one.",
            "Never weaken a check only to make it pass.",
        ),
    )


def describe_invalid_answer(message: str) -> ErrorContext:
    """An answer that isn't of the structure that was asked for."""
    return ErrorContext(
        "InvalidAnswer",
        _cut(message, _LONGEST_MESSAGE),
        suggested_fixes=("Answer with the JSON object that is asked for, with the whole program in `code`.",),
    )


def render_error(error: ErrorContext) -> str:
    """Write it for a model."""
    lines = [f"error_type: {error.error_type}", f"error_message: {error.error_message}"]
    if error.problematic_line:
        lines.append(f"problematic_line: {error.problematic_line}")
    if error.problematic_code:
        lines.append(f"problematic_code: {error.problematic_code}")
    if error.variable_name:
        lines.append(f"variable_name: {error.variable_name}")
    if error.suggested_fixes:
        lines += ["suggested_fixes:", *(f"- {fix}" for fix in error.suggested_fixes)]
    return "\n".join(lines)


_LINE_END: Final = re.compile(r"\r\n|\r|\n")


def get_line(code: str, number: int | None) -> str:
    """A line of the code, counted from 1, without its indentation; empty if there is none."""
    lines = _LINE_END.split(code)
    return _cut(lines[number - 1].strip(), _LONGEST_CODE) if number and number <= len(lines) else ""


def _get_text(tree: Mapping[str, Any], key: str) -> str:
    value = tree.get(key)
    return value if isinstance(value, str) else ""


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
