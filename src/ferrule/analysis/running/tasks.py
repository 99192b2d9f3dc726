"""Runs one task: gathers the results that it needs, calls its tool by the executor, and tries again what may work."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ferrule.analysis.asking import Asker
from ferrule.analysis.data.task_value import TaskValue
from ferrule.analysis.events import TaskRetried, TaskStarted
from ferrule.analysis.limits import LimitReached
from ferrule.analysis.plan import PlanTask
from ferrule.analysis.planning.briefing import Briefing, describe_execution
from ferrule.analysis.result import Attempt, FailureClass, TaskExecution
from ferrule.analysis.running.scheduler import end_without_result
from ferrule.analysis.running.toolbox import Toolbox
from ferrule.analysis.settings import KNOWLEDGE, NEWS, PYTHON, AnalysisSettings
from ferrule.analysis.stages import StageKey, current_task
from ferrule.analysis.tools.added import run_added_tool
from ferrule.analysis.tools.attempts import TaskAttempt
from ferrule.conversation import ToolCall, ToolResult
from ferrule.errors import FerruleError, ModelError, OutputInvalid, ProviderError
from ferrule.execution import Executor, Pending
from ferrule.tools.scope import CallScope

logger = logging.getLogger(__name__)
_WITHOUT_DATA = (KNOWLEDGE, NEWS)
"""The tools whose tasks aren't shown the data: they have no use for them."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one attempt gave: a result, or why there is none."""

    text: str = ""
    value: Any = None
    failure: FailureClass | None = None
    is_final: bool = False
    """Whether another attempt couldn't succeed."""


@dataclass(frozen=True, slots=True)
class TaskRunner:
    """Runs the tasks of one analysis; several may run at the same time."""

    asker: Asker
    settings: AnalysisSettings
    toolbox: Toolbox
    briefing: Briefing
    ended: Mapping[str, TaskExecution]
    """The tasks that ended, by id."""
    round: int = 0

    async def run(self, task: PlanTask) -> TaskExecution:
        """Run a task, and try again what may succeed. Never raises for what a tool or a model did wrong."""
        limits = self.asker.limits
        started = limits.elapsed
        self.asker.emit(TaskStarted(task, started))
        current_task.set(task.id)
        try:
            execution = await self._try(task)
        except asyncio.CancelledError:
            # The scheduler cancels and goes on cancelling; the task keeps its times.
            execution = end_without_result(task, "cancelled", "the analysis was stopped while it ran")
            return replace(execution, started=started, ended=limits.elapsed)
        except Exception as error:  # the other tasks, and their results, shouldn't be lost with this one
            logger.warning("task %s ended with an unexpected error", task.id, exc_info=error)
            execution = end_without_result(task, "failed", f"an unexpected {type(error).__name__}: {error}")
        spent = limits.sum_up(task.id)
        return replace(
            execution,
            started=started,
            ended=limits.elapsed,
            calls=spent.calls,
            cost=spent.cost,
            round=self.round,
        )

    async def _try(self, task: PlanTask) -> TaskExecution:
        attempts: list[Attempt] = []
        number = 0
        while True:
            attempt = TaskAttempt(task.id, number, self._write_context(task), self._collect_values(task))
            timeout = self.settings.timeout_for(task.tool, number)
            answer = await self._attempt(task, attempt, timeout)
            attempts += _list_attempts(attempt, answer, timeout, self._find_temperature(task, number))
            if answer.failure is None or answer.is_final or number >= self.settings.retries_for(task.tool):
                return _make_execution(task, answer, attempt, attempts)
            number += 1
            self.asker.emit(
                TaskRetried(
                    task.id,
                    number,
                    answer.failure,
                    answer.text,
                    self._find_temperature(task, number),
                    self.settings.timeout_for(task.tool, number),
                )
            )

    async def _attempt(self, task: PlanTask, attempt: TaskAttempt, timeout: int) -> _Answer:
        try:
            self.asker.limits.check()
        except LimitReached as error:
            return _Answer(str(error), failure="tool", is_final=True)
        added = self.toolbox.added.get(task.tool)
        if added is not None:
            try:
                found = await run_added_tool(
                    self.asker, self.settings, added, task.query, attempt, timeout, self.toolbox.recording
                )
            except (FerruleError, TimeoutError) as error:
                return _explain(error, str(error))
            return _Answer(found.answer, found.model_dump(mode="json"))
        return await self._call_tool(task, attempt, timeout)

    async def _call_tool(self, task: PlanTask, attempt: TaskAttempt, timeout: int) -> _Answer:
        """Call one of the analyst's own tools."""
        name = task.id if attempt.number == 0 else f"{task.id}_{attempt.number}"
        call = ToolCall(name, task.tool, json.dumps({"query": task.query}, ensure_ascii=False))
        try:
            result = await self._answer_call(call, attempt, timeout)
        except LimitReached as error:
            return _explain(error, str(error))
        if isinstance(result, Pending):
            return _Answer("nobody could be asked to allow it", failure="tool", is_final=True)
        if not result.is_error:
            return _Answer(result.text, result.data)
        return _explain_result(result, attempt, timeout)

    async def _answer_call(self, call: ToolCall, attempt: TaskAttempt, timeout: int) -> ToolResult | Pending:
        """Run a call by the executor; one to the network is recorded, or taken from the recording."""
        key, recording = StageKey(attempt.task, call.name, attempt.number), self.toolbox.recording
        if call.name == NEWS and recording.source is not None:
            return recording.take_result(key)
        options = self.asker.options
        executor = Executor(
            self.toolbox.own,
            policy=options.policy,
            approver=options.approver,
            journal=options.journal,
            default_timeout=timeout,
        )
        result = await executor.run(call, CallScope(run_state=attempt))
        if call.name == NEWS and isinstance(result, ToolResult):
            recording.add_result(key, result)
        return result

    def _write_context(self, task: PlanTask) -> str:
        """What the task's tool is shown besides the query."""
        needed = [describe_execution(self.ended[need]) for need in task.needs]
        parts = [] if task.tool in _WITHOUT_DATA or not self.briefing.data else [f"Data:\n{self.briefing.data}"]
        if needed:
            parts.append("Results of the tasks that it needs:\n\n" + "\n\n".join(needed))
        return "\n\n".join(parts)

    def _collect_values(self, task: PlanTask) -> dict[str, TaskValue]:
        """The values of the tasks that it needs, as code sees them; nothing for a tool that runs none."""
        if task.tool != PYTHON:
            return {}
        needed = [self.ended[need] for need in task.needs]
        return {one.id: TaskValue(one.value) if one.kept is None else one.kept for one in needed}

    def _find_temperature(self, task: PlanTask, number: int) -> float | None:
        bases = {
            KNOWLEDGE: self.settings.deep_knowledge_temperature,
            PYTHON: self.settings.python_temperature,
            NEWS: None,
        }
        base = bases.get(task.tool, self.settings.reasoning_temperature)
        return None if base is None else self.settings.temperature_for(base, number)


def _explain_result(result: ToolResult, attempt: TaskAttempt, timeout: int) -> _Answer:
    """Why a call has no result, from what its tool noted."""
    reason = result.text.removeprefix("error: ")
    # A recorded answer that took too long raises where the executor stopped the tool; Python has timeouts of its own.
    was_slow = isinstance(attempt.failure, TimeoutError) and result.name != PYTHON
    if was_slow or result.status == "timeout":
        return _Answer(f"it took longer than {timeout} s", failure="timeout")
    if attempt.failure is not None:
        return _explain(attempt.failure, reason)
    is_final = attempt.outcome is not None and attempt.outcome.is_final
    return _Answer(reason, failure="tool", is_final=is_final or result.status in ("denied", "invalid", "unknown_tool"))


def _explain(error: Exception, reason: str) -> _Answer:
    """Why an attempt failed, and whether another one may succeed."""
    if isinstance(error, TimeoutError):
        return _Answer(reason, failure="timeout")
    if isinstance(error, LimitReached):
        return _Answer(reason, failure="tool", is_final=True)
    if isinstance(error, ProviderError):
        is_refused = error.status is not None and 400 <= error.status < 500 and error.status not in (408, 429)
        return _Answer(reason, failure="model", is_final=is_refused)
    # What a model wrote may be better the next time; anything else is a matter of the machine or the settings.
    if isinstance(error, OutputInvalid):
        return _Answer(reason, failure="model")
    return _Answer(reason, failure="model" if isinstance(error, ModelError) else "tool", is_final=True)


def _list_attempts(attempt: TaskAttempt, answer: _Answer, timeout: int, temperature: float | None) -> Sequence[Attempt]:
    """The attempts that one call was: those of the Python stages, or itself."""
    if attempt.outcome is not None and attempt.outcome.attempts:
        return tuple(attempt.outcome.attempts)
    message = answer.text if answer.failure else ""
    return (Attempt(answer.failure, message, temperature, timeout),)


def _make_execution(
    task: PlanTask, answer: _Answer, attempt: TaskAttempt, attempts: Sequence[Attempt]
) -> TaskExecution:
    if answer.failure is None:
        execution = TaskExecution(task.id, task.tool, task.query, task.needs, "done", answer.text, answer.value)
    else:
        execution = end_without_result(task, "failed", answer.text)
    execution = replace(execution, attempts=tuple(attempts))
    outcome = attempt.outcome
    if outcome is None:
        return execution
    return replace(
        execution,
        value=outcome.value,
        code=outcome.code,
        methodology_data=outcome.methodology,
        extracted_data=outcome.extracted,
        functions=outcome.functions,
        output=outcome.output,
        figures=outcome.figures,
        checks=outcome.checks,
        notes=outcome.notes,
        kept=outcome.kept,
    )
