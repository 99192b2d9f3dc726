"""Notices code that fails as code before it did: that isn't tried to the end of the limits of `RetryBudget`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ferrule._util.syntax_tree import parse_python

if TYPE_CHECKING:
    from ferrule.analysis.python_executor.code_attempt import TriedCode

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
