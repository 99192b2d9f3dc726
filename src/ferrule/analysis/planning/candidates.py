"""Candidate plans, what is wrong with them, and the choice of one.

Plans are validated before they are compared. If none can run, the model is told why and plans again, a few times.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from ferrule.analysis.asking import WHOLE, Asker, StageKey, explain_failure
from ferrule.analysis.events import Notice
from ferrule.analysis.plan import Plan, PlanTask, validate_plan
from ferrule.analysis.planning.briefing import Briefing, list_problems
from ferrule.analysis.planning.routing import resolve_tool
from ferrule.analysis.result import PlanRecord
from ferrule.analysis.settings import AnalysisSettings
from ferrule.errors import FerruleError, OutputInvalid

INSTRUCTIONS = """\
You plan the analysis of a question as a graph of tasks. You don't answer it.
- Each task has an id (t1, t2, …), a tool, a query, and in `needs` the ids of the tasks whose results it needs.
- Tasks that don't need each other run at the same time: name only what is really needed.
- A query is a whole instruction: its tool sees the query and the results of `needs`, not the plan.
- Every number must come from py_executor or from a result: have numbers computed, never recalled or estimated, where
  there are data.
- Without data that a question asks about, plan only what can be done, and say in `approach` what is missing."""

EVALUATION = """\
You compare plans for the analysis of a question, and choose the best. Score each from 0 to 10 for coverage (does it
answer the whole question?), feasibility (can its tools do that, with these data?) and efficiency (no needless tasks,
nothing waits without need)."""


class ProposedTask(BaseModel):
    """A task as a model proposes it."""

    id: str
    tool: str = ""
    """A tool; if it is left out, the one that fits the query best."""
    query: str = ""
    needs: list[str] = Field(default_factory=list)


class ProposedPlan(BaseModel):
    """A plan as a model proposes it."""

    approach: str = ""
    tasks: list[ProposedTask] = Field(default_factory=list)


class CandidatePlans(BaseModel):
    """Plans to compare."""

    plans: list[ProposedPlan] = Field(min_length=1)


class PlanScore(BaseModel):
    """What one plan is worth."""

    plan: int
    """Its number, from 1."""
    coverage: float = Field(ge=0, le=10)
    feasibility: float = Field(ge=0, le=10)
    efficiency: float = Field(ge=0, le=10)
    comment: str = ""

    @property
    def total(self) -> float:
        """The sum of the scores."""
        return self.coverage + self.feasibility + self.efficiency


class PlanEvaluation(BaseModel):
    """Which plan is the best, and why."""

    model_config = ConfigDict(frozen=True)

    scores: list[PlanScore] = Field(default_factory=list)
    best: int
    """The number of the best plan, from 1."""
    reason: str = ""


class PlanningFailed(FerruleError):  # noqa: N818 - a state
    """No plan that can run was found; `problems` are those of the last ones, `reason` says them to people."""

    def __init__(self, problems: Sequence[str], reason: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__(f"no plan that can run was found: {reason or ' '.join(' '.join(problems).split())}")


@dataclass(frozen=True, slots=True)
class _Considered:
    """Candidates that can run, and what is wrong with the others."""

    plans: tuple[Plan, ...]
    problems: tuple[str, ...]
    reason: str = ""
    """What people are told in the place of the problems, whose words are a model's."""


async def choose_plan(
    asker: Asker, briefing: Briefing, settings: AnalysisSettings, tasks: tuple[int, int], earlier: Collection[str] = ()
) -> PlanRecord:
    """Have plans made until one can run, and the best of them chosen.

    `tasks` is how many tasks a plan should have at least, and may have at most; `earlier` are the ids of tasks that
    have results. Raises `PlanningFailed`, and what `Asker.ask` raises except for answers that aren't plans at all.
    """
    problems: tuple[str, ...] = ()
    reason = ""
    for attempt in range(settings.plan_retries + 1):
        considered = await _propose(asker, briefing, settings, tasks, earlier, attempt, problems)
        problems, reason = considered.problems, considered.reason
        if considered.plans:
            return await _choose(asker, briefing, settings, considered)
    raise PlanningFailed(problems, reason)


async def _propose(
    asker: Asker,
    briefing: Briefing,
    settings: AnalysisSettings,
    tasks: tuple[int, int],
    earlier: Collection[str],
    attempt: int,
    problems: Sequence[str],
) -> _Considered:
    """Have candidates made, and validate each."""
    wanted = settings.mode_limits.candidates
    least, most = tasks
    amount = "one plan" if wanted == 1 else f"{wanted} plans that differ in their approach"
    parts = [briefing.write(), briefing.write_tools(), f"Make {amount}, with {least} to {most} tasks each."]
    if earlier:
        parts.append(f"Results that tasks may need too: {', '.join(earlier)}. Continue the numbers after them.")
    if problems:
        parts.append(f"Your last plans couldn't run:\n{list_problems(problems)}\nMake new ones without these problems.")
    try:
        proposed = await asker.ask(
            StageKey(WHOLE, "candidates", attempt),
            INSTRUCTIONS,
            "\n\n".join(parts),
            CandidatePlans,
            temperature=settings.temperature_for(settings.planning_temperature, attempt),
            timeout=settings.timeout_for("", attempt),
        )
    except (OutputInvalid, TimeoutError) as error:
        return _Considered((), (str(error),), explain_failure(error, "plan"))
    plans = [make_plan(one, briefing.tools) for one in proposed.plans]
    return _validate(plans, briefing.tools, earlier, most)


def make_plan(proposed: ProposedPlan, tools: Collection[str]) -> Plan:
    """Make a plan of what a model proposed, with the tools that it means."""
    made = [
        PlanTask(id=one.id, tool=resolve_tool(one.tool, one.query, tools), query=one.query, needs=tuple(one.needs))
        for one in proposed.tasks
    ]
    return Plan(approach=proposed.approach, tasks=tuple(made))


def _validate(plans: Sequence[Plan], tools: Collection[str], earlier: Collection[str], most: int) -> _Considered:
    valid: list[Plan] = []
    problems: list[str] = []
    for number, plan in enumerate(plans, 1):
        found = validate_plan(plan, tools, earlier, most)
        problems += [f"Plan {number}: {problem}" if len(plans) > 1 else problem for problem in found]
        if not found and plan not in valid:
            valid.append(plan)
    return _Considered(tuple(valid), tuple(problems))


async def _choose(asker: Asker, briefing: Briefing, settings: AnalysisSettings, considered: _Considered) -> PlanRecord:
    """Have the best of several plans chosen; the first one, if the model can't say."""
    plans = considered.plans
    if len(plans) == 1:
        return PlanRecord(plans[0], plans, considered.problems, "the only one that can run")
    listed = "\n\n".join(f"Plan {number}:\n{describe_plan(plan)}" for number, plan in enumerate(plans, 1))
    try:
        evaluation = await asker.ask(
            StageKey(WHOLE, "evaluation"),
            EVALUATION,
            f"{briefing.write()}\n\n{briefing.write_tools()}\n\n{listed}",
            PlanEvaluation,
            temperature=settings.temperature_for(settings.planning_temperature),
            timeout=settings.tool_timeout,
        )
    except (OutputInvalid, TimeoutError) as error:
        asker.emit(Notice(f"the plans couldn't be compared, so the first is used: {explain_failure(error)}"))
        return PlanRecord(plans[0], plans, considered.problems, "the first one: the plans couldn't be compared")
    best = _find_best(evaluation, len(plans))
    return PlanRecord(plans[best], plans, considered.problems, evaluation.reason)


def _find_best(evaluation: PlanEvaluation, count: int) -> int:
    """The index of the plan that was chosen; if there is no such plan, of the one with the highest scores."""
    if 1 <= evaluation.best <= count:
        return evaluation.best - 1
    known = [score for score in evaluation.scores if 1 <= score.plan <= count]
    return max(known, key=lambda score: score.total).plan - 1 if known else 0


def describe_plan(plan: Plan) -> str:
    """A plan for a model or a person to read."""
    lines = [
        f"- {task.id} ({task.tool}){' needs ' + ', '.join(task.needs) if task.needs else ''}: {task.query}"
        for task in plan.tasks
    ]
    return "\n".join(filter(None, (plan.approach, *lines)))
