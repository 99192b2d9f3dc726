"""What may still be tried: the four limits of the fourth seed, and by how much temperatures and timeouts rise.

Code that fails as code before it did isn't tried to the end of the limits.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ferrule._util.syntax_tree import parse_python
from ferrule.analysis.settings import AnalysisSettings, extend_timeout

if TYPE_CHECKING:
    from ferrule.analysis.python_executor.code_attempt import TriedCode

CodeFailure: TypeAlias = Literal["syntax", "safety", "runtime", "check"]
"""Why code has to be written again. A failed check of the result counts as `runtime`."""


@dataclass(slots=True)
class RetryBudget:
    """The retries of one pass, from a tool query to a result. A full restart begins another pass with all of them.

    `restart` counts the full restarts before it. `attempt` is what the seed's formulas take: 0 for the first code of
    the first pass, one more for each code after it, and for the first code of a restart the number of the restart.
    """

    settings: AnalysisSettings
    restart: int = 0
    used: Counter[str] = field(default_factory=Counter)

    @property
    def attempt(self) -> int:
        """The number of the present attempt."""
        return self.restart + self.used.total()

    @property
    def temperature(self) -> float:
        """`python_temperature`, raised by `attempt * retry_temperature_increase`."""
        return self.settings.temperature_for(self.settings.python_temperature, self.attempt)

    @property
    def run_timeout(self) -> int:
        """`(python_run_timeout * (5 + attempt)) // 5`."""
        return extend_timeout(self.settings.python_run_timeout, self.attempt)

    @property
    def ask_timeout(self) -> int:
        """The same of `tool_timeout`, for one question to the model."""
        return extend_timeout(self.settings.tool_timeout, self.attempt)

    def get_limit(self, failure: CodeFailure) -> int:
        """How often code may be written again after failures of this class, in one pass."""
        limits = {
            "syntax": self.settings.python_max_ast_retries,
            "safety": self.settings.python_max_safety_retries,
        }
        return limits.get(failure, self.settings.python_max_runtime_retries)

    def take(self, failure: CodeFailure) -> bool:
        """Use one retry of the class; returns False if none is left."""
        counted = "runtime" if failure == "check" else failure
        if self.used[counted] >= self.get_limit(failure):
            return False
        self.used[counted] += 1
        return True


_SAME_LINE: Final = 3
"""How often in a row the same line may fail with the same error: code around it may have been what was wrong."""
_MOST_REPETITIONS: Final = 2
"""A first repetition ends the pass: the restart words the task anew. A second one ends the task."""
_BY_CHANCE: Final = frozenset({"SandboxLost"})
"""Errors that say nothing about the code."""


@dataclass(slots=True)
class FailureHistory:
    """The failures of one run of a task, over its restarts; says when the model writes what failed before again."""

    reason: str = ""
    """Why code like the last one isn't worth another attempt; empty if it may be."""
    _repetitions: int = 0
    _failed: set[tuple[str, ...]] = field(default_factory=set)
    _lines: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def is_stuck(self) -> bool:
        """Whether a restart didn't help either."""
        return self._repetitions >= _MOST_REPETITIONS

    def add(self, tried: TriedCode) -> None:
        """Add an attempt, and determine whether it is a repetition. Code that ran longer each time is none."""
        self.reason = ""
        error = tried.error
        if error is None or error.error_type in _BY_CHANCE:
            self._lines.clear()
            return
        # The same code with other checks is an answer to failed checks.
        checks = [check.code for check in tried.run.failed_checks] if tried.run else []
        failure = (_normalize(tried.code), error.error_type, error.error_message, *checks)
        self._lines.append((error.error_type, error.error_message, error.problematic_code))
        last = self._lines[-_SAME_LINE:]
        if failure in self._failed:
            self.reason = "the model wrote the same code again, which failed in the same way"
        elif error.problematic_code and len(last) == _SAME_LINE and len(set(last)) == 1:
            self.reason = f"the same line failed in the same way {_SAME_LINE} times"
        self._failed.add(failure)
        self._repetitions += bool(self.reason)


def _normalize(code: str) -> str:
    """The program without its layout and comments, if it can be parsed."""
    try:
        return ast.dump(parse_python(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code.strip()
