"""One analysis from its question to its answer: data, complexity, plan, rounds of tasks, synthesis, focused answer.

Whatever ends it, the result is valid, and says why it is partial.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ferrule.analysis.asking import Asker, check_model_names, explain_failure
from ferrule.analysis.events import (
    AnalysisEvent,
    AnalysisFinished,
    DataShared,
    EntryAdded,
    Notice,
    PlanMade,
    TaskFinished,
)
from ferrule.analysis.limits import LimitReached
from ferrule.analysis.numbers.focused import check_focused_answer
from ferrule.analysis.numbers.matching import MOST_NUMBERS, NumberLink, SourceIndex
from ferrule.analysis.numbers.sources import collect_sources
from ferrule.analysis.plan import Plan, PlanTask, validate_plan
from ferrule.analysis.planning.answers import Synthesis, focus_answer, synthesize, write_account
from ferrule.analysis.planning.briefing import Briefing, describe_executions
from ferrule.analysis.planning.candidates import choose_plan
from ferrule.analysis.planning.complexity import Complexity, assess_complexity, count_tasks
from ferrule.analysis.planning.iteration import decide_iteration
from ferrule.analysis.recording import Recording
from ferrule.analysis.result import AnalysisResult, OutputEntry, PlanRecord, StageType, TaskExecution
from ferrule.analysis.running.scheduler import end_without_result, run_tasks
from ferrule.analysis.running.tasks import TaskRunner
from ferrule.analysis.running.toolbox import Toolbox
from ferrule.analysis.settings import AnalysisSettings
from ferrule.errors import FerruleError, OutputInvalid, PolicyError, RegistryError, SettingsError, ToolDefinitionError
from ferrule.tools.registry import ToolLike

if TYPE_CHECKING:
    from ferrule.analysis.data.table import Table

logger = logging.getLogger(__name__)
ApprovePlan: TypeAlias = Callable[[Plan], Awaitable[Plan | None]]

RUNNING = "the analysis is still running"
"""Why a result is partial before the analysis ends."""
CANCELLED = "the analysis was stopped"
REFUSED = "the plan was not approved"
_RAISED = (PolicyError, RegistryError, SettingsError, ToolDefinitionError)
"""What the caller did wrong. Every other error of ferrule's leaves a partial result."""


@dataclass(frozen=True, slots=True)
class SharedData:
    """The tables of an analysis, and what models are shown of each."""

    tables: tuple[Table, ...] = ()
    text: str = ""
    profiles: dict[str, str] = field(default_factory=dict)


class Analysis:
    """One analysis. `result` is valid at every moment."""

    def __init__(
        self,
        question: str,
        settings: AnalysisSettings,
        asker: Asker,
        data: SharedData,
        *,
        tools: Sequence[ToolLike] = (),
        approve_plan: ApprovePlan | None = None,
        continues: AnalysisResult | None = None,
        recording: Recording | None = None,
    ) -> None:
        self.settings = settings
        self.data = data
        self._tools = tools
        self._recording = recording or Recording()
        self._approve_plan = approve_plan
        self._pass_on = asker.emit
        self._asker = replace(asker, emit=self.report)
        self._earlier = () if continues is None else continues.tasks
        self._ended: dict[str, TaskExecution] = {one.id: one for one in self._earlier}
        self._briefing = Briefing(question, data.text, earlier=_describe_earlier(continues))
        self.error: FerruleError | None = None
        """The error that ended the planning or a round, if one did."""
        versions = self._recording.find_versions()
        self.result = AnalysisResult(question, data.tables, stopped=RUNNING, shared=data.text, versions=versions)
        if continues is not None:
            known = {one.id for one in continues.tasks}
            began = sorted(continues.tasks, key=lambda task: (task.round, task.started, task.id))
            self.result.earlier = (*(one for one in continues.earlier if one.id not in known), *began)

    def report(self, event: AnalysisEvent) -> None:
        """Keep what belongs to the result, and pass the event on."""
        if isinstance(event, Notice):
            self.result.notices = (*self.result.notices, event.text)
        self.result.usage = self._asker.limits.sum_up()
        self._pass_on(event)

    async def run(self) -> AnalysisResult:
        """Run to the end, a limit or a failure. Raises `SettingsError` for tools that can't be used together."""
        try:
            self._add("data", self.data.tables)
            self.report(DataShared(self.data.text))
            async with Toolbox(self._asker, self.settings, self.data.tables, self._tools, self._recording) as toolbox:
                self._briefing = replace(self._briefing, tools=toolbox.describe())
                check_model_names(self.settings.models, self._briefing.tools)
                for sentence in toolbox.list_notices():
                    self.report(Notice(sentence))
                # Whoever reads the events has seen what will be shared before anything is sent.
                await asyncio.sleep(0)
                stopped = await self._plan_and_run(toolbox)
            await self._answer(stopped)
        except asyncio.CancelledError:
            self._end(CANCELLED, self._write_account(CANCELLED))
            raise
        self.report(AnalysisFinished(self.result))
        return self.result

    async def _plan_and_run(self, toolbox: Toolbox) -> str | None:
        """Plan, and run rounds of tasks until the question is answered; returns why it ended before that."""
        limits = self._asker.limits
        try:
            async with asyncio.timeout(limits.find_seconds_left()) as time:
                complexity = await self._assess()
                least, most = count_tasks(complexity, self.settings)
                record = await choose_plan(
                    self._asker, self._briefing, self.settings, (least, most), tuple(self._ended)
                )
                time.reschedule(None)
                with limits.paused():
                    plan = await self._approve(record.plan)
                left = limits.find_seconds_left()
                time.reschedule(None if left is None else asyncio.get_running_loop().time() + left)
                if plan is None:
                    return REFUSED
                await self._run_rounds(replace(record, plan=plan), toolbox, most)
        except TimeoutError as error:
            return f"the limit of {limits.seconds:g} seconds was reached" if time.expired() else str(error)
        except FerruleError as error:
            self.error = error
            return explain_end(error)
        return None

    async def _assess(self) -> Complexity:
        """Assess the complexity; a moderate one if the model can't say."""
        try:
            complexity = await assess_complexity(self._asker, self._briefing, self.settings)
        except (OutputInvalid, TimeoutError) as error:
            self.report(
                Notice(f"the complexity couldn't be assessed, so it counts as moderate: {explain_failure(error)}")
            )
            complexity = Complexity(level="moderate", reason="it couldn't be assessed")
        self._add("complexity", complexity)
        return complexity

    def check_plan(self, plan: Plan) -> list[str]:
        """What is wrong with a plan of a person, who may add tasks; empty if it can run."""
        return validate_plan(plan, self._briefing.tools, tuple(self._ended))

    async def _approve(self, plan: Plan) -> Plan | None:
        """Have a person approve or edit the plan. Raises `SettingsError` for an edited one that can't run."""
        if self._recording.has_approved_plan:
            approved = self._recording.take_approved_plan()
        elif self._approve_plan is None:
            return plan
        else:
            approved = await self._approve_plan(plan)
        if not isinstance(approved, Plan | None):
            raise SettingsError(f"approve_plan must return a Plan, or None to refuse it, not {approved!r:.100}")
        self._recording.keep_approved_plan(approved)
        if approved is None or approved == plan:
            return approved
        problems = self.check_plan(approved)
        if problems:
            raise SettingsError(f"the edited plan can't run: {' '.join(problems)}")
        return approved

    async def _run_rounds(self, record: PlanRecord, toolbox: Toolbox, most: int) -> None:
        """Run the plan, and those of further rounds as long as the model asks for them and the limits allow it."""
        iterations = self.settings.mode_limits.iterations
        for number in range(iterations):
            self._add("plan", record)
            self.report(PlanMade(record.plan, number))
            await self._run_round(record.plan.tasks, toolbox, number)
            self._asker.limits.check()
            if number + 1 == iterations:
                return
            decision, plan = await decide_iteration(
                self._asker, self._briefing, self.settings, self._executions, number + 1, most
            )
            self._add("iteration", decision)
            if plan is None:
                return
            record = PlanRecord(plan, (plan,), (), decision.reason, number + 1)

    async def _run_round(self, tasks: Sequence[PlanTask], toolbox: Toolbox, number: int) -> None:
        runner = TaskRunner(self._asker, self.settings, toolbox, self._briefing, self._ended, number)
        concurrency = self.settings.concurrency
        recording = toolbox.recording
        # What was stopped when it was recorded is so again, whatever of it is recorded.
        cancelled = [task for task in tasks if task.id in recording.cancelled]
        going_on = [task for task in tasks if task.id not in recording.cancelled]
        await run_tasks(going_on, runner.run, self._end_task, concurrency=concurrency, earlier=dict(self._ended))
        for task in cancelled:
            self._end_task(end_without_result(task, "cancelled", recording.cancelled[task.id]))
        if cancelled and recording.source is not None:
            raise LimitReached("recording", recording.source.explain_end("its tasks were stopped"))

    def _end_task(self, execution: TaskExecution) -> None:
        self._ended[execution.id] = execution
        self._add("task_execution", execution)
        self.report(TaskFinished(execution))

    async def _answer(self, stopped: str | None) -> None:
        """Have the answer written from the results; without one, say what was found and why there is none."""
        executions = self._executions
        done = [one for one in executions if one.status == "done"]
        if not done or stopped == REFUSED:
            reason = stopped or "no task gave a result"
            self._end(reason, self._write_account(reason))
            return
        try:
            synthesis = await synthesize(self._asker, self._briefing, self.settings, executions, stopped or "")
        except Exception as error:  # noqa: BLE001 - the results shouldn't be lost with the answer
            reason = stopped or explain_end(error)
            self._end(reason, self._write_account(reason))
            return
        self._add("synthesis", synthesis)
        self.result.key_findings = tuple(synthesis.key_findings)
        sources = SourceIndex(collect_sources(self.result.question, self.data.profiles, executions))
        # In a thread, because long outputs take seconds, in which other tasks of the event loop should go on.
        found = await asyncio.to_thread(_match_all, sources, (*synthesis.key_findings, synthesis.answer))
        self.result.finding_numbers = found[:-1]
        if any(len(numbers) == MOST_NUMBERS for numbers in found):
            self.report(Notice(f"only the first {MOST_NUMBERS:,} numbers of the answer or a finding were matched"))
        await self._focus(synthesis, sources)
        self._end(stopped, synthesis.answer, found[-1])

    async def _focus(self, synthesis: Synthesis, sources: SourceIndex) -> None:
        try:
            focused = await focus_answer(self._asker, self._briefing, self.settings, self._executions, synthesis)
        except Exception as error:  # noqa: BLE001 - as in `_answer`
            self.report(Notice(f"the answer couldn't be given as one value: {explain_end(error)}"))
            return
        focused = await asyncio.to_thread(check_focused_answer, focused, self.result.question, sources)
        self.result.focused_answer = focused
        self._add("focused_answer", focused)

    def _end(self, stopped: str | None, answer: str, numbers: Iterable[NumberLink] = ()) -> None:
        """Complete the result. An account quotes errors, and results by task: its numbers need no sources."""
        self.result.answer, self.result.stopped = answer, stopped
        self.result.numbers = tuple(numbers)
        self.result.usage = self._asker.limits.sum_up()

    def _write_account(self, reason: str) -> str:
        return write_account(self._executions, reason, [one.id for one in self._earlier])

    def _add(self, stage_type: StageType, data: Any) -> None:
        entry = OutputEntry(stage_type, data)
        self.result.output_entries.append(entry)
        self.report(EntryAdded(entry))

    @property
    def _executions(self) -> list[TaskExecution]:
        """The tasks that ended, in the order of the plans: what a model is shown doesn't depend on which was faster."""
        planned = (task.id for record in self.result.rounds for task in record.plan.tasks)
        names = dict.fromkeys((*(one.id for one in self._earlier), *planned))
        return [self._ended[name] for name in names if name in self._ended]


def _match_all(sources: SourceIndex, texts: Iterable[str]) -> tuple[tuple[NumberLink, ...], ...]:
    return tuple(tuple(sources.match(text)) for text in texts)


def _describe_earlier(continues: AnalysisResult | None) -> str:
    if continues is None:
        return ""
    return f"{continues.question}\n{continues.answer}\n\n{describe_executions(continues.tasks)}"


def explain_end(error: Exception) -> str:
    """The reason why an analysis is partial. Raises the error if the caller was wrong."""
    if isinstance(error, _RAISED):
        raise error
    reason = " ".join(str(error).split())
    if isinstance(error, FerruleError | TimeoutError):
        return reason
    logger.warning("an analysis ended with an unexpected error", exc_info=error)
    return f"an unexpected {type(error).__name__}: {reason}"
