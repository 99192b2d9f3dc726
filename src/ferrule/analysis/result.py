"""What an analysis leaves: its entries in the order in which they were made, the answer, and what it used.

    result = await run_analysis(query, groq_api_key=key)
    for entry in result.output_entries:
        if entry.stage_type == "task_execution":
            print(entry.data.tool, entry.data.task_query, entry.data.result)

A result is valid at every moment of an analysis, also after a limit or a cancellation.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ferrule.analysis.limits import Spending
from ferrule.analysis.plan import Plan
from ferrule.conversation import Image

if TYPE_CHECKING:
    from ferrule.analysis.data.table import Table
    from ferrule.analysis.data.task_value import TaskValue
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.numbers.matching import NumberLink
    from ferrule.analysis.python_executor.error_context import ErrorContext
    from ferrule.analysis.python_executor.stages import ExtractedData, Methodology

_PACKAGES: Final = (
    "ferrule",
    "numpy",
    "pandas",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "matplotlib",
    "pyarrow",
    "duckdb",
)


def list_versions() -> dict[str, str]:
    """The versions of Python, ferrule, and the installed packages that model-written code computes with."""
    found = {"python": python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


StageType: TypeAlias = Literal[
    "data", "complexity", "plan", "task_execution", "iteration", "synthesis", "focused_answer"
]
TaskStatus: TypeAlias = Literal["done", "failed", "skipped", "cancelled"]
FailureClass: TypeAlias = Literal["syntax", "safety", "runtime", "check", "timeout", "model", "tool"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a task, and why it failed."""

    failure: FailureClass | None
    """The class of the failure; None if it succeeded."""
    message: str = ""
    """What went wrong, in a sentence or two."""
    temperature: float | None = None
    timeout: float | None = None
    """Seconds that it had."""
    code: str | None = None
    """The code of this attempt."""
    error_context: ErrorContext | None = None
    """What the next attempt was told of the error."""
    restart: int = 0
    """Which full restart of the Python task it belongs to, from 0."""


@dataclass(frozen=True, slots=True)
class ResultCheck:
    """A check of a result: what would make it wrong, and whether that is so."""

    description: str
    passed: bool | None
    """None if the check could not run, which says nothing of the result."""
    detail: str = ""
    """What the check found, or why it could not run."""
    kind: str = ""
    """`units`, `range`, `second_method` or `other`."""
    code: str = ""
    """The Python that was run."""

    @property
    def status(self) -> str:
        """How it came out, for a model and a person."""
        return {True: "passed", False: "FAILED", None: "could not run"}[self.passed]


@dataclass(frozen=True, slots=True)
class TaskExecution:
    """A task as it ran."""

    id: str
    tool: str
    task_query: str
    needs: tuple[str, ...] = ()
    status: TaskStatus = "done"
    result: str = ""
    """What models and people read: the result, or why there is none."""
    value: Any = None
    """The structured result as JSON data."""
    error: str | None = None
    """Why it has no result; None if it has one."""
    code: str | None = None
    """The code that gave the result; only `py_executor` has some, as all of the following."""
    methodology_data: Methodology | None = None
    """How it was computed."""
    extracted_data: ExtractedData | None = None
    """The values that it took from the task and its context."""
    functions: tuple[FunctionDoc, ...] = ()
    """Those that the model was shown."""
    output: str = ""
    """What the code printed."""
    figures: tuple[Image, ...] = ()
    """The figures that it left open."""
    checks: tuple[ResultCheck, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    """Every attempt, the successful one included."""
    notes: tuple[str, ...] = ()
    """What was changed without being asked, such as indentation that was repaired."""
    kept: TaskValue | None = field(default=None, repr=False, compare=False)
    """What later tasks see as `results["t1"]`."""
    started: float = 0.0
    """Seconds after the start of the analysis."""
    ended: float = 0.0
    calls: int = 0
    """Requests to models."""
    cost: float | None = 0.0
    """US dollars; None if the price of a model isn't known."""
    round: int = 0
    """Which round of plans it belongs to, from 0."""


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A plan that was chosen, and what it was chosen from."""

    plan: Plan
    candidates: tuple[Plan, ...] = ()
    problems: tuple[str, ...] = ()
    """What was wrong with the candidates that weren't considered."""
    reason: str = ""
    """Why this one was chosen."""
    round: int = 0


@dataclass(frozen=True, slots=True)
class FocusedAnswer:
    """The answer as one value."""

    answer_type: str
    """number, text, yes_no, date, list, table or none."""
    answer_value: Any
    """The value, as JSON data."""
    formatted_answer: str
    """The value as it would be said."""
    numbers: tuple[NumberLink, ...] = ()
    """Where each number of the formatted answer comes from."""
    not_computed: tuple[str, ...] = ()
    """What of the value is in no output, a sentence each; empty if all of it is in one."""


@dataclass(frozen=True, slots=True)
class OutputEntry:
    """One entry of an analysis: which kind of stage made it, and what it made."""

    stage_type: StageType
    data: Any
    """For `task_execution` a `TaskExecution`, for `plan` a `PlanRecord`, for `focused_answer` a `FocusedAnswer`."""


@dataclass(slots=True)
class AnalysisResult:
    """A question, what was done about it, and its answer."""

    question: str
    tables: tuple[Table, ...] = ()
    """The tables that were given, with their profiles."""
    output_entries: list[OutputEntry] = field(default_factory=list)
    answer: str = ""
    """The answer, a text of some paragraphs. Without a synthesis, what the finished tasks found."""
    key_findings: tuple[str, ...] = ()
    focused_answer: FocusedAnswer | None = None
    numbers: tuple[NumberLink, ...] = ()
    """Where each number of the answer comes from."""
    finding_numbers: tuple[tuple[NumberLink, ...], ...] = ()
    """The same for each of the key findings."""
    stopped: str | None = None
    """Why the result is partial, in a sentence; None if it is complete."""
    notices: tuple[str, ...] = ()
    """What went other than was asked, such as a setting that a model refused."""
    usage: Spending = field(default_factory=Spending)
    shared: str = ""
    """What models were shown of the data."""
    earlier: tuple[TaskExecution, ...] = ()
    """The tasks of the analyses that this one continues, whose results its own may use."""
    versions: Mapping[str, str] = field(default_factory=list_versions)
    """What the code of its tasks ran with, Python and packages by name: for a replay, those of the recorded run; empty
    if the recording hasn't got them."""

    @property
    def tasks(self) -> tuple[TaskExecution, ...]:
        """The tasks, in the order in which they ended."""
        return tuple(entry.data for entry in self.output_entries if entry.stage_type == "task_execution")

    @property
    def rounds(self) -> tuple[PlanRecord, ...]:
        """The plans, one for each round."""
        return tuple(entry.data for entry in self.output_entries if entry.stage_type == "plan")

    @property
    def plan(self) -> Plan:
        """The tasks of all rounds, as one plan."""
        plans = [record.plan for record in self.rounds]
        tasks = tuple(task for plan in plans for task in plan.tasks)
        return Plan(approach=plans[0].approach if plans else "", tasks=tasks)

    @property
    def is_complete(self) -> bool:
        """Whether the analysis ran to its end."""
        return self.stopped is None

    def __str__(self) -> str:
        findings = "\n".join(f"- {finding}" for finding in self.key_findings)
        note = "" if self.stopped is None else f"(partial: {self.stopped})"
        return "\n\n".join(filter(None, (self.answer, findings, note)))
