"""Calls that the settings rule out, from a server that ignores them: not run, or not at the same time."""

from __future__ import annotations

import asyncio

import openai_server
import pytest
from scripted_http import Reply

from ferrule import Decision, Message, Policy, ScriptedModel, ToolCall, assistant, model, tool
from ferrule.agent.pipeline import Pipeline

TWO = (("call_1", "look", '{"at": 1}'), ("call_2", "look", '{"at": 2}'))


class Room:
    """Counts the calls that run at the same time."""

    def __init__(self) -> None:
        self.looked: list[int] = []
        self.running = self.most_running = 0

    def tool(self, read_only: bool = True):
        @tool(read_only=read_only)
        async def look(at: int) -> str:
            """Look at something."""
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            await asyncio.sleep(0)
            self.running -= 1
            self.looked.append(at)
            return f"seen {at}"

        return look


async def run_on(room: Room, *replies: Reply, **settings: object):
    async with (
        openai_server.server(*replies, judge=openai_server.lenient) as server,
        model("vllm:m", base_url=f"{server.url}/v1").using(room.tool()).with_(**settings) as pipeline,
    ):
        run = await pipeline.chat("?").run()
    run.conversation.check()
    return run


async def test_a_call_despite_choice_none_is_not_run() -> None:
    room = Room()
    run = await run_on(room, openai_server.calls(*TWO), openai_server.says("I see."), choice="none")
    assert (room.looked, run.text, run.stopped) == ([], "I see.", "done")
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    expected = "error: not run: no tool may be called in this message; answer without one"
    assert [(one.status, one.text) for one in results] == [("cancelled", expected)] * 2
    assert [loss.detail for loss in run.losses] == ["look: called despite choice='none', and not run"]


async def test_choice_none_of_the_first_message_leaves_the_others_free() -> None:
    room = Room()
    scripted = ScriptedModel(*[assistant(ToolCall(f"c{n}", "look", f'{{"at": {n}}}')) for n in (1, 2)], "I see.")
    scripted.capabilities = openai_capabilities()
    run = await model(scripted).chat("?").using(room.tool(), choice="none").run()
    assert (room.looked, run.text) == ([2], "I see.")


def openai_capabilities():
    from ferrule.models.openai.chat import OpenAIChat

    return OpenAIChat("m", "vllm").capabilities


async def test_calls_despite_parallel_calls_false_run_one_after_the_other() -> None:
    room = Room()
    run = await run_on(room, openai_server.calls(*TWO), openai_server.says("I see."), parallel_calls=False)
    assert (room.looked, room.most_running, run.text) == ([1, 2], 1, "I see.")
    (loss,) = run.losses
    assert loss.detail == "look: called together despite parallel_calls=False, and run one after the other"


@pytest.mark.parametrize(("settings", "most"), [({}, 2), ({"parallel_calls": True}, 2)])
async def test_other_calls_run_at_the_same_time(settings: dict[str, object], most: int) -> None:
    room = Room()
    run = await run_on(room, openai_server.calls(*TWO), openai_server.says("I see."), **settings)
    assert (room.most_running, run.losses) == (most, ())


async def test_calls_that_waited_for_a_decision_are_run_one_after_the_other() -> None:
    room = Room()
    asks: Message = assistant(*(ToolCall(name, "look", f'{{"at": {n}}}') for n, name in enumerate("ab", 1)))
    scripted = ScriptedModel(asks, "I see.")
    scripted.capabilities = openai_capabilities()
    asked: Pipeline = (
        model(scripted)
        .with_(parallel_calls=False)
        .using(room.tool(read_only=False), policy=Policy(profile="ask"), on_ask="pause")
    )
    paused = await asked.chat("?").run()
    assert (paused.stopped, room.looked) == ("paused", [])
    decisions: dict[str, Decision] = {one.call.id: one.decide(Decision.allow()) for one in paused.pending}
    run = await asked.chat(paused.conversation).run(decisions=decisions)
    assert (run.stopped, room.looked, room.most_running) == ("done", [1, 2], 1)
