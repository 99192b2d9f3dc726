"""Whether an analysis goes on after a round of tasks, and with which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from ferrule.analysis.asking import WHOLE, Asker, StageKey
from ferrule.analysis.events import Notice
from ferrule.analysis.plan import Plan, validate_plan
from ferrule.analysis.planning.briefing import Briefing, describe_executions, list_problems
from ferrule.analysis.planning.candidates import ProposedPlan, ProposedTask, make_plan
from ferrule.analysis.result import TaskExecution
from ferrule.analysis.settings import AnalysisSettings
from ferrule.errors import OutputInvalid

INSTRUCTIONS = """\
You decide whether an analysis has to go on. Stop if the results answer the question, or if more tasks wouldn't change
the answer. Go on only for something that is missing, contradictory or failed a check, and give the tasks that settle
it: ids that continue the numbers, a tool, a query, and the results that they need. Never repeat a task that has a
result; a task that failed may be asked in another way."""


class IterationDecision(BaseModel):
    """Whether to stop or to go on, and with which tasks."""

    decision: Literal["stop", "continue"]
    reason: str = ""
    tasks: list[ProposedTask] = Field(default_factory=list)


async def decide_iteration(
    asker: Asker,
    briefing: Briefing,
    settings: AnalysisSettings,
    executions: Sequence[TaskExecution],
    round_number: int,
    most: int,
) -> tuple[IterationDecision, Plan | None]:
    """Ask whether to go on after a round, counted from 1; returns the plan of the next round, None to stop.

    Tasks that can't run are sent back with what is wrong; if that doesn't help, the analysis stops here, and a notice
    says so. Raises `ModelError` and `LimitReached`.
    """
    stage, problems = f"iteration_{round_number}", [""]
    asked = f"{briefing.write()}\n\n{briefing.write_tools()}\n\nTasks so far:\n\n{describe_executions(executions)}"
    decision = IterationDecision(decision="stop", reason="the model couldn't say how to go on")
    for attempt in range(settings.plan_retries + 1):
        sent_back = f"\n\nYour tasks couldn't run:\n{list_problems(problems)}" if attempt else ""
        try:
            decision = await asker.ask(
                StageKey(WHOLE, stage, attempt),
                INSTRUCTIONS,
                f"{asked}\n\nGive at most {most} new tasks.{sent_back}",
                IterationDecision,
                temperature=settings.temperature_for(settings.planning_temperature, attempt),
                timeout=settings.timeout_for("", attempt),
            )
        except (OutputInvalid, TimeoutError) as error:
            problems = [str(error)]
            continue
        if decision.decision == "stop":
            return decision, None
        plan = make_plan(ProposedPlan(approach=decision.reason, tasks=decision.tasks), briefing.tools)
        earlier = [execution.id for execution in executions]
        problems = validate_plan(plan, briefing.tools, earlier, most) + _find_repetitions(plan, executions)
        problems += _find_missing_results(plan, executions)
        if not problems:
            return decision, plan
    asker.emit(Notice(f"the analysis doesn't go on: {' '.join(problems)}"))
    return decision.model_copy(update={"decision": "stop"}), None


def _find_repetitions(plan: Plan, executions: Sequence[TaskExecution]) -> list[str]:
    known = {(one.tool, _fold(one.task_query)): one for one in executions}
    return [
        f"Task {task.id} asks what {earlier.id} was asked: "
        + ("use its result." if earlier.status == "done" else "ask in another way.")
        for task in plan.tasks
        if (earlier := known.get((task.tool, _fold(task.query)))) is not None
    ]


def _find_missing_results(plan: Plan, executions: Sequence[TaskExecution]) -> list[str]:
    without = {one.id for one in executions if one.status != "done"}
    return [
        f"Task {task.id} needs {need}, which has no result: leave that out."
        for task in plan.tasks
        for need in task.needs
        if need in without
    ]


def _fold(query: str) -> str:
    return " ".join(query.casefold().split())
