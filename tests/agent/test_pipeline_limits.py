"""What stops a run, and what is left of it; what is forced, resumed, and noticed."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ferrule.agent.pipeline import model
from ferrule.conversation import ToolCall, assistant
from ferrule.errors import DialectError, ModelError, PolicyError, SettingsError, ToolRequired
from ferrule.events import Usage
from ferrule.execution import Decision, FileJournal, Policy, Rule
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.decorator import tool
from tables import each_case

RAN: list[int] = []


@tool
async def double(n: int) -> int:
    """Double a number."""
    RAN.append(n)
    return 2 * n


def call(number: int, n: int = 7) -> ToolCall:
    return ToolCall(f"c{number}", "double", json.dumps({"n": n}))


async def test_a_limit_on_calls_answers_the_others_as_not_run() -> None:
    RAN.clear()
    scripted = ScriptedModel([call(1, 1)], [call(2, 2), call(3, 3)])
    run = await model(scripted).chat("?").using(double).within(calls=2).run()
    assert run.stopped == "calls"
    assert RAN == [1, 2]
    results = [m.result for m in run.conversation.messages if m.role == "tool"]
    assert [result.status for result in results] == ["ok", "ok", "cancelled"]
    assert results[-1].text == "error: not run: the limit of 2 calls was reached"
    run.conversation.check()


async def test_a_limit_on_time_cancels_what_runs() -> None:
    @tool
    async def forever() -> str:
        """Never end."""
        await asyncio.sleep(60)
        return "never"

    run = (
        await model(ScriptedModel(ToolCall("c1", "forever", "{}"))).chat("?").using(forever).within(seconds=0.05).run()
    )
    assert run.stopped == "time"
    assert run.conversation.messages[-1].result.status == "cancelled"
    run.conversation.check()


async def test_limits_on_tokens_and_cost_do_not_ask_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text('["embedded"]\ninput = 1000\noutput = 2000\n')
    monkeypatch.setenv("FERRULE_PRICES", str(table))
    from ferrule.builtin_tools import calculator

    async with model("embedded") as pipeline:
        asked = pipeline.chat("What is 12 * 34?").using(calculator)
        whole = await asked.run()
        assert whole.stopped == "done"
        assert whole.cost == pytest.approx(_cost(whole.usage))
        short = await asked.within(tokens=1).run()
        assert short.stopped == "tokens"
        dear = await asked.within(cost=whole.cost / 100).run()
        assert dear.stopped == "cost"
        for run in (short, dear):
            run.conversation.check()
            assert not run.conversation.pending


def _cost(usage: Usage) -> float:
    return (usage.prompt_tokens * 1000 + usage.sampled_tokens * 2000) / 1e6


async def test_a_forced_call_is_asked_for_and_then_required() -> None:
    scripted = ScriptedModel("I know: 14.", call(1), "14.")
    run = await model(scripted).chat("?").using(double, force=True).run()
    assert run.text == "14."
    assert run.conversation.messages[2].text == "Call one of your tools before you answer."
    with pytest.raises(ToolRequired, match="was asked 2 times and called no tool"):
        await model(ScriptedModel("No.", "No.")).chat("?").using(double, force=True).within(rounds=2).run()


async def test_a_pause_is_resumed_with_decisions_and_what_ran_is_not_run_again() -> None:
    RAN.clear()
    policy = Policy((Rule("ask", tool="*"),))
    scripted = ScriptedModel([call(1, 1), call(2, 2)], "Done.")
    pipeline = model(scripted).using(double, policy=policy, on_ask="pause")
    paused = await pipeline.chat("?").run()
    assert paused.stopped == "paused"
    assert [pending.call.id for pending in paused.pending] == ["c1", "c2"]
    assert RAN == []
    decisions = {p.call.id: p.decide(Decision.allow()) for p in paused.pending[:1]}
    again = await pipeline.chat(paused.conversation).run(decisions=decisions)
    assert again.stopped == "paused"
    assert RAN == [1]
    last = {p.call.id: p.decide(Decision.deny("not that")) for p in again.pending}
    done = await pipeline.chat(again.conversation).run(decisions=last)
    assert (done.stopped, done.text) == ("done", "Done.")
    assert RAN == [1]
    assert [m.result.status for m in done.conversation.messages if m.role == "tool"] == ["ok", "denied"]
    done.conversation.check()


async def test_a_call_that_an_earlier_process_began_is_never_run_twice(tmp_path: Path) -> None:
    RAN.clear()
    journal = FileJournal(tmp_path / "journal.jsonl")
    journal.record("started", journal.make_key(), {"call": "c1", "tool": "double", "arguments": {"n": 1}})
    conversation = model(ScriptedModel()).chat("?").conversation.add(assistant(call(1, 1), call(2, 2)))
    run = await model(ScriptedModel("So.")).chat(conversation).using(double, journal=journal).run()
    assert [m.result.status for m in run.conversation.messages if m.role == "tool"] == ["interrupted", "ok"]
    assert RAN == [2]
    # It was answered, so it keeps no other conversation's call from being run.
    again = await model(ScriptedModel("So.")).chat(conversation).using(double, journal=journal).run()
    assert [m.result.status for m in again.conversation.messages if m.role == "tool"] == ["ok", "ok"]


async def test_a_begun_call_after_one_that_was_not_begun_is_not_run_again(tmp_path: Path) -> None:
    RAN.clear()
    journal = FileJournal(tmp_path / "journal.jsonl")
    journal.record("started", journal.make_key(), {"call": "c2", "tool": "double", "arguments": {"n": 2}})
    conversation = model(ScriptedModel()).chat("?").conversation.add(assistant(call(1, 1), call(2, 2), call(3, 3)))
    asks = Policy((Rule("ask", tool="*"),))
    pipeline = model(ScriptedModel("So.")).chat(conversation).using(double, journal=journal, policy=asks)
    paused = await pipeline.using(on_ask="pause").run()
    assert [call.id for call in paused.conversation.pending] == ["c1", "c2", "c3"]
    decisions = {one.call.id: one.decide(Decision.allow()) for one in paused.pending}
    run = await pipeline.run(decisions=decisions)
    assert [m.result.status for m in run.conversation.messages if m.role == "tool"] == ["ok", "interrupted", "ok"]
    assert RAN == [1, 3]


async def test_a_call_made_again_and_again_is_noticed() -> None:
    scripted = ScriptedModel(*(call(n) for n in range(4)), call(9, 8), "Enough.")
    run = await model(scripted).chat("?").using(double).run()
    texts = [m.result.text for m in run.conversation.messages if m.role == "tool"]
    assert texts[:2] == ["14", "14"]
    assert texts[2].endswith(
        "[This is call 3 of double with the same arguments and the same result: try something else.]"
    )
    assert "This is call 4" in texts[3]
    assert texts[4] == "16"


async def test_the_mode_is_told_and_what_can_not_be_is_refused() -> None:
    text = '<tool_call>{"name": "double", "arguments": {"n": 4}}</tool_call>'
    run = await model(ScriptedModel(text, "8.")).chat("?").using(double, mode="hermes").run()
    assert (run.mode, run.text) == ("hermes", "8.")
    assert (await model(ScriptedModel("8.")).chat("?").run()).mode == "api"

    class Toolless(ScriptedModel):
        capabilities = replace(ScriptedModel.capabilities, native_tools=False)

    assert (await model(Toolless(text, "8.")).chat("?").using(double).run()).mode == "hermes"
    with pytest.raises(ModelError, match="has no tools of its own"):
        await model(Toolless()).chat("?").using(double, mode="api").run()
    with pytest.raises(SettingsError, match="no option 'seconds_'; did you mean seconds"):
        model("embedded").within(seconds_=3)  # type: ignore[arg-type]


@each_case(
    ("options", "error", "words"),
    [
        ({"policy": "ask"}, PolicyError, r"policy must be a Policy, not 'ask'; give a profile as Policy\(profile=…\)"),
        ({"approver": "yes"}, SettingsError, r"approver must have the method decide\(\)"),
        (
            {"journal": "j.jsonl"},
            SettingsError,
            r"journal must be a Journal, such as FileJournal\(path\), not 'j.jsonl'",
        ),
        ({"blobs": "folder"}, SettingsError, r"blobs must be a BlobStore, such as BlobStore\(folder\), not 'folder'"),
        ({"workspace": 3}, SettingsError, "workspace must be the path of a folder, not 3"),
        ({"on_ask": "paus"}, SettingsError, "on_ask must be 'deny' or 'pause', not 'paus'"),
        ({"lazy": "yes"}, SettingsError, "lazy must be True, False or 'auto', not 'yes'"),
        ({"mode": "hermess"}, DialectError, "unknown notation 'hermess'; did you mean hermes"),
    ],
)
def test_an_option_that_can_not_be_is_refused_at_the_call(options, error, words):
    with pytest.raises(error, match=words):
        model(ScriptedModel("x")).using(**options)


@pytest.mark.parametrize(
    "limits",
    [{"rounds": "3"}, {"calls": -1}, {"tokens": 2.5}, {"cost": "1"}, {"seconds": float("nan")}, {"rounds": True}],
)
def test_a_limit_that_can_not_be_is_refused_at_the_call(limits):
    (name,) = limits
    with pytest.raises(SettingsError, match=f"{name} must be a"):
        model(ScriptedModel("x")).within(**limits)


async def test_a_choice_that_is_no_tool_is_refused():
    with pytest.raises(SettingsError, match="choice='nope' is neither auto, required, none nor a tool"):
        await model(ScriptedModel("x")).chat("?").using(choice="nope").run()


async def test_a_decision_on_a_call_that_was_never_made_is_refused():
    with pytest.raises(SettingsError, match="there is no call 'c9' to decide on; open are: none"):
        await model(ScriptedModel("x")).chat("?").run(decisions={"c9": Decision.allow()})


async def test_a_decision_on_a_call_that_is_answered_by_now_may_be_given_again():
    call = ToolCall("c1", "double", '{"n": 7}')
    paused = (
        await model(ScriptedModel(call)).chat("?").using(double, policy=Policy(profile="ask"), on_ask="pause").run()
    )
    decisions = {"c1": paused.pending[0].decide(Decision.allow())}
    resumed = model(ScriptedModel("14.")).using(double, policy=Policy(profile="ask"), on_ask="pause")
    run = await resumed.chat(paused.conversation).run(decisions=decisions)
    again = await model(ScriptedModel("Yes.")).chat(run.conversation).chat("Sure?").run(decisions=decisions)
    assert (run.text, again.text) == ("14.", "Yes.")
