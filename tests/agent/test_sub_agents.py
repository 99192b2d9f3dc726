"""Agents as tools: a sub-agent's limits, policy, journal, progress, and the end of its recursion."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import pytest

from ferrule import Tool, ToolCall, assistant, model, tool, user
from ferrule.agent.sub_agents import DEEPEST, run_sub_agent
from ferrule.errors import ModelError, SettingsError
from ferrule.events import MessageFinished, ToolProgress
from ferrule.execution import Decision, FileJournal, Policy, Rule, SessionGrants
from ferrule.execution.decisions import ApprovalRequest
from ferrule.execution.journal import read_entries
from ferrule.models import prices
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.scope import CallScope


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"a cat in {place}"


def call_agent(identifier: str = "a", name: str = "find") -> ToolCall:
    return ToolCall(identifier, name, '{"task": "Find the cat."}')


def look_at(place: str, identifier: str = "call_1") -> ToolCall:
    return ToolCall(identifier, "look", f'{{"place": "{place}"}}')


def make_finder(*written: object, **options: object):
    pipeline = model(ScriptedModel(*written)).system("You find cats.").using(look, **options)
    return pipeline.as_tool("find", "Find an animal.")


async def test_a_sub_agent_answers_a_call() -> None:
    finder = make_finder(look_at("the garden"), "In the garden.")
    assert finder.parameters["required"] == ["task"]
    assert finder.description == "Find an animal."
    run = await model(ScriptedModel(call_agent(), "It is in the garden.")).chat("Where?").using(finder).run()
    assert [message.role for message in run.conversation.messages] == ["user", "assistant", "tool", "assistant"]
    assert run.conversation.messages[2].result.text == "In the garden."
    (sub,) = run.sub_runs
    assert (sub.call_id, sub.name, sub.run.stopped) == ("a", "find", "done")
    assert [message.text for message in sub.run.conversation.messages[:2]] == ["You find cats.", "Find the cat."]
    assert sub.run.conversation.messages[3].result.text == "a cat in the garden"


async def test_a_typed_answer_is_the_result() -> None:
    counter = model(ScriptedModel('{"value": 3}')).parse_as(int).as_tool("find", "Count cats.")
    run = await model(ScriptedModel(call_agent(), "Three.")).chat("How many?").using(counter).run()
    assert run.conversation.messages[2].result.text == "3"


async def test_a_limit_on_cost_holds_only_where_each_price_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = ScriptedModel(call_agent(), "It isn't there.")
    with pytest.raises(SettingsError, match=r"the price of scripted isn't known; set it with configure_prices"):
        await model(scripted).chat("Where?").within(cost=1.0).run()
    assert not scripted.seen
    inner = ScriptedModel("Here.")
    inner.name = "unknown"
    finder = model(inner).as_tool("find", "Find.")
    monkeypatch.setattr(prices, "_configured", prices.read_prices({"scripted": {"input": 1.0, "output": 1.0}}))
    run = await model(scripted).chat("Where?").using(finder).within(cost=1.0).run()
    assert (run.stopped, run.cost, inner.seen) == ("done", 0.0, [])
    assert "the price of unknown isn't known" in run.conversation.messages[2].result.text


async def test_rounds_and_calls_count_together() -> None:
    finder = make_finder(*[look_at(f"room {n}", f"call_{n}") for n in range(5)], "Nowhere.")
    pipeline = model(ScriptedModel(call_agent(), "Nowhere.")).chat("Where?").using(finder)

    run = await pipeline.within(rounds=3).run()
    assert run.stopped == "rounds"
    assert run.sub_runs[0].run.stopped == "rounds"
    result = run.conversation.messages[2].result
    assert result.status == "error"
    assert "find stopped before it was done (rounds)" in result.text

    finder = make_finder(*[look_at(f"room {n}", f"call_{n}") for n in range(5)], "Nowhere.")
    run = await model(ScriptedModel(call_agent(), "No.")).chat("Where?").using(finder).within(calls=3).run()
    assert run.sub_runs[0].run.stopped == "calls"
    answered = [m.result.status for m in run.sub_runs[0].run.conversation.messages if m.role == "tool"]
    assert answered == ["ok", "ok", "cancelled"]


async def test_usage_includes_sub_agents() -> None:
    sub = model("embedded").using(tool(name="calculator")(calculate))
    run = await model(ScriptedModel(call_agent(), "408.")).chat("?").using(sub.as_tool("find", "Count.")).run()
    nested = run.sub_runs[0].run
    assert nested.usage.sampled_tokens > 0
    assert run.usage.sampled_tokens >= nested.usage.sampled_tokens
    pipeline = model(ScriptedModel(call_agent(), "408.")).chat("?").using(sub.as_tool("find", "Count."))
    tight = await pipeline.within(tokens=1).run()
    assert tight.stopped == "tokens"


def calculate(expression: str) -> str:
    """Calculate."""
    return expression


async def test_a_sub_agent_is_never_allowed_more_than_the_run_above() -> None:
    forbids = Policy((Rule("deny", tool="look", reason="not allowed above"),))
    for own in (None, Policy(profile="all"), Policy((Rule("allow", tool="*"),))):
        finder = make_finder(look_at("the garden"), "I may not look.", policy=own)
        run = await model(ScriptedModel(call_agent(), "?")).chat("Where?").using(finder, policy=forbids).run()
        result = run.sub_runs[0].run.conversation.messages[3].result
        assert (result.status, "not allowed above" in result.text) == ("denied", True)


async def test_its_own_policy_tightens_further() -> None:
    finder = make_finder(look_at("the garden"), "I may not.", policy=Policy((Rule("deny", tool="look"),)))
    run = await model(ScriptedModel(call_agent(), "?")).chat("Where?").using(finder).run()
    assert run.sub_runs[0].run.conversation.messages[3].result.status == "denied"


class Person:
    """Approves, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def decide(self, request: ApprovalRequest) -> Decision:
        self.asked.append(request.tool)
        return Decision.allow(by="Ada")


async def test_whoever_is_asked_above_is_asked_for_the_sub_agent() -> None:
    above, own = Person(), Person()
    finder = make_finder(look_at("the garden"), "In the garden.", approver=own)
    policy = Policy((Rule("ask", tool="look"), Rule("allow", tool="find")))
    run = await model(ScriptedModel(call_agent(), "?")).chat("?").using(finder, policy=policy, approver=above).run()
    assert (above.asked, own.asked) == (["look"], [])
    assert run.sub_runs[0].run.text == "In the garden."


async def test_the_journal_above_records_its_calls_under_their_call(tmp_path: Path) -> None:
    with FileJournal(tmp_path / "calls.jsonl") as journal:
        finder = make_finder(look_at("the garden"), "In the garden.")
        await model(ScriptedModel(call_agent(), "?")).chat("Where?").using(finder, journal=journal).run()
    lines = [(line["event"], line["call"], line["tool"]) for line in read_entries(tmp_path / "calls.jsonl")]
    assert lines == [
        ("started", "a", "find"),
        ("started", "a/call_1", "look"),
        ("finished", "a/call_1", "look"),
        ("finished", "a", "find"),
    ]


async def test_what_it_does_is_progress_of_its_call() -> None:
    finder = make_finder(look_at("the garden"), "In the garden.")
    async with model(ScriptedModel(call_agent(), "?")).chat("Where?").using(finder).stream() as run:
        events = [event async for event in run]
    progress = [event for event in events if isinstance(event, ToolProgress)]
    assert {event.call_id for event in progress} == {"a"}
    assert progress[-1].text == "1 call: In the garden."


async def test_cancelling_stops_the_sub_agent() -> None:
    began = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        began.set()
        await asyncio.sleep(3600)
        return ""

    finder = model(ScriptedModel(ToolCall("w", "wait", "{}"))).using(wait).as_tool("find", "Find.")
    pipeline = model(ScriptedModel(call_agent())).chat("Where?").using(finder)
    async with pipeline.stream() as run:
        await began.wait()
    assert run.stopped == "cancelled"
    nested = run.sub_runs[0].run
    assert nested.stopped == "cancelled"
    assert nested.conversation.messages[-1].result.status == "cancelled"


async def test_the_time_above_holds_for_it() -> None:
    @tool
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.sleep(3600)
        return ""

    finder = model(ScriptedModel(ToolCall("w", "wait", "{}"))).using(wait).as_tool("find", "Find.")
    run = await model(ScriptedModel(call_agent())).chat("Where?").using(finder).within(seconds=0.2).run()
    assert (run.stopped, run.sub_runs[0].run.stopped) == ("time", "cancelled")


async def test_recursion_ends_with_a_clear_error() -> None:
    depths: list[int] = []

    @tool
    async def find(task: str, scope: CallScope) -> str:
        """Find, by asking another finder."""
        depths.append(len(depths))
        again = model(ScriptedModel(call_agent(f"c{len(depths)}"), "Nowhere.")).chat(task).using(find)
        nested = await run_sub_agent(again, scope)
        return next(m.result.text for m in nested.conversation.messages if m.role == "tool")

    run = await model(ScriptedModel(call_agent(), "Nowhere.")).chat("Where?").using(find).within(rounds=100).run()
    assert run.stopped == "done"
    assert len(depths) == DEEPEST + 1
    assert f"agents are nested {DEEPEST} deep already; answer without it" in run.conversation.messages[2].result.text


async def test_an_error_of_its_model_is_a_result_and_kept() -> None:
    class Broken(ScriptedModel):
        async def stream(self, *_given):
            raise ModelError("broken: no answer")
            yield

    finder = model(Broken()).as_tool("find", "Find.")
    run = await model(ScriptedModel(call_agent(), "I could not.")).chat("Where?").using(finder).run()
    assert "broken: no answer" in run.conversation.messages[2].result.text
    assert isinstance(run.sub_runs[0].run.error, ModelError)
    assert run.text == "I could not."


async def test_a_handoff_takes_over_the_conversation() -> None:
    scripted = ScriptedModel("Your invoice is paid.")
    billing = model(scripted).system("You do billing.").as_tool("billing", "Questions of money.", handoff=True)
    pipeline = model(ScriptedModel(["One moment.", call_agent("a", "billing")])).system("You are the front desk.")
    greeted = pipeline.conversation.add(user("Hello"), assistant("Hi!"))
    pipeline = pipeline.chat(greeted).chat("Did I pay?").using(billing)
    async with pipeline.stream() as run:
        events = [event async for event in run]
    assert (run.text, run.stopped) == ("Your invoice is paid.", "done")
    run.conversation.check()
    seen = [(message.role, message.text) for message in scripted.seen[0].messages]
    assert seen[0] == ("system", "You do billing.")
    assert ("system", "You are the front desk.") not in seen
    said = [("user", "Hello"), ("assistant", "Hi!"), ("user", "Did I pay?"), ("assistant", "One moment.")]
    assert seen[1:5] == said
    assert seen[-1] == ("user", "Find the cat.")
    assert [event.message.text for event in events if isinstance(event, MessageFinished)][-1] == run.text


def test_it_can_be_sent_to_another_process() -> None:
    sub = model("embedded").as_tool("find", "Find.")
    again = pickle.loads(pickle.dumps(model("embedded").using(sub)))
    assert again.registry.names == ("find",)


async def test_outside_of_a_run_it_is_a_run_of_its_own() -> None:
    scope = CallScope()
    run = await run_sub_agent(model(ScriptedModel("Here.")).chat("Where?"), scope)
    assert run.text == "Here."


class _AlwaysApprover:
    def __init__(self) -> None:
        self.asked = 0

    async def decide(self, request: ApprovalRequest) -> Decision:
        self.asked += 1
        return Decision.always()


async def test_an_always_for_a_sub_agents_tool_is_none_for_another_of_its_name() -> None:
    def own_look(place: str) -> str:
        return f"nothing in {place}"

    other = Tool.from_callable(own_look, name="look", description="Look elsewhere.")
    approver = _AlwaysApprover()
    finder = make_finder(look_at("a"), look_at("b", "call_2"), "Nowhere.")
    scripted = ScriptedModel(call_agent(), look_at("c"), look_at("d", "call_2"), "Nowhere.")
    policy = Policy(profile="ask", grants=SessionGrants())
    await model(scripted).chat("Where?").using(finder, other, policy=policy, approver=approver).run()
    assert approver.asked == 3  # about the agent, its tool, and the other tool of that name


@pytest.mark.filterwarnings("error")
async def test_a_rule_for_a_tool_of_a_sub_agent_is_not_taken_for_misspelt() -> None:
    finder = make_finder(look_at("a"), "I may not look.")
    policy = Policy((Rule("deny", "look"),))
    run = await model(ScriptedModel(call_agent(), "No.")).chat("Where?").using(finder, policy=policy).run()
    assert run.sub_runs[0].run.conversation.messages[3].result.status == "denied"
