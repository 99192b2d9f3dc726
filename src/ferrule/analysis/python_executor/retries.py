"""What may still be tried: the four limits of the fourth seed, and by how much temperatures and timeouts rise."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ferrule.analysis.settings import AnalysisSettings, extend_timeout

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
