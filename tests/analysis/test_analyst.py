"""Whole analyses, by models that answer by stage: what is asked, what runs, what ends it, and what is left."""

import asyncio
import json
from typing import Any

import pytest
from staged_model import SeenRequest, StagedModel

import ferrule
from ferrule.analysis import AnalysisSettings, Plan, PlanTask, run_analysis, run_analysis_sync, stream_analysis
from ferrule.analysis.events import (
    AnalysisFinished,
    DataShared,
    PlanMade,
    StageStarted,
    TaskFinished,
    TaskRetried,
    TaskStarted,
)
from ferrule.conversation import ToolCall
from ferrule.errors import ModelError, ProviderError, SettingsError
from ferrule.execution import FileJournal, Policy, Rule
from ferrule.models.prices import configure_prices
from ferrule.tools.decorator import tool

QUESTION = "Which of two plans is better, and by how much?"
COMPLEXITY = {"level": "moderate", "reason": "two steps"}
REASONED = {"conclusion": "Plan B.", "steps": [{"statement": "B costs 12."}], "confidence": 0.8}
KNOWN = {"summary": "B is common.", "facts": [{"statement": "B is old.", "certainty": "high"}], "confidence": 0.5}
ANSWER = {
    "synthesis": {"answer": "Plan B, by 12.", "key_findings": ["B costs 12 less."]},
    "focused_answer": {"answer_type": "number", "answer_value": 12, "formatted_answer": "12 euros"},
}
STOP = {"iteration_1": {"decision": "stop", "reason": "answered"}}


def make_task(name: str, kind: str = "logic_kernel", *needs: str, query: str = "") -> dict[str, Any]:
    return {"id": name, "tool": kind, "query": query or f"Do {name}.", "needs": list(needs)}


def plan_of(*tasks: dict[str, Any], approach: str = "Recall, then reason.") -> dict[str, Any]:
    return {"candidates": {"plans": [{"approach": approach, "tasks": list(tasks)}]}}


TWO = plan_of(make_task("t1", "knowledge_retriever"), make_task("t2", "logic_kernel", "t1"))
WHOLE = {
    "complexity": COMPLEXITY,
    **TWO,
    "logic_kernel": REASONED,
    "knowledge_retriever": KNOWN,
    **STOP,
    **ANSWER,
}


async def test_a_question_becomes_a_plan_tasks_and_an_answer() -> None:
    model = StagedModel(WHOLE)
    result = await run_analysis(QUESTION, model=model)
    assert model.list_stages() == [
        "analysis/complexity/0",
        "analysis/candidates/0",
        "t1/knowledge_retriever/0",
        "t2/logic_kernel/0",
        "analysis/iteration_1/0",
        "analysis/synthesis/0",
        "analysis/focused_answer/0",
    ]
    assert [entry.stage_type for entry in result.output_entries] == [
        "data", "complexity", "plan", "task_execution", "task_execution", "iteration", "synthesis", "focused_answer",
    ]  # fmt: skip
    assert (result.stopped, result.answer, result.key_findings) == (None, "Plan B, by 12.", ("B costs 12 less.",))
    assert result.focused_answer is not None
    assert result.focused_answer.answer_value == 12
    assert result.usage.calls == 7
    assert result.usage.usage.prompt_tokens == 700
    assert [link.text for link in result.numbers] == ["12"]
    assert not model.closed


async def test_a_task_execution_has_what_the_seed_reads() -> None:
    result = await run_analysis(QUESTION, model=StagedModel(WHOLE))
    executions = [entry.data for entry in result.output_entries if entry.stage_type == "task_execution"]
    recalled, reasoned = executions
    assert (recalled.tool, recalled.task_query, recalled.code) == ("knowledge_retriever", "Do t1.", None)
    assert recalled.methodology_data is None
    assert recalled.result.startswith("From the model's training data, not from live sources: B is common.")
    assert recalled.value["source"] == "training data"
    assert reasoned.result.splitlines() == ["Conclusion: Plan B. (confidence 0.8)", "1. B costs 12."]
    assert reasoned.value["steps"][0]["statement"] == "B costs 12."
    assert (reasoned.calls, reasoned.needs, reasoned.round) == (1, ("t1",), 0)
    assert reasoned.started >= recalled.ended


async def test_a_task_sees_the_results_that_it_needs_and_no_others() -> None:
    tasks = (make_task("t1", "knowledge_retriever"), make_task("t2"), make_task("t3", "logic_kernel", "t1"))
    model = StagedModel({**WHOLE, **plan_of(*tasks), "t2/logic_kernel": {**REASONED, "conclusion": "Unseen."}})
    await run_analysis(QUESTION, model=model)
    shown = model.find("t3/logic_kernel").text
    assert "B is common." in shown
    assert "Unseen." not in shown


async def test_temperatures_are_those_of_the_settings() -> None:
    settings = AnalysisSettings(reasoning_temperature=0.9, deep_knowledge_temperature=0.1, temperature_offset=0.05)
    model = StagedModel(WHOLE)
    await run_analysis(QUESTION, model=model, settings=settings)
    assert model.find("logic_kernel").settings.temperature == 0.95
    assert model.find("knowledge_retriever").settings.temperature == pytest.approx(0.15)


async def test_a_tool_may_have_a_model_of_its_own() -> None:
    other = StagedModel({"logic_kernel": REASONED}, name="other")
    answers = {name: answer for name, answer in WHOLE.items() if name != "logic_kernel"}
    result = await run_analysis(
        QUESTION, model=StagedModel(answers), settings=AnalysisSettings(models={"logic_kernel": other})
    )
    assert result.is_complete
    assert other.list_stages() == ["t2/logic_kernel/0"]


async def test_independent_tasks_run_at_the_same_time() -> None:
    # Each waits until the other has begun: one after the other, they would wait for ever.
    begun = {"t1": asyncio.Event(), "t2": asyncio.Event()}

    class Meeting(StagedModel):
        async def stream(self, conversation, tools, settings):
            from ferrule.analysis.stages import current_stage

            key = current_stage.get()
            if key is not None and key.task in begun:
                begun[key.task].set()
                await begun["t2" if key.task == "t1" else "t1"].wait()
            async for event in super().stream(conversation, tools, settings):
                yield event

    result = await run_analysis(QUESTION, model=Meeting({**WHOLE, **plan_of(make_task("t1"), make_task("t2"))}))
    assert [task.status for task in result.tasks] == ["done", "done"]


async def test_a_failed_task_is_tried_again_with_a_higher_temperature_and_more_time() -> None:
    answers = {**WHOLE, "t1/knowledge_retriever/0": "nonsense", "t1/knowledge_retriever/1": KNOWN}
    model = StagedModel(answers)
    async with stream_analysis(QUESTION, model=model) as analysis:
        events = [event async for event in analysis]
    (retried,) = [event for event in events if isinstance(event, TaskRetried)]
    assert (retried.task, retried.attempt, retried.failure, retried.timeout) == ("t1", 1, "model", 144)
    assert retried.temperature == pytest.approx(0.4)
    assert model.find("t1/knowledge_retriever/1").settings.temperature == pytest.approx(0.4)
    first = analysis.result.tasks[0]
    assert [attempt.failure for attempt in first.attempts] == ["model", None]
    assert first.status == "done"


async def test_a_task_that_fails_for_good_ends_its_dependants_and_the_answer_says_so() -> None:
    tasks = (make_task("t1", "knowledge_retriever"), make_task("t2", "logic_kernel", "t1"), make_task("t3"))
    model = StagedModel({**WHOLE, **plan_of(*tasks), "t1/knowledge_retriever": "nonsense"})
    result = await run_analysis(QUESTION, model=model, settings=AnalysisSettings(tool_retries=1))
    by_id = {task.id: task for task in result.tasks}
    assert {name: task.status for name, task in by_id.items()} == {"t1": "failed", "t2": "skipped", "t3": "done"}
    assert len(by_id["t1"].attempts) == 2
    assert by_id["t2"].error is not None
    assert by_id["t2"].error.startswith("it needs t1, which has no result: ")
    assert "No result: " in model.find("synthesis").question
    assert result.is_complete


async def test_a_slow_tool_is_stopped_and_tried_again() -> None:
    model = StagedModel(WHOLE, delays={"t1/knowledge_retriever/0": 30})
    result = await run_analysis(QUESTION, model=model, settings=AnalysisSettings(tool_timeout=1))
    first = result.tasks[0]
    assert [(one.failure, one.message, one.timeout) for one in first.attempts] == [
        ("timeout", "it took longer than 1 s", 1),
        (None, "", 1),
    ]


async def test_the_analysis_goes_on_when_something_is_missing() -> None:
    more = {"decision": "continue", "reason": "check it", "tasks": [make_task("t3", "logic_kernel", "t2")]}
    model = StagedModel({**WHOLE, "iteration_1": more})
    result = await run_analysis(QUESTION, model=model)
    assert [task.id for task in result.tasks] == ["t1", "t2", "t3"]
    assert [record.round for record in result.rounds] == [0, 1]
    assert result.tasks[2].round == 1
    assert [task.id for task in result.plan.tasks] == ["t1", "t2", "t3"]
    # Two rounds are the limit of the balanced mode: it isn't asked again.
    assert "analysis/iteration_2/0" not in model.list_stages()


async def test_plans_that_never_end_are_ended_by_the_limit_of_rounds() -> None:
    def go_on(request: SeenRequest) -> dict[str, Any]:
        number = 2 + int(request.key.stage.removeprefix("iteration_"))
        return {"decision": "continue", "reason": "more", "tasks": [make_task(f"t{number}")]}

    rounds = {f"iteration_{number}": go_on for number in range(1, 20)}
    result = await run_analysis(
        QUESTION, model=StagedModel({**WHOLE, **rounds}), settings=AnalysisSettings(mode="research")
    )
    assert len(result.rounds) == 5
    assert result.is_complete


async def test_the_quick_mode_asks_no_more_than_it_must() -> None:
    model = StagedModel(WHOLE)
    await run_analysis(QUESTION, model=model, settings=AnalysisSettings(mode="quick"))
    assert "analysis/iteration_1/0" not in model.list_stages()


async def test_a_plan_that_cannot_run_leaves_a_clear_account() -> None:
    cycle = plan_of(make_task("t1", "logic_kernel", "t2"), make_task("t2", "logic_kernel", "t1"))
    result = await run_analysis(QUESTION, model=StagedModel({**WHOLE, **cycle}))
    assert result.stopped is not None
    assert result.stopped.startswith("no plan that can run was found: The tasks t")
    assert result.answer == f"There is no answer: {result.stopped}."
    assert (result.tasks, result.focused_answer) == ((), None)


@pytest.mark.parametrize("nonsense", ["I like turtles.", "", "[]", '{"plans": 7}', "\x00\ud83d"])
async def test_a_model_that_answers_nonsense_leaves_a_clear_account(nonsense: str) -> None:
    stages = ("complexity", "candidates", "synthesis", "focused_answer", "iteration_1", "logic_kernel")
    result = await run_analysis(QUESTION, model=StagedModel(dict.fromkeys(stages, nonsense)))
    assert result.stopped is not None
    assert result.stopped.startswith("no plan that can run was found")
    assert "Traceback" not in str(result)
    assert result.numbers == ()


async def test_an_answer_that_cannot_be_written_leaves_what_was_found() -> None:
    result = await run_analysis(QUESTION, model=StagedModel({**WHOLE, "synthesis": "nonsense"}))
    assert result.stopped is not None
    assert "Conclusion: Plan B. (confidence 0.8)" in result.answer
    assert result.answer.startswith("No answer was written: The answer must be JSON")


async def test_a_focused_answer_that_fails_is_a_notice() -> None:
    result = await run_analysis(QUESTION, model=StagedModel({**WHOLE, "focused_answer": "nonsense"}))
    assert result.focused_answer is None
    assert result.notices[0].startswith("the answer couldn't be given as one value")
    assert result.is_complete


async def test_a_provider_that_fails_in_the_middle_leaves_what_was_found() -> None:
    down = ProviderError("staged answered 401: no credit", 401)
    model = StagedModel({**WHOLE, "t2/logic_kernel": down, "iteration_1": down})
    result = await run_analysis(QUESTION, model=model)
    assert result.stopped == "staged answered 401: no credit"
    assert [task.status for task in result.tasks] == ["done", "failed"]
    assert len(result.tasks[1].attempts) == 1
    assert result.answer == "Plan B, by 12."
    assert "The analysis is partial: staged answered 401" in model.find("synthesis").question


async def test_no_answer_is_made_up_where_no_task_has_a_result() -> None:
    model = StagedModel({**WHOLE, "knowledge_retriever": "nonsense", "logic_kernel": "nonsense"})
    result = await run_analysis(QUESTION, model=model, settings=AnalysisSettings(mode="quick", tool_retries=0))
    assert result.stopped == "no task gave a result"
    assert "analysis/synthesis/0" not in model.list_stages()
    assert result.answer.startswith("There is no answer: no task gave a result.")


async def test_the_limit_of_calls_leaves_a_partial_answer() -> None:
    model = StagedModel(WHOLE)
    result = await run_analysis(QUESTION, model=model, settings=AnalysisSettings(max_calls=5))
    assert result.stopped == "the limit of 5 requests to models was reached; the last 2 are kept for the answer"
    assert len(model.seen) == 5
    assert [task.status for task in result.tasks] == ["done", "failed"]
    assert result.answer == "Plan B, by 12."
    assert "The analysis is partial: the limit of 5 requests" in model.find("synthesis").question


async def test_the_limit_of_cost_leaves_what_was_found() -> None:
    configure_prices({"staged": {"input": 1000.0, "output": 1000.0}})
    try:
        result = await run_analysis(QUESTION, model=StagedModel(WHOLE), settings=AnalysisSettings(max_cost=0.3))
    finally:
        configure_prices(None)
    assert result.stopped == "the limit of $0.3 was reached; $0.03 of it is kept for the answer"
    assert result.usage.cost == pytest.approx(0.33)
    assert result.answer.startswith("No answer was written: the limit of $0.3 was reached; $0.03 of it")
    assert "B is common." in result.answer


async def test_at_the_limit_of_cost_the_answer_is_still_written() -> None:
    configure_prices({"staged": {"input": 1000.0, "output": 1000.0}})
    try:
        # Three requests until the first task is done, and one for each of the answer's stages.
        result = await run_analysis(QUESTION, model=StagedModel(WHOLE), settings=AnalysisSettings(max_cost=0.5))
    finally:
        configure_prices(None)
    assert result.stopped == "the limit of $0.5 was reached; $0.22 of it is kept for the answer"
    assert [task.status for task in result.tasks] == ["done", "failed"]
    assert result.answer == "Plan B, by 12."
    assert result.usage.cost == pytest.approx(0.55)


async def test_a_limit_of_cost_says_which_models_cost_nothing() -> None:
    model = StagedModel(WHOLE, name="local:checkpoint")
    result = await run_analysis(QUESTION, model=model, settings=AnalysisSettings(max_cost=0.01))
    assert (result.stopped, result.usage.cost) == (None, 0.0)
    assert result.notices == ("max_cost limits nothing of what local:checkpoint is asked: it costs nothing",)


async def test_the_limit_of_time_stops_what_runs() -> None:
    model = StagedModel(WHOLE, delays={"t2/logic_kernel": 30})
    result = await run_analysis(QUESTION, model=model, settings=AnalysisSettings(max_seconds=0.5))
    assert result.stopped == "the limit of 0.5 seconds was reached"
    assert {task.id: task.status for task in result.tasks} == {"t1": "done", "t2": "cancelled"}
    assert result.usage.seconds < 5
    assert result.answer.startswith(("Plan B", "No answer was written"))


async def test_the_time_of_a_person_who_approves_the_plan_is_not_counted() -> None:
    async def think(plan: Plan) -> Plan:
        await asyncio.sleep(1.9)
        return plan

    settings = AnalysisSettings(max_seconds=2)
    result = await run_analysis(QUESTION, model=StagedModel(WHOLE), settings=settings, approve_plan=think)
    assert result.stopped is None
    assert result.usage.seconds < 1.9


async def test_a_cost_limit_without_a_price_is_refused_before_anything_is_asked() -> None:
    model = StagedModel(WHOLE)
    with pytest.raises(SettingsError, match="the price of staged isn't known"):
        await run_analysis(QUESTION, model=model, settings=AnalysisSettings(max_cost=1))
    assert model.seen == []


async def test_events_tell_the_whole_course() -> None:
    async with stream_analysis(QUESTION, model=StagedModel(WHOLE)) as analysis:
        events = [event async for event in analysis]
    kinds = [type(event) for event in events]
    assert kinds.index(DataShared) < kinds.index(StageStarted) < kinds.index(PlanMade) < kinds.index(TaskStarted)
    assert [event.execution.id for event in events if isinstance(event, TaskFinished)] == ["t1", "t2"]
    assert events[-1] == AnalysisFinished(analysis.result)


async def test_leaving_early_leaves_a_valid_partial_result() -> None:
    model = StagedModel(WHOLE, delays={"t2/logic_kernel": 30})
    async with stream_analysis(QUESTION, model=model) as analysis:
        async for event in analysis:
            if isinstance(event, TaskStarted) and event.task.id == "t2":
                break
            assert analysis.result.stopped is not None
    result = analysis.result
    assert result.stopped == "the analysis was stopped"
    assert {task.id: task.status for task in result.tasks} == {"t1": "done", "t2": "cancelled"}
    assert "B is common." in result.answer
    assert result.usage.calls >= 3


async def test_cancelling_run_analysis_stops_it() -> None:
    model = StagedModel(WHOLE, delays={"complexity": 30})
    running = asyncio.create_task(run_analysis(QUESTION, model=model))
    while not model.seen:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_without_an_event_loop_it_is_waited_for() -> None:
    assert run_analysis_sync(QUESTION, model=StagedModel(WHOLE)).is_complete


async def test_inside_an_event_loop_the_other_name_is_given() -> None:
    with pytest.raises(RuntimeError, match="use the async one and await it"):
        run_analysis_sync(QUESTION, model=StagedModel(WHOLE))


async def test_a_plan_is_approved_edited_or_refused_before_anything_runs() -> None:
    async def refuse(plan: Plan) -> None:
        return None

    async def edit(plan: Plan) -> Plan:
        return plan.model_copy(update={"tasks": (PlanTask(id="t1", tool="logic_kernel", query="Only this."),)})

    async def spoil(plan: Plan) -> Plan:
        return plan.model_copy(update={"tasks": (PlanTask(id="t1", tool="web", query="Look."),)})

    model = StagedModel(WHOLE)
    refused = await run_analysis(QUESTION, model=model, approve_plan=refuse)
    assert (refused.stopped, refused.tasks) == ("the plan was not approved", ())
    assert "analysis/synthesis/0" not in model.list_stages()
    earlier = await run_analysis(QUESTION, model=StagedModel(WHOLE))
    model = StagedModel({**WHOLE, **plan_of(make_task("t3"))})
    further = await run_analysis("And why?", model=model, approve_plan=refuse, continues=earlier)
    assert further.stopped == "the plan was not approved"
    assert "analysis/synthesis/0" not in model.list_stages()
    edited = await run_analysis(QUESTION, model=StagedModel(WHOLE), approve_plan=edit)
    assert [task.task_query for task in edited.tasks] == ["Only this."]
    with pytest.raises(SettingsError, match="the edited plan can't run: Task t1 names the tool 'web'"):
        await run_analysis(QUESTION, model=StagedModel(WHOLE), approve_plan=spoil)


async def test_a_further_question_uses_the_results_that_are_there() -> None:
    first = await run_analysis(QUESTION, model=StagedModel(WHOLE))
    model = StagedModel({**WHOLE, **plan_of(make_task("t3", "logic_kernel", "t2"))})
    second = await run_analysis("And why?", model=model, continues=first)
    assert [task.id for task in second.tasks] == ["t3"]
    assert "Conclusion: Plan B." in model.find("t3/logic_kernel").text
    assert "Plan B, by 12." in model.find("candidates").question


@tool(read_only=True)
def count_orders(region: str) -> int:
    """Count the orders of a region."""
    return {"North": 12, "South": 30}[region]


async def test_a_task_may_use_an_added_tool_in_the_same_loop() -> None:
    call = ToolCall("c1", "count_orders", '{"region": "North"}')
    model = StagedModel(
        {
            **WHOLE,
            **plan_of(make_task("t1", "count_orders", query="Count the orders of North.")),
            "count_orders": [call, {"answer": "North has 12 orders.", "values": {"orders": 12}}],
        }
    )
    result = await run_analysis(QUESTION, model=model, tools=[count_orders])
    assert "- count_orders: Count the orders of a region." in model.find("candidates").question
    assert [spec.name for spec in model.find("count_orders").tools] == ["count_orders"]
    assert result.tasks[0].result == "North has 12 orders."
    assert result.tasks[0].calls == 2


async def test_an_added_tool_may_not_have_the_name_of_an_own_one() -> None:
    @tool
    def logic_kernel(query: str) -> str:
        """Think."""
        return query

    with pytest.raises(SettingsError, match="the tool logic_kernel has the name of one of the analyst's own"):
        await run_analysis(QUESTION, model=StagedModel(WHOLE), tools=[logic_kernel])


async def test_own_tools_are_judged_by_the_policy_and_journaled(tmp_path) -> None:
    policy = Policy([Rule("deny", "logic_kernel")], profile="all")
    journal = FileJournal(tmp_path / "calls.jsonl")
    result = await run_analysis(QUESTION, model=StagedModel(WHOLE), policy=policy, journal=journal)
    denied = result.tasks[1]
    assert (denied.status, len(denied.attempts)) == ("failed", 1)
    assert denied.error is not None
    assert denied.error.startswith("denied: ")
    recorded = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert {one.get("name") or one.get("tool") for one in recorded} >= {"knowledge_retriever"}


@pytest.mark.parametrize("question", ["", "  \n"])
async def test_an_empty_question_is_refused(question: str) -> None:
    with pytest.raises(SettingsError, match="the question is empty"):
        await run_analysis(question, model=StagedModel(WHOLE))


async def test_a_question_without_data_says_so_to_every_planning_stage() -> None:
    model = StagedModel(WHOLE)
    await run_analysis(QUESTION, model=model)
    for stage in ("complexity", "candidates", "iteration_1", "synthesis", "focused_answer"):
        assert "No data were given. Don't assume any." in model.find(stage).question


async def test_a_model_without_temperature_is_told_in_the_result() -> None:
    result = await run_analysis(QUESTION, model=StagedModel(WHOLE, settings=frozenset()))
    assert result.notices == ("staged takes no temperature, so it is asked without one",)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": "openai:gpt-5", "groq_api_key": "k"}, SettingsError, "groq_api_key is for models of Groq"),
        ({"model": StagedModel}, SettingsError, "a model is a name such as"),
        ({"model": "no-such-model"}, ModelError, "no-such-model"),
        (
            {"model": ferrule.model("embedded")},
            SettingsError,
            "the embedded model can't plan an analysis or write code",
        ),
        (
            {"model": ferrule.model(StagedModel(WHOLE)).chat("And?").using(mode="native").with_(temperature=0.5)},
            SettingsError,
            "and this one has a conversation and tools and settings of its model and steps or hooks: give model=ferr",
        ),
        (
            {"model": StagedModel(WHOLE), "settings": AnalysisSettings(models={"logic_kernel": ferrule.model})},
            SettingsError,
            "a model is a name such as",
        ),
    ],
)
async def test_a_model_that_cannot_be_used_is_an_error(options, error, message) -> None:
    with pytest.raises(error, match=message):
        await run_analysis(QUESTION, **options)


async def test_the_model_of_a_pipeline_is_asked() -> None:
    first, other = StagedModel(WHOLE), StagedModel(STOP, name="other")
    settings = AnalysisSettings(models={"iteration": ferrule.model(other)})
    result = await run_analysis(QUESTION, model=ferrule.model(first), settings=settings)
    assert (result.answer, result.stopped) == ("Plan B, by 12.", None)
    assert "analysis/synthesis/0" in first.list_stages()
    assert other.list_stages() == ["analysis/iteration_1/0"]


async def test_without_a_model_groq_is_asked_which_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(ModelError, match="no key for Groq"):
        await run_analysis(QUESTION)


def test_an_unknown_option_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="an analysis has no option 'modle'; expected one of data, model"):
        stream_analysis(QUESTION, modle="openai:gpt-5")


async def test_a_model_for_an_unknown_stage_is_refused() -> None:
    settings = AnalysisSettings(models={"synthesys": StagedModel({})})
    with pytest.raises(SettingsError, match="models: 'synthesys' is neither a tool nor a stage; did you mean synth"):
        await run_analysis(QUESTION, model=StagedModel(WHOLE), settings=settings)


async def test_numbered_stages_have_one_model() -> None:
    other = StagedModel(STOP, name="other")
    await run_analysis(QUESTION, model=StagedModel(WHOLE), settings=AnalysisSettings(models={"iteration": other}))
    assert other.list_stages() == ["analysis/iteration_1/0"]
