"""Runs the tasks of a validated plan: each as soon as all that it needs have results, several at the same time.

A failed task ends only those that need it, each with a reason. This file knows neither models nor tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ferrule.analysis.plan import PlanTask
from ferrule.analysis.result import TaskExecution, TaskStatus

RunTask = Callable[[PlanTask], Coroutine[Any, Any, TaskExecution]]
OnEnd = Callable[[TaskExecution], None]


async def run_tasks(
    tasks: Sequence[PlanTask],
    run: RunTask,
    on_end: OnEnd,
    *,
    concurrency: int = 8,
    earlier: Mapping[str, TaskExecution] | None = None,
) -> list[TaskExecution]:
    """Run tasks, and return their executions in the order in which they ended.

    `run` never raises for what a tool did wrong; `earlier` are finished tasks that these may need. `on_end` is called
    with each execution, once for each task, also on cancellation: tasks that ran are then `cancelled`, those that
    hadn't begun too, before the `CancelledError` goes on.
    """
    state = _Schedule(tuple(tasks), dict(earlier or {}), on_end)
    running: dict[asyncio.Task[TaskExecution], PlanTask] = {}
    try:
        while True:
            state.skip_hopeless()
            for task in state.list_ready()[: max(0, concurrency - len(running))]:
                state.started.add(task.id)
                running[asyncio.create_task(run(task), name=f"task {task.id}")] = task
            if not running:
                return state.executions
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            # In the order of the plan, so that tasks that end together are listed alike in each run.
            for ended in sorted(done, key=lambda one: state.find_place(running[one])):
                state.end(ended.result())
                del running[ended]
    except BaseException:
        await _cancel(running)
        for ended, task in running.items():
            # A task that ended while it was being cancelled has its result.
            finished = None if ended.cancelled() or ended.exception() else ended.result()
            state.end(finished or end_without_result(task, "cancelled", "the analysis was stopped while it ran"))
        for task in state.list_waiting():
            state.end(end_without_result(task, "cancelled", "the analysis was stopped before it began"))
        raise


def end_without_result(task: PlanTask, status: TaskStatus, error: str) -> TaskExecution:
    """The execution of a task that has no result, with the reason."""
    return TaskExecution(task.id, task.tool, task.query, task.needs, status, result=f"No result: {error}", error=error)


@dataclass(slots=True)
class _Schedule:
    """What ended, what runs, and what that means for the others."""

    tasks: tuple[PlanTask, ...]
    ended: dict[str, TaskExecution]
    on_end: OnEnd
    started: set[str] = field(default_factory=set)
    executions: list[TaskExecution] = field(default_factory=list)

    def end(self, execution: TaskExecution) -> None:
        self.ended[execution.id] = execution
        self.executions.append(execution)
        self.on_end(execution)

    def find_place(self, task: PlanTask) -> int:
        return self.tasks.index(task)

    def list_waiting(self) -> list[PlanTask]:
        return [task for task in self.tasks if task.id not in self.started and task.id not in self.ended]

    def list_ready(self) -> list[PlanTask]:
        return [task for task in self.list_waiting() if all(need in self.ended for need in task.needs)]

    def skip_hopeless(self) -> None:
        """End the tasks that need one without a result, and in turn those that need them."""
        while hopeless := [(task, reason) for task in self.list_ready() if (reason := self._find_missing(task))]:
            for task, reason in hopeless:
                self.end(end_without_result(task, "skipped", reason))

    def _find_missing(self, task: PlanTask) -> str:
        without = [self.ended[need] for need in task.needs if self.ended[need].status != "done"]
        return "; ".join(f"it needs {one.id}, which has no result{_explain(one)}" for one in without)


def _explain(execution: TaskExecution) -> str:
    """Why a task has no result; nothing for one that was skipped, whose reason is that of another task."""
    return "" if execution.status == "skipped" else f": {execution.error}"


async def _cancel(running: Mapping[asyncio.Task[TaskExecution], PlanTask]) -> None:
    for one in running:
        one.cancel()
    await asyncio.gather(*running, return_exceptions=True)
