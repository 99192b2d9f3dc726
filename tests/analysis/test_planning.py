"""Planning: complexity, candidates that are validated and sent back, the choice, the decision to go on, the answer."""

from typing import Any

import pytest
from staged_model import StagedModel

from ferrule.analysis.asking import Asker, ModelChoice
from ferrule.analysis.events import AnalysisEvent, Notice
from ferrule.analysis.limits import AnalysisLimits
from ferrule.analysis.planning.answers import FocusedAnswerReply, Synthesis, focus_answer, synthesize, write_account
from ferrule.analysis.planning.briefing import Briefing, describe_execution, shorten
from ferrule.analysis.planning.candidates import PlanningFailed, choose_plan
from ferrule.analysis.planning.complexity import TASKS, Complexity, assess_complexity, count_tasks
from ferrule.analysis.planning.iteration import decide_iteration
from ferrule.analysis.result import PlanRecord, ResultCheck, TaskExecution
from ferrule.analysis.settings import AnalysisSettings
from ferrule.errors import ProviderError

TOOLS = {"logic_kernel": "Reasons.", "knowledge_retriever": "Recalls.", "py_executor": "Computes."}
BRIEFING = Briefing("Which region drives the drop?", "sales: 3 columns", TOOLS)
QUICK = AnalysisSettings(mode="quick")

GOOD = {"approach": "Sum.", "tasks": [{"id": "t1", "tool": "py_executor", "query": "Sum by region."}]}
OTHER = {
    "approach": "Sum, then reason.",
    "tasks": [
        {"id": "t1", "tool": "Python", "query": "Sum by region."},
        {"id": "t2", "tool": "", "query": "Compare the strengths of the explanations.", "needs": ["t1"]},
    ],
}


def make_asker(model: StagedModel, events: list[AnalysisEvent] | None = None) -> Asker:
    return Asker(ModelChoice(model), AnalysisLimits(), [].append if events is None else events.append)


async def choose(model: StagedModel, settings: AnalysisSettings = QUICK, most: int = 3, **options: Any) -> PlanRecord:
    return await choose_plan(make_asker(model, **options), BRIEFING, settings, (2, most))


async def test_complexity_decides_how_many_tasks_a_plan_may_have() -> None:
    model = StagedModel({"complexity": {"level": "highly complex", "reason": "many parts"}})
    found = await assess_complexity(make_asker(model), BRIEFING, QUICK)
    assert count_tasks(found, QUICK) == TASKS["highly complex"] == (5, 6)
    assert count_tasks(Complexity(level="straightforward"), QUICK) == (2, 3)
    assert count_tasks(found, AnalysisSettings(max_tasks=8)) == (5, 8)
    assert "sales: 3 columns" in model.seen[0].question


async def test_a_single_candidate_is_not_compared() -> None:
    model = StagedModel({"candidates": {"plans": [GOOD]}})
    record = await choose(model)
    assert record.plan.tasks[0].query == "Sum by region."
    assert model.list_stages() == ["analysis/candidates/0"]


async def test_the_best_of_several_is_chosen_and_the_others_are_kept() -> None:
    model = StagedModel(
        {"candidates": {"plans": [GOOD, OTHER]}, "evaluation": {"best": 2, "reason": "it explains more"}}
    )
    record = await choose(model, AnalysisSettings())
    assert [task.tool for task in record.plan.tasks] == ["py_executor", "logic_kernel"]
    assert (record.reason, len(record.candidates)) == ("it explains more", 2)


@pytest.mark.parametrize(
    ("evaluation", "best"),
    [
        ({"best": 7, "scores": [{"plan": 2, "coverage": 9, "feasibility": 9, "efficiency": 9}]}, 1),
        ({"best": 0}, 0),
    ],
)
async def test_a_choice_of_no_plan_falls_back_to_the_scores(evaluation: dict[str, Any], best: int) -> None:
    model = StagedModel({"candidates": {"plans": [GOOD, OTHER]}, "evaluation": evaluation})
    record = await choose(model, AnalysisSettings())
    assert record.plan == record.candidates[best]


async def test_an_evaluation_that_is_nonsense_leaves_the_first_plan_and_says_so() -> None:
    events: list[AnalysisEvent] = []
    model = StagedModel({"candidates": {"plans": [GOOD, OTHER]}, "evaluation": "the blue one"})
    record = await choose(model, AnalysisSettings(), events=events)
    assert record.plan == record.candidates[0]
    assert any(isinstance(event, Notice) and "couldn't be compared" in event.text for event in events)


async def test_a_plan_that_cannot_run_is_left_out_of_the_comparison() -> None:
    broken = {"tasks": [{"id": "t1", "tool": "web", "query": "Look."}]}
    record = await choose(StagedModel({"candidates": {"plans": [broken, GOOD]}}), AnalysisSettings())
    assert record.plan.approach == "Sum."
    assert record.problems[0].startswith("Plan 1: Task t1 names the tool 'web'")


WRONG = {
    "cycle": [
        {"id": "t1", "tool": "py_executor", "query": "a", "needs": ["t2"]},
        {"id": "t2", "tool": "py_executor", "query": "b", "needs": ["t1"]},
    ],
    "tool": [{"id": "t1", "tool": "web", "query": "a"}],
    "reference": [{"id": "t1", "tool": "py_executor", "query": "a", "needs": ["t7"]}],
    "duplicate": [{"id": "t1", "tool": "py_executor", "query": q} for q in "ab"],
    "empty": [],
    "long": [{"id": f"t{n}", "tool": "py_executor", "query": "a"} for n in range(1, 9)],
}
SAID = {
    "cycle": "wait for each other",
    "tool": "names the tool 'web', which there is not",
    "reference": "needs 't7', which is no task",
    "duplicate": "2 tasks have the id 't1'",
    "empty": "The plan has no tasks",
    "long": "The plan has 8 tasks, and at most 3 are allowed",
}


@pytest.mark.parametrize("kind", WRONG)
async def test_problems_go_back_to_the_model_which_plans_again(kind: str) -> None:
    model = StagedModel({"candidates": [{"plans": [{"tasks": WRONG[kind]}]}, {"plans": [GOOD]}]})
    record = await choose(model)
    assert record.plan.approach == "Sum."
    assert model.list_stages() == ["analysis/candidates/0", "analysis/candidates/1"]
    assert SAID[kind] in model.seen[1].question
    assert SAID[kind] not in model.seen[0].question
    assert model.seen[1].settings.temperature > model.seen[0].settings.temperature


@pytest.mark.parametrize("kind", WRONG)
async def test_a_plan_that_stays_wrong_is_a_clear_failure(kind: str) -> None:
    model = StagedModel({"candidates": {"plans": [{"tasks": WRONG[kind]}]}})
    with pytest.raises(PlanningFailed, match=f"^no plan that can run was found: .*{SAID[kind]}"):
        await choose(model)
    assert len(model.seen) == QUICK.plan_retries + 1


async def test_nonsense_instead_of_plans_is_a_clear_failure() -> None:
    with pytest.raises(PlanningFailed, match=r"found: the model gave no plan in the form asked for$"):
        await choose(StagedModel({"candidates": "I would rather not."}))


async def test_a_provider_that_fails_is_not_asked_for_other_plans() -> None:
    with pytest.raises(ProviderError, match="no such model"):
        await choose(StagedModel({"candidates": ProviderError("no such model", 404)}))


DONE = TaskExecution("t1", "py_executor", "Sum by region.", result="North: 12")
FAILED = TaskExecution("t2", "py_executor", "Test it.", status="failed", error="no such column", result="No result")


async def decide(model: StagedModel, events: list[AnalysisEvent] | None = None) -> Any:
    return await decide_iteration(make_asker(model, events), BRIEFING, QUICK, [DONE, FAILED], 1, 3)


async def test_the_analysis_stops_when_the_model_says_so() -> None:
    model = StagedModel({"iteration_1": {"decision": "stop", "reason": "answered"}})
    decision, plan = await decide(model)
    assert (decision.decision, decision.reason, plan) == ("stop", "answered", None)
    assert "North: 12" in model.seen[0].question
    assert "No result: no such column" in model.seen[0].question


async def test_the_analysis_goes_on_with_tasks_that_build_on_results() -> None:
    task = {"id": "t3", "tool": "py_executor", "query": "Test the difference.", "needs": ["t1"]}
    _, plan = await decide(StagedModel({"iteration_1": {"decision": "continue", "tasks": [task]}}))
    assert plan.tasks[0].needs == ("t1",)


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ({"id": "t3", "tool": "py_executor", "query": "sum by  region."}, "asks what t1 was asked: use its result"),
        ({"id": "t3", "tool": "py_executor", "query": "Test it."}, "asks what t2 was asked: ask in another way"),
        ({"id": "t1", "tool": "py_executor", "query": "New."}, "is that of an earlier task"),
        ({"id": "t3", "tool": "py_executor", "query": "New.", "needs": ["t2"]}, "needs t2, which has no result"),
    ],
)
async def test_tasks_that_cannot_run_are_sent_back_and_then_the_analysis_stops(
    task: dict[str, Any], problem: str
) -> None:
    events: list[AnalysisEvent] = []
    model = StagedModel({"iteration_1": {"decision": "continue", "tasks": [task]}})
    decision, plan = await decide(model, events)
    assert (decision.decision, plan) == ("stop", None)
    assert problem in model.seen[1].question
    assert [problem in event.text for event in events if isinstance(event, Notice)] == [True]


async def test_the_answer_is_written_from_the_results() -> None:
    model = StagedModel(
        {
            "synthesis": {"answer": "North, with 12.", "key_findings": ["North has 12."]},
            "focused_answer": {"answer_type": "number", "answer_value": 12, "formatted_answer": "12 units"},
        }
    )
    asker = make_asker(model)
    synthesis = await synthesize(asker, BRIEFING, QUICK, [DONE, FAILED], "the limit of 5 calls was reached")
    assert "The analysis is partial: the limit of 5 calls was reached" in model.seen[0].question
    focused = await focus_answer(asker, BRIEFING, QUICK, [DONE], synthesis)
    assert (focused.answer_type, focused.answer_value, focused.formatted_answer) == ("number", 12, "12 units")


@pytest.mark.parametrize(
    ("kind", "value"),
    [("number", "12"), ("number", True), ("yes_no", 1), ("text", None), ("list", "a"), ("none", 0), ("date", 2026)],
)
def test_a_focused_answer_has_a_value_of_its_type(kind: str, value: Any) -> None:
    with pytest.raises(ValueError, match="answer_value must fit answer_type"):
        FocusedAnswerReply(answer_type=kind, answer_value=value, formatted_answer="")


@pytest.mark.parametrize(
    ("kind", "value"), [("number", 1.5), ("yes_no", False), ("list", ["a", 1]), ("none", None), ("date", "2026-01-31")]
)
def test_values_of_all_types_are_kept_as_they_are(kind: str, value: Any) -> None:
    reply = FocusedAnswerReply.model_validate_json(
        FocusedAnswerReply(answer_type=kind, answer_value=value, formatted_answer="x").model_dump_json()
    )
    assert reply.answer_value == value
    assert type(reply.answer_value) is type(value)


def test_without_a_synthesis_the_account_says_only_what_was_found() -> None:
    account = write_account([DONE, FAILED], "the provider is down")
    assert account == (
        "No answer was written: the provider is down. The tasks that finished found:\n\n"
        "t1 (Sum by region.):\nNorth: 12\n\n"
        "Without a result: t2 (Test it.): no such column"
    )
    account = write_account([DONE], "no plan", ["t1"])
    assert account.startswith(
        "No answer was written: no plan. The tasks of the earlier analysis found:\n\nt1 of the earl"
    )
    assert write_account([], "no plan").startswith("There is no answer: no plan.")


def test_a_synthesis_is_never_empty() -> None:
    with pytest.raises(ValueError, match="at least 1 character"):
        Synthesis(answer="")


def test_a_check_that_could_not_run_has_not_failed() -> None:
    checks = tuple(ResultCheck(f"c{passed}", passed) for passed in (True, False, None))
    shown = describe_execution(TaskExecution("t1", "py_executor", "Sum.", checks=checks))
    assert "Check passed: cTrue\nCheck FAILED: cFalse\nCheck could not run: cNone" in shown


def test_long_results_are_cut_in_the_middle() -> None:
    cut = shorten("a" * 100 + "b" * 100, 40)
    assert cut == "a" * 20 + "\n[… 160 characters left out …]\n" + "b" * 20
