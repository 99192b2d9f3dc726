"""An answer with very many calls: only the first are run, and what each costs doesn't grow with their number."""

from __future__ import annotations

from pathlib import Path

import pytest

from counted_work import is_linear
from ferrule import Conversation, Decision, Message, Policy, ScriptedModel, ToolCall, assistant, model, tool, user
from ferrule.agent.loop import MOST_CALLS
from ferrule.agent.pipeline import Pipeline
from ferrule.agent.repetitions import Repetitions
from ferrule.conversation import ToolResult, tool_message
from ferrule.session.persistence import Autosave
from ferrule.session.session import Session
from ferrule.store import Store

RAN: list[int] = []


@tool(read_only=True)
async def look(at: int) -> str:
    """Look at something."""
    RAN.append(at)
    return "nothing"


def ask(count: int, name: str = "c", at: int | None = None) -> Message:
    """A message with many calls."""
    return assistant(*(ToolCall(f"{name}{n}", "look", f'{{"at": {n if at is None else at}}}') for n in range(count)))


def answered(rounds: int, count: int) -> Conversation:
    """A conversation in which the same call was made again and again."""
    messages = [user("?")]
    for number in range(rounds):
        made = ask(count, f"r{number}c", at=1)
        messages += [made, *(tool_message(ToolResult(call.id, "look", "nothing")) for call in made.calls)]
    return Conversation(tuple(messages))


async def test_the_first_calls_of_an_answer_are_run_and_the_others_answered() -> None:
    RAN.clear()
    writer = ScriptedModel(ask(300), ask(MOST_CALLS, "d"), "Done.")
    run = await model(writer).chat("?").using(look).run()
    assert (run.stopped, run.text) == ("done", "Done.")
    assert [*range(MOST_CALLS), *range(MOST_CALLS)] == RAN
    run.conversation.check()
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    assert [result.status for result in results] == ["ok"] * 128 + ["cancelled"] * 172 + ["ok"] * 128
    assert results[128].text == (
        "error: not run: only the first 128 calls of an answer are run; make this one again if it is still needed"
    )
    assert [loss.detail for loss in run.losses] == [
        "the model made 300 calls in one answer; the first 128 were run, the others were not"
    ]


async def test_a_lower_limit_of_the_run_ends_it() -> None:
    RAN.clear()
    run = await model(ScriptedModel(ask(300))).chat("?").using(look).within(calls=3).run()
    assert (run.stopped, RAN, run.losses) == ("calls", [0, 1, 2], ())
    assert "the limit of 3 calls was reached" in run.conversation.messages[-1].result.text


async def test_an_answer_that_was_paused_runs_no_more_calls_than_another() -> None:
    RAN.clear()

    @tool
    async def change(at: int) -> str:
        """Change something."""
        return f"changed {at}"

    made = assistant(*ask(100).parts, ToolCall("asks", "change", '{"at": 1}'), *ask(100, "d").parts)
    pipeline: Pipeline = model(ScriptedModel(made, "Done.")).using(
        look, change, policy=Policy(profile="ask"), on_ask="pause"
    )
    paused = await pipeline.chat("?").run()
    assert (paused.stopped, len(RAN)) == ("paused", 100)
    decisions = {one.call.id: one.decide(Decision.allow()) for one in paused.pending if one.request is not None}
    done = await pipeline.chat(paused.conversation).run(decisions=decisions)
    assert (done.stopped, len(RAN)) == ("done", 127)
    assert "the model made 201 calls in one answer" in done.losses[0].detail


async def test_none_is_run_after_an_answer_of_which_more_were() -> None:
    RAN.clear()
    conversation = Conversation((user("?"), made := ask(200)))
    conversation = conversation.add(
        *(tool_message(ToolResult(call.id, "look", "nothing")) for call in made.calls[:150])
    )
    run = await model(ScriptedModel("Done.")).chat(conversation).using(look).run()
    assert (run.text, RAN) == ("Done.", [])


@pytest.mark.parametrize("at", [None, 1])
async def test_the_cost_of_a_call_does_not_grow_with_their_number(at: int | None) -> None:
    async def run(count: int) -> None:
        messages = (ask(count, name, at) for name in "cde")
        await model(ScriptedModel(*messages, "Done.")).chat("?").using(look).run()

    await run(2)
    assert await is_linear(run, 32)


async def test_a_conversation_is_looked_back_on_once_for_all_calls_of_a_message() -> None:
    made = ask(64, at=1).calls
    results = [ToolResult(call.id, "look", "nothing") for call in made]

    def note(rounds: int) -> None:
        repetitions = Repetitions(answered(rounds, 10))
        noted = [repetitions.note(call, result) for call, result in zip(made, results, strict=True)]
        assert f"This is call {10 * rounds + 1} of look" in noted[-1].text

    assert await is_linear(note, 8)


async def test_saving_each_result_looks_back_once_too(tmp_path: Path) -> None:
    looked: list[int] = []

    class Counted(tuple):  # type: ignore[type-arg]
        def __reversed__(self):  # type: ignore[no-untyped-def]
            looked.append(len(self))
            return iter(self[::-1])

    from ferrule.agent.loop import ReadyResults

    conversation = answered(5, 10).add(ask(64, at=1))
    object.__setattr__(conversation, "messages", Counted(conversation.messages))
    ready = ReadyResults()
    for call in reversed(conversation.messages[-1].calls):
        shown = ready.add(conversation, ToolResult(call.id, "look", "nothing"))
    assert len(shown) == len(conversation) + 64
    assert "This is call 51 of look" in shown.messages[-1].result.text
    assert len(looked) == 1


async def test_what_is_saved_of_unfinished_calls_is_what_the_loop_adds(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db")
    autosave = Autosave(store, notify=lambda _: None)
    session = Session(model(ScriptedModel(*(ask(3, name, 1) for name in "cde"), "Done.")), [look], autosave=autosave)
    await session.ask("?")
    assert autosave.conversation_id is not None
    assert store.load(autosave.conversation_id).conversation.messages == session.conversation.messages
    assert "This is call 7 of look" in session.conversation.messages[-2].result.text


@pytest.mark.parametrize("work", [Conversation.check, str, Conversation._repr_html_, Conversation._repr_markdown_])
async def test_reading_and_showing_a_conversation_is_linear(work) -> None:
    conversations = {size: answered(2, size) for size in (50, 200)}
    work(conversations[50])
    assert await is_linear(lambda size: work(conversations[size]), 50)
