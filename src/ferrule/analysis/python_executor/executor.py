"""`py_executor`: the stages of a Python task, from its query to a result.

    methodology → functions → extraction → tool query → code → indentation → syntax → safety → sandbox → result checks

Code that fails goes back to the model with what is known of the error, by the limits of its class; when a limit is used
up, the task starts again from its tool query. A result whose checks fail is kept: if no later attempt is better, it is
returned, and says that they failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ferrule.analysis.data.task_value import TaskValue, describe_excess
from ferrule.analysis.python_executor.outcome import PythonOutcome
from ferrule.analysis.python_executor.task_run import PythonTask, TaskRun, TaskServices
from ferrule.analysis.settings import PYTHON

if TYPE_CHECKING:
    from ferrule.analysis.asking import Asker
    from ferrule.analysis.python_executor.function_lookup import FunctionSource
    from ferrule.analysis.python_executor.runs import CodeSession
    from ferrule.analysis.settings import AnalysisSettings


class PythonExecutor:
    """Runs the Python tasks of one analysis. Several may run at the same time."""

    def __init__(self, asker: Asker, settings: AnalysisSettings, data: CodeSession, functions: FunctionSource) -> None:
        self._services = TaskServices(asker.for_tool(PYTHON), settings, data, functions)
        self._runs: Counter[str] = Counter()

    async def run(self, task: str, query: str, context: str, results: Mapping[str, TaskValue]) -> PythonOutcome:
        """Run one task: `task` is its id, `query` what it is to compute, `context` what is known: data and results.

        Never raises for what the model or its code did wrong: the outcome has the `error`. Raises `ModelError` if the
        model can't be asked, and `LimitReached` at a limit of the analysis, unless there is a result already. A task
        that is run again goes on with the temperatures and timeouts where it ended.
        """
        excess = describe_excess(results)
        if excess is not None:  # no code could mend it, so none is asked for
            return PythonOutcome(error=excess, is_final=True)
        runs = self._runs[task]
        self._runs[task] += 1
        return await TaskRun(self._services, PythonTask(task, query, context, results), first_restart=runs).run()
