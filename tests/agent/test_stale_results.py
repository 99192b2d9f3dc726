"""Results with a limited life: when they are shown, and that the conversation keeps them."""

from __future__ import annotations

import pytest

from ferrule import ToolCall, model, tool
from ferrule.agent.stale_results import ExpireResults
from ferrule.errors import SettingsError, ToolFailed
from ferrule.models.scripted import ScriptedModel

NOTE = "[This result is out of date and no longer shown: call get_price again if it matters.]"


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make_tools(clock: Clock, step: float) -> list[object]:
    prices = iter(["3 €", "4 €", "5 €"])

    @tool
    def get_price(of: str) -> str:
        """Look up a price."""
        return f"{of}: {next(prices)}"

    @tool
    def wait() -> str:
        """Wait."""
        clock.now += step
        return "waited"

    return [get_price, wait]


def price(identifier: str) -> ToolCall:
    return ToolCall(identifier, "get_price", '{"of": "tea"}')


def shown(scripted: ScriptedModel, request: int) -> list[str]:
    return [message.result.text for message in scripted.seen[request].messages if message.role == "tool"]


async def test_an_old_result_is_shown_as_out_of_date_and_kept_in_the_conversation() -> None:
    clock = Clock()
    scripted = ScriptedModel(price("a"), ToolCall("b", "wait", "{}"), price("c"), "4 €.")
    pipeline = model(scripted).using(*make_tools(clock, 61)).hook(ExpireResults(60, "get_*", clock=clock))
    run = await pipeline.chat("What does tea cost?").run()
    assert shown(scripted, 1) == ["tea: 3 €"]
    assert shown(scripted, 2) == [NOTE, "waited"]
    assert shown(scripted, 3) == [NOTE, "waited", "tea: 4 €"]
    assert [m.result.text for m in run.conversation.messages if m.role == "tool"] == ["tea: 3 €", "waited", "tea: 4 €"]


async def test_a_result_that_is_young_enough_stays_and_so_do_those_of_other_tools() -> None:
    clock = Clock()
    scripted = ScriptedModel(price("a"), ToolCall("b", "wait", "{}"), ToolCall("c", "wait", "{}"), "3 €.")
    hook = ExpireResults(60, "get_price", clock=clock)
    await model(scripted).using(*make_tools(clock, 59)).hook(hook).chat("What does tea cost?").run()
    assert shown(scripted, 2) == ["tea: 3 €", "waited"]
    assert shown(scripted, 3) == [NOTE, "waited", "waited"]


async def test_results_grow_old_from_one_run_to_the_next_and_those_of_unknown_age_are_old() -> None:
    clock = Clock()
    hook = ExpireResults(60, clock=clock)
    scripted = ScriptedModel(price("a"), "3 €.", "3 €.", "I must look again.", "I don't know.")
    pipeline = model(scripted).using(*make_tools(clock, 0)).hook(hook)
    run = await pipeline.chat("What does tea cost?").run()
    run = await pipeline.chat(run.conversation).chat("And now?").run()
    assert shown(scripted, 2) == ["tea: 3 €"]
    clock.now += 61
    run = await pipeline.chat(run.conversation).chat("And now?").run()
    assert shown(scripted, 3) == [NOTE]
    other = model(scripted).using(*make_tools(clock, 0)).hook(ExpireResults(60, clock=clock))
    await other.chat(run.conversation).chat("And now?").run()
    assert shown(scripted, 4) == [NOTE]


async def test_errors_stay() -> None:
    clock = Clock()

    @tool
    def fail() -> str:
        """Fail."""
        clock.now += 100
        raise ToolFailed("closed")

    scripted = ScriptedModel(ToolCall("a", "fail", "{}"), ToolCall("b", "fail", "{}"), "Closed.")
    await model(scripted).using(fail).hook(ExpireResults(1, clock=clock)).chat("?").run()
    assert shown(scripted, 2) == ["error: closed", "error: closed"]


@pytest.mark.parametrize("seconds", [0, -1, True, "60", float("nan")])
def test_seconds_must_be_above_0(seconds: object) -> None:
    with pytest.raises(SettingsError, match="ExpireResults needs seconds above 0"):
        ExpireResults(seconds)  # type: ignore[arg-type]
