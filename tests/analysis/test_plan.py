"""A plan is validated before anything runs; each problem is a sentence that a model can act on."""

import pytest
from staged_model import StagedModel

from ferrule.analysis import AnalysisSettings, run_analysis
from ferrule.analysis.plan import Plan, PlanTask, validate_plan
from ferrule.errors import DataError, SettingsError
from tables import each_case

TOOLS = ("py_executor", "logic_kernel", "knowledge_retriever")


def task(name: str, *needs: str, tool: str = "py_executor", query: str = "Add.") -> PlanTask:
    return PlanTask(id=name, tool=tool, query=query, needs=needs)


def find_problems(*tasks: PlanTask, earlier: tuple[str, ...] = (), most: int | None = None) -> list[str]:
    return validate_plan(Plan(approach="", tasks=tasks), TOOLS, earlier, most)


def test_a_plan_that_can_run_has_no_problems() -> None:
    assert find_problems(task("t1"), task("t2", "t1"), task("t3", "t1", "t2"), most=3) == []


def test_a_plan_may_build_on_earlier_tasks() -> None:
    assert find_problems(task("t3", "t1"), earlier=("t1", "t2")) == []


def test_needs_may_name_later_tasks() -> None:
    assert find_problems(task("t1", "t2"), task("t2")) == []


@each_case(
    ("tasks", "problem"),
    [
        ((), "The plan has no tasks: give at least one."),
        ((task("t1", "t2"), task("t2", "t1")), "wait for each other: remove one of these needs."),
        ((task("t1", "t1"),), "Task t1 needs its own result: remove that."),
        ((task("t1", "t9"),), "Task t1 needs 't9', which is no task: there is no other, so it can need none."),
        ((task("t1", "t9"), task("t2")), "Task t1 needs 't9', which is no task: use one of t2."),
        ((task("t1"), task("t1")), "2 tasks have the id 't1': give each its own."),
        ((task("one"),), "'one' can't be the id of a task: use t1, t2 and so on."),
        (
            (task("t1", tool="web"),),
            "Task t1 names the tool 'web', which there is not: use one of " + ", ".join(sorted(TOOLS)) + ".",
        ),
        ((task("t1", query=" "),), "Task t1 has no query: say what its tool is to do."),
        (
            tuple(task(f"t{n}") for n in range(1, 6)),
            "The plan has 5 tasks, and at most 4 are allowed: merge or leave out some.",
        ),
    ],
)
def test_each_problem_is_a_sentence(tasks: tuple[PlanTask, ...], problem: str) -> None:
    (found,) = find_problems(*tasks, most=4)
    assert found.endswith(problem)


def test_an_earlier_id_is_not_given_again() -> None:
    assert find_problems(task("t1"), earlier=("t1",)) == [
        "The id 't1' is that of an earlier task: continue the numbers after it."
    ]


def test_a_long_cycle_is_named_in_its_order() -> None:
    (found,) = find_problems(task("t1", "t3"), task("t2", "t1"), task("t3", "t2"), task("t4"))
    assert "t4" not in found
    assert found.count("→") == 3


async def test_what_is_no_plan_or_no_file_is_refused_in_one_line() -> None:
    async def approve(plan: Plan) -> object:
        return 5

    answers = {
        "complexity": {"level": "straightforward", "reason": "short"},
        "candidates": {
            "plans": [{"approach": "Think.", "tasks": [{"id": "t1", "tool": "logic_kernel", "query": "x"}]}]
        },
    }
    settings = AnalysisSettings(mode="quick")
    with pytest.raises(SettingsError, match="approve_plan must return a Plan, or None to refuse it, not 5"):
        await run_analysis("How?", model=StagedModel(answers), settings=settings, approve_plan=approve)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="data holds a value of the type NoneType, which is no file"):
        await run_analysis("How?", data=[None], model=StagedModel(answers))  # type: ignore[list-item]
    with pytest.raises(SettingsError, match=r"settings is a dict; give AnalysisSettings"):
        await run_analysis("How?", settings={"mode": "quick"}, model=StagedModel(answers))  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="the embedded model can't plan an analysis"):
        await run_analysis("How?", model="embedded")
