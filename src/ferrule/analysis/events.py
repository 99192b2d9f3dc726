"""What an analysis reports as it runs: `stream_analysis` yields these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ferrule.analysis.plan import Plan, PlanTask
from ferrule.analysis.result import AnalysisResult, FailureClass, OutputEntry, TaskExecution
from ferrule.analysis.stages import StageKey
from ferrule.events import Usage


@dataclass(frozen=True, slots=True)
class DataShared:
    """Everything that models will be shown of the data; it comes before the first request."""

    text: str


@dataclass(frozen=True, slots=True)
class StageStarted:
    """A model is asked."""

    key: StageKey
    model: str


@dataclass(frozen=True, slots=True)
class StageFinished:
    """A model has answered, or failed to."""

    key: StageKey
    seconds: float
    usage: Usage
    calls: int = 1
    """Requests that it took."""
    error: str | None = None
    """Why there is no answer; None if there is one."""


@dataclass(frozen=True, slots=True)
class PlanMade:
    """A plan is about to run."""

    plan: Plan
    round: int


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task begins."""

    task: PlanTask
    at: float
    """Seconds after the start of the analysis."""


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """What a running task does now."""

    task: str
    stage: str
    """Such as `methodology`, `code` or `run`."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TaskRetried:
    """An attempt of a task failed, and another one begins."""

    task: str
    attempt: int
    """The number of the new attempt, from 1."""
    failure: FailureClass
    message: str
    temperature: float | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task ended, with or without a result."""

    execution: TaskExecution


@dataclass(frozen=True, slots=True)
class EntryAdded:
    """The result has one more entry."""

    entry: OutputEntry


@dataclass(frozen=True, slots=True)
class Notice:
    """Something went other than was asked, such as a setting that a model refused."""

    text: str


@dataclass(frozen=True, slots=True)
class AnalysisFinished:
    """The last event."""

    result: AnalysisResult


AnalysisEvent: TypeAlias = (
    DataShared
    | StageStarted
    | StageFinished
    | PlanMade
    | TaskStarted
    | TaskProgress
    | TaskRetried
    | TaskFinished
    | EntryAdded
    | Notice
    | AnalysisFinished
)
