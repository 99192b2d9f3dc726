"""A conversation that outgrows its model is compacted: what stays, what stands for the rest, and where it is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferrule import Conversation, ModelError, SettingsError, ToolCall, assistant, model, system, tool, user
from ferrule.agent.compaction import CompactContext
from ferrule.events import ContextCompacted, MessageFinished, Usage
from ferrule.execution import Policy, Rule
from ferrule.models.scripted import ScriptedModel

WORDS = "word " * 100


@tool
def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: {WORDS}"


@tool
def erase(page: int) -> str:
    """Erase a page."""
    return "erased"


def talk(turns: int) -> Conversation:
    messages = [system("Be brief.")]
    for number in range(turns):
        messages += [user(f"Question {number}: {WORDS}"), assistant(f"Answer {number}: {WORDS}")]
    return Conversation((*messages, user("And now?")))


async def test_older_turns_become_a_summary_which_is_recorded_and_reported() -> None:
    scripted = ScriptedModel("Now.")
    asked = talk(6)
    async with model(scripted).chat(asked).hook(CompactContext(limit=800, keep=3)).stream() as run:
        events = [event async for event in run]
    (seen,) = scripted.seen
    assert seen.messages[0].text == "Be brief."
    assert [message.role for message in seen.messages] == ["system", "user", "assistant", "user"]
    assert seen.messages[1].text.startswith(
        "[Summary of the earlier conversation, which was left out:\n- user: Question 0: word"
    )
    assert seen.messages[1].text.endswith(asked.messages[-3].text)
    assert seen.messages[2:] == asked.messages[-2:]
    (compaction,) = run.compactions
    assert compaction.dropped == asked.messages[1:11]
    assert all(f"Question {number}" in compaction.summary for number in range(5))
    assert [event for event in events if isinstance(event, ContextCompacted)] == [
        ContextCompacted(10, compaction.summary)
    ]
    record = run.conversation.messages[1].extra["ferrule"]
    assert record == {"dropped_messages": 10, "summary": True}
    assert run.text == "Now."
    run.conversation.check()


async def test_a_single_turn_of_many_calls_is_compacted_and_keeps_its_question_and_refusals() -> None:
    calls = [ToolCall(f"r{number}", "read", {"page": number}) for number in range(8)]
    scripted = ScriptedModel(ToolCall("e", "erase", {"page": 1}), *calls, "Read.")
    policy = Policy((Rule("deny", tool="erase", reason="nothing may be erased"), Rule("allow", tool="*")))
    pipeline = model(scripted).system("Be brief.").chat("Read all pages.").using(read, erase, policy=policy)
    run = await pipeline.hook(CompactContext(limit=500, keep=2)).run()
    assert run.text == "Read."
    run.conversation.check()
    for seen in scripted.seen:
        seen.check()
        assert seen.messages[0].text == "Be brief."
        assert seen.messages[1].text.endswith("Read all pages.")
        assert not seen.pending
    assert len(run.compactions) > 1
    last = scripted.seen[-1].messages[1].text
    assert last.count("Summary of the earlier conversation") == 1
    assert "- refused: erase" in last
    assert "nothing may be erased" in last
    assert "- called: read" in last
    dropped = sum(len(one.dropped) for one in run.compactions)
    assert run.conversation.messages[1].extra["ferrule"]["dropped_messages"] == dropped
    assert dropped + len(run.conversation) == 1 + 1 + 2 * 9 + 1


async def test_a_model_writes_the_summary_under_the_limits_of_the_run() -> None:
    writer = ScriptedModel("They agreed on Tuesday.")
    scripted = ScriptedModel("Now.")
    hook = CompactContext(limit=800, summarizer=model(writer).system("You summarize."))
    run = await model(scripted).chat(talk(6)).hook(hook).run()
    assert "They agreed on Tuesday." in scripted.seen[0].messages[1].text
    assert "every decision and its reason" in writer.seen[0].messages[-1].text
    assert "Question 0" in writer.seen[0].messages[-1].text
    assert [(sub.name, sub.run.text) for sub in run.sub_runs] == [("summary", "They agreed on Tuesday.")]
    assert run.compactions[0].summary == "They agreed on Tuesday."
    # One round of two is the summary's, so the model isn't asked a second time.
    again = CompactContext(limit=800, summarizer=model(ScriptedModel("Short.")))
    asks = ScriptedModel(ToolCall("a", "read", {"page": 1}), "Read.")
    run = await model(asks).chat(talk(6)).using(read).hook(again).within(rounds=2).run()
    assert run.stopped == "rounds"


async def test_the_runs_own_model_may_write_it() -> None:
    scripted = ScriptedModel("A summary.", "Now.")
    run = await model(scripted).chat(talk(6)).hook(CompactContext(limit=800, summarizer="model")).run()
    assert run.text == "Now."
    assert run.compactions[0].summary == "A summary."


class Broken(ScriptedModel):
    async def stream(self, *_given: Any):
        raise ModelError("broken: no answer")
        yield


async def test_where_no_model_can_write_it_the_plain_summary_stands() -> None:
    hook = CompactContext(limit=800, summarizer=model(Broken()))
    run = await model(ScriptedModel("Now.")).chat(talk(6)).hook(hook).run()
    assert run.text == "Now."
    assert "Question 0" in run.compactions[0].summary
    assert "no model could summarize the conversation: broken: no answer" in run.losses[0].detail


class Narrow(ScriptedModel):
    """A model that counts no tokens, and whose context is full beyond some messages."""

    async def stream(self, conversation: Conversation, tools: Any, settings: Any):
        if len(conversation) > 8:
            yield MessageFinished(assistant(), Usage(), "context")
            return
        async for event in super().stream(conversation, tools, settings):
            yield event


async def test_a_full_context_is_compacted_without_a_limit() -> None:
    narrow = Narrow("Now.")
    run = await model(narrow).chat(talk(6)).hook(CompactContext()).run()
    assert (run.text, run.stopped) == ("Now.", "done")
    assert "Question 0" in narrow.seen[-1].messages[1].text
    # Without the hook, what is dropped is kept by the run as well.
    plain = await model(Narrow("Now.")).chat(talk(6)).run()
    assert plain.compactions[0].dropped
    assert plain.compactions[0].summary == ""


async def test_a_short_conversation_stays_as_it_is() -> None:
    asked = talk(1)
    run = await model(ScriptedModel("Now.")).chat(asked).hook(CompactContext(limit=100_000)).run()
    assert run.conversation.messages[:-1] == asked.messages
    assert run.compactions == ()


def test_what_cannot_be_is_refused() -> None:
    for options in ({"limit": 0}, {"limit": True}, {"keep": 0}, {"keep": 1.5}, {"summarizer": "best"}):
        with pytest.raises(SettingsError, match=r"CompactContext|summarizer"):
            CompactContext(**json.loads(json.dumps(options)))
