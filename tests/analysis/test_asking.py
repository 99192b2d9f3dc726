"""Every question of an analysis goes through one place: counted, limited, reported, and known by its key."""

import asyncio

import pytest
from pydantic import BaseModel
from staged_model import StagedModel

from ferrule.agent.pipeline import Pipeline
from ferrule.analysis.asking import AnalysisToolOptions, Asker, ModelChoice, StageKey
from ferrule.analysis.events import AnalysisEvent, Notice, StageFinished, StageStarted
from ferrule.analysis.limits import AnalysisLimits, LimitReached, list_free_models
from ferrule.conversation import ToolCall
from ferrule.errors import OutputInvalid, ProviderError, SettingsError
from ferrule.events import NO_USAGE, Usage
from ferrule.models.prices import configure_prices
from ferrule.tools.decorator import tool


class Sum(BaseModel):
    total: int


def make_asker(
    model: StagedModel, *events: list[AnalysisEvent], limits: AnalysisLimits | None = None, **others: StagedModel
) -> Asker:
    emit = events[0].append if events else lambda _: None
    return Asker(ModelChoice(model, others), limits or AnalysisLimits(), emit, AnalysisToolOptions())


async def ask(asker: Asker, stage: str = "code", attempt: int = 0, **options: object) -> Sum:
    given = {"temperature": 0.3, **options}
    return await asker.ask(StageKey("t1", stage, attempt), "Add.", "2 + 2?", Sum, **given)


async def test_an_answer_has_its_type_and_is_reported() -> None:
    events: list[AnalysisEvent] = []
    model = StagedModel({"t1/code/0": {"total": 4}})
    asker = make_asker(model, events)
    assert await ask(asker) == Sum(total=4)
    assert model.seen[0].settings.temperature == 0.3
    assert model.seen[0].conversation.messages[0].text == "Add."
    started, finished = events
    assert started == StageStarted(StageKey("t1", "code"), "staged")
    assert isinstance(finished, StageFinished)
    assert (finished.usage, finished.calls, finished.error) == (Usage(100, 0, 10), 1, None)


async def test_an_answer_that_does_not_fit_is_sent_back_and_counted() -> None:
    model = StagedModel({"code": ["four", {"total": 4}]})
    asker = make_asker(model)
    assert (await ask(asker)).total == 4
    assert asker.limits.sum_up("t1").calls == 2
    assert asker.limits.sum_up().usage == Usage(200, 0, 20)


async def test_nonsense_is_an_error_after_the_retries() -> None:
    events: list[AnalysisEvent] = []
    with pytest.raises(OutputInvalid, match="must be JSON"):
        await ask(make_asker(StagedModel({"code": "four"}), events))
    assert "must be JSON" in str(events[-1])


async def test_a_key_is_asked_once() -> None:
    asker = make_asker(StagedModel({"code": {"total": 4}}))
    await ask(asker)
    with pytest.raises(ValueError, match="t1/code/0 was asked before"):
        await ask(asker)
    await ask(asker, attempt=1)


async def test_keys_belong_to_their_own_request_also_at_the_same_time() -> None:
    model = StagedModel({"t1/code": {"total": 1}, "t1/checks": {"total": 2}}, delays={"code": 0.02})
    asker = make_asker(model)
    one, other = await asyncio.gather(ask(asker, "code"), ask(asker, "checks"))
    assert (one.total, other.total) == (1, 2)


async def test_a_model_without_temperature_is_asked_without_and_that_is_said() -> None:
    events: list[AnalysisEvent] = []
    model = StagedModel({"code": {"total": 4}}, settings=frozenset())
    asker = make_asker(model, events)
    await ask(asker)
    await ask(asker, attempt=1)
    assert "temperature" not in model.seen[0].settings.model_fields_set
    assert [event for event in events if isinstance(event, Notice)] == [
        Notice("staged takes no temperature, so it is asked without one")
    ]


async def test_a_temperature_that_the_provider_refuses_is_left_out_from_then_on() -> None:
    events: list[AnalysisEvent] = []
    refusal = ProviderError("staged answered 400: 'temperature' is not supported with this model", 400)
    model = StagedModel(
        {"code": lambda request: refusal if "temperature" in request.settings.model_fields_set else {"total": 4}}
    )
    asker = make_asker(model, events)
    assert (await ask(asker)).total == 4
    assert (await ask(asker, attempt=1)).total == 4
    assert len(model.seen) == 3
    assert "is not supported with this model" in next(event.text for event in events if isinstance(event, Notice))


async def test_another_refusal_is_raised() -> None:
    with pytest.raises(ProviderError, match="no such model"):
        await ask(make_asker(StagedModel({"code": ProviderError("no such model", 404)})))


async def test_a_slow_answer_is_a_timeout() -> None:
    asker = make_asker(StagedModel({"code": {"total": 4}}, delays={"code": 5}))
    with pytest.raises(TimeoutError, match=r"staged took longer than 0\.01 s for code"):
        await ask(asker, timeout=0.01)


async def test_the_limit_of_calls_keeps_two_for_the_answer() -> None:
    asker = make_asker(StagedModel({"code": {"total": 4}, "synthesis": {"total": 5}}), limits=AnalysisLimits(calls=5))
    for attempt in range(3):
        await ask(asker, attempt=attempt)
    with pytest.raises(LimitReached, match="the limit of 5 requests to models was reached"):
        await ask(asker, attempt=3)
    await ask(asker, "synthesis", 0)
    await ask(asker, "synthesis", 1)
    with pytest.raises(LimitReached):
        await ask(asker, "synthesis", 2)


async def test_the_cost_is_limited_and_counted() -> None:
    configure_prices({"staged": {"input": 1000.0, "output": 1000.0}})
    try:
        limits = AnalysisLimits(cost=0.15)
        asker = make_asker(StagedModel({"code": {"total": 4}}), limits=limits)
        await ask(asker)
        assert limits.sum_up("t1").cost == pytest.approx(0.11)
        await ask(asker, attempt=1)
        with pytest.raises(LimitReached, match=r"the limit of \$0.15 was reached; \$0.015 of it is kept"):
            await ask(asker, attempt=2)
    finally:
        configure_prices(None)


async def test_a_sub_agent_costs_what_its_own_model_does() -> None:
    prices = {"staged": {"input": 1000.0, "output": 1000.0}, "cheap": {"input": 10.0, "output": 10.0}}
    helper = Pipeline(StagedModel({"code": "four"}, name="cheap")).as_tool("add", "Add.")
    asker = make_asker(StagedModel({"code": [ToolCall("a", "add", '{"task": "2 + 2?"}'), {"total": 4}]}))
    configure_prices(prices)
    try:
        await ask(asker, tools=[helper])
    finally:
        configure_prices(None)
    assert asker.limits.sum_up("t1").cost == pytest.approx(2 * 0.11 + 0.0011)


def test_a_cost_limit_needs_prices() -> None:
    with pytest.raises(SettingsError, match="the price of staged isn't known"):
        AnalysisLimits(cost=1).check_prices(["staged"])
    AnalysisLimits(cost=1).check_prices(["embedded", "openai:gpt-5"])
    AnalysisLimits().check_prices(["staged"])
    assert list_free_models(["embedded", "openai:gpt-5", "staged"], {}) == ["embedded"]


@pytest.mark.parametrize(
    ("each", "before", "reserve"),
    [(0.03125, 0.90625, "0.1"), (0.125, 0.75, "0.25"), (0.3125, 0.9375, "0.1")],
    ids=["a tenth", "two requests", "no room for two"],
)
def test_a_part_of_the_cost_is_kept_for_the_answer(each: float, before: float, reserve: str) -> None:
    limits = AnalysisLimits(cost=1)
    while (spent := limits.sum_up().cost or 0.0) < before:
        limits.count_request("t1", "code")
        limits.count_usage("t1", NO_USAGE, each)
    with pytest.raises(LimitReached, match=rf"the limit of \$1 was reached; \${reserve} of it is kept"):
        limits.count_request("t1", "code")
    assert spent == pytest.approx(before)
    limits.count_request("analysis", "synthesis")


async def test_the_cost_is_unknown_without_a_price() -> None:
    asker = make_asker(StagedModel({"code": {"total": 4}}))
    await ask(asker)
    assert asker.limits.sum_up().cost is None


async def test_no_question_is_asked_after_the_last_second() -> None:
    now = [0.0]
    limits = AnalysisLimits(seconds=10, clock=lambda: now[0])
    asker = make_asker(StagedModel({"code": {"total": 4}}), limits=limits)
    now[0] = 11.0
    with pytest.raises(LimitReached, match="the limit of 10 seconds was reached"):
        await ask(asker)


async def test_a_tool_or_a_stage_may_have_a_model_of_its_own() -> None:
    default, other = StagedModel({"code": {"total": 1}}), StagedModel({"code": {"total": 2}}, name="other")
    asker = make_asker(default, py_executor=other)
    assert (await ask(asker)).total == 1
    assert (await ask(asker.for_tool("py_executor"), attempt=1)).total == 2
    assert asker.models.names == ("staged", "other")


async def test_tools_are_offered_in_the_same_loop() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    model = StagedModel({"code": [ToolCall("c1", "add", '{"a": 2, "b": 2}'), {"total": 4}]})
    assert (await ask(make_asker(model), tools=[add])).total == 4
    assert [spec.name for spec in model.seen[0].tools] == ["add"]
    assert model.seen[1].conversation.messages[-1].result.text == "4"
