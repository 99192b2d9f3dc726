"""Which question of an analysis a request to a model is."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

WHOLE = "analysis"
"""The task of a `StageKey` for the stages of the whole analysis."""

STAGES = (
    "complexity", "candidates", "evaluation", "iteration", "synthesis", "focused_answer",
    "methodology", "extraction", "tool_query", "code",
)  # fmt: skip
"""The stages that may have a model of their own; those of `iteration` are numbered."""


@dataclass(frozen=True, slots=True)
class StageKey:
    """Which question to a model this is: unique in an analysis, whatever order the requests arrive in."""

    task: str
    """The id of a task, or `analysis`."""
    stage: str
    """Such as `complexity`, `candidates`, `logic_kernel`, `methodology` or `code`."""
    attempt: int = 0
    """Counted from 0 within the task and the stage."""

    def __str__(self) -> str:
        return f"{self.task}/{self.stage}/{self.attempt}"


current_stage: ContextVar[StageKey | None] = ContextVar("current_stage", default=None)
"""The key of the question that the running request belongs to."""

current_task: ContextVar[str] = ContextVar("current_task", default="")
"""The id of the task that runs: what its tool does belongs to it."""
