"""Continuing a conversation: its system messages, messages before it, open calls, and calls that were never started."""

import pytest

from ferrule import Conversation, Decision, Policy, Rule, ToolCall, assistant, model, system, tool, user
from ferrule.agent.hooks import Hooks, RunState
from ferrule.errors import ConversationError
from ferrule.models.scripted import ScriptedModel

SAVED = Conversation((user("Hello"), assistant("Hi!"), user("And now?")))


@tool
def remove(path: str) -> str:
    """Remove a file."""
    raise AssertionError(path)


def call_remove(identifier: str = "a") -> ToolCall:
    return ToolCall(identifier, "remove", '{"path": "x"}')


async def test_a_conversation_gets_the_system_message_of_the_pipeline() -> None:
    scripted = ScriptedModel("1", "2", "3")
    ruled = model(scripted).system("RULES")
    await ruled.chat(SAVED).run()
    await ruled.run_batch([SAVED])
    await ruled.chat(Conversation((system("old rules"), *SAVED.messages))).run()
    for seen in scripted.seen:
        assert seen.messages == (system("RULES"), *SAVED.messages)


async def test_a_conversation_keeps_its_own_system_message_if_the_pipeline_has_none() -> None:
    conversation = Conversation((system("old rules"), *SAVED.messages))
    assert model("echo").chat(conversation).conversation == conversation


async def test_what_was_asked_before_a_conversation_is_not_dropped() -> None:
    asked = model("echo").chat("first")
    with pytest.raises(ConversationError, match="has 1 message already, and the conversation doesn't begin with them"):
        asked.chat(SAVED)
    run = await asked.run()
    assert asked.chat(run.conversation).conversation == run.conversation


async def test_a_message_waits_until_open_calls_are_answered() -> None:
    pipeline = model(ScriptedModel(call_remove(), "Well.", "Fine."))
    pipeline = pipeline.using(remove, policy=Policy((Rule("ask"),)), on_ask="pause")
    paused = await pipeline.chat("Remove x.").run()
    with pytest.raises(ConversationError, match=r"calls are open: a \(remove\); run the conversation first"):
        pipeline.chat(paused.conversation).chat("never mind")
    decisions = {"a": paused.pending[0].decide(Decision.deny())}
    denied = await pipeline.chat(paused.conversation).run(decisions=decisions)
    assert (await pipeline.chat(denied.conversation).chat("never mind").run()).text == "Fine."


class _Interrupts(Hooks):
    def __init__(self, stops: bool) -> None:
        self._stops = stops

    async def after_message(self, state: RunState) -> None:
        if not state.open_calls:
            return
        if self._stops:
            state.stop("guard")
        state.say("Don't.")


async def test_a_call_that_a_hook_stops_was_not_run() -> None:
    run = await model(ScriptedModel(call_remove())).chat("?").using(remove).hook(_Interrupts(stops=True)).run()
    assert run.stopped == "guard"
    assert run.conversation.messages[-1].result.text == "error: not run: the run was stopped before this call"
    run.conversation.check()


async def test_what_a_hook_says_comes_after_the_results_of_open_calls() -> None:
    scripted = ScriptedModel(call_remove(), "All right.")
    run = await model(scripted).chat("?").using(remove).hook(_Interrupts(stops=False)).run()
    assert [message.role for message in run.conversation.messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert "not run" in run.conversation.messages[2].result.text
