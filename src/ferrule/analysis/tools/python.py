"""`py_executor` as a tool: the stages of `python_executor/`, started when the first task needs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from ferrule.analysis.settings import PYTHON
from ferrule.analysis.tools.attempts import find_attempt
from ferrule.conversation import ToolOutput
from ferrule.errors import FerruleError, ToolFailed
from ferrule.tools.decorator import Tool
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from ferrule.analysis.python_executor.executor import PythonExecutor

DESCRIPTION = (
    "Writes Python code for a task and runs it in a sandbox: statistics, data analysis, mathematics, simulation, "
    "charts. It has the tables of the data, the results of the tasks that it needs, and no files or network."
)


def make_python_tool(open_executor: Callable[[], Awaitable[PythonExecutor]]) -> Tool[..., Any]:
    """The tool `py_executor`; `open_executor` returns the executor of the analysis, and may start it."""

    async def py_executor(query: Annotated[str, "What to compute"], scope: CallScope) -> ToolOutput:
        attempt = find_attempt(scope)
        try:
            executor = await open_executor()
            outcome = await executor.run(attempt.task, query, attempt.context, attempt.results)
        except (FerruleError, TimeoutError) as error:
            attempt.failure = error
            raise ToolFailed(str(error)) from error
        attempt.outcome = outcome
        if outcome.error is not None:
            raise ToolFailed(outcome.error)
        return ToolOutput(outcome.result, outcome.value)

    return Tool.from_callable(py_executor, name=PYTHON, description=DESCRIPTION, read_only=True, idempotent=False)
