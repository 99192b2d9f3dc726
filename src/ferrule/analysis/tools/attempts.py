"""The attempt of a task that a call of one of the analyst's tools is: its key, temperature and context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ferrule.analysis.asking import Asker, StageKey
from ferrule.analysis.settings import AnalysisSettings
from ferrule.errors import FerruleError, ToolFailed
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from ferrule.analysis.data.task_value import TaskValue
    from ferrule.analysis.python_executor.outcome import PythonOutcome

Output = TypeVar("Output")


@dataclass(slots=True)
class TaskAttempt:
    """One attempt of a task. It is the `run_state` of the scope that the task's tool is given."""

    task: str
    number: int = 0
    """Counted from 0."""
    context: str = ""
    """The results that the task needs, and the data as far as models may be shown them."""
    results: Mapping[str, TaskValue] = field(default_factory=dict)
    """The values of the tasks that it needs, for code."""
    failure: Exception | None = None
    """What ended the attempt, for whoever decides on another one."""
    outcome: PythonOutcome | None = None
    """What `py_executor` left besides its result."""

    def write_question(self, query: str) -> str:
        """The task with what is known for it, as a model is asked."""
        return "\n\n".join(filter(None, (f"Task:\n{query}", self.context)))


def find_attempt(scope: CallScope) -> TaskAttempt:
    """The attempt that a call belongs to; for a call outside of a plan, one with the call's id."""
    if isinstance(scope.run_state, TaskAttempt):
        return scope.run_state
    return TaskAttempt(scope.call.id if scope.call else "call")


async def ask_for_tool(
    asker: Asker,
    settings: AnalysisSettings,
    tool: str,
    instructions: str,
    query: str,
    output: type[Output],
    base_temperature: float,
    scope: CallScope,
) -> Output:
    """Ask the model of a tool its one question. Raises `ToolFailed` with the reason if there is no answer.

    The timeout is the executor's.
    """
    attempt = find_attempt(scope)
    try:
        return await asker.for_tool(tool).ask(
            StageKey(attempt.task, tool, attempt.number),
            instructions,
            attempt.write_question(query),
            output,
            temperature=settings.temperature_for(base_temperature, attempt.number),
        )
    except (FerruleError, TimeoutError) as error:
        attempt.failure = error
        raise ToolFailed(str(error)) from error
