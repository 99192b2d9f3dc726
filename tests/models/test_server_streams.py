"""Streams that servers send which only resemble OpenAI's: without indexes or ids, or cut without saying so."""

from __future__ import annotations

from typing import Any

import pytest
from openai_server import call, chat, event, lenient, says, server
from scripted_http import Reply

from ferrule import Run, tool
from ferrule.agent.pipeline import model
from ferrule.conversation import Conversation, MalformedCall, ToolCall, user
from ferrule.events import MessageFinished
from ferrule.models.openai.responses import OpenAIResponses
from ferrule.models.protocol import ModelSettings


@tool
def sky(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


def responses(*events: dict[str, Any], **response: Any) -> Reply:
    """An answer of these events without indexes; `response` is what the last event says of it."""
    ended = {"type": "response.completed", "response": {"status": "completed", **response}}
    return Reply([event(one, one["type"]) for one in ({"type": "response.created", "response": {}}, *events, ended)])


def begun(call_id: str, **more: Any) -> dict[str, Any]:
    item = {"type": "function_call", "call_id": call_id, "name": "sky", "arguments": "", "status": "in_progress"}
    return {"type": "response.output_item.added", "item": {**item, **more}}


def arguments(item_id: str, delta: str, **more: Any) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "item_id": item_id, "delta": delta, **more}


def done(call_id: str, written: str, **more: Any) -> dict[str, Any]:
    item = {"type": "function_call", "call_id": call_id, "name": "sky", "arguments": written, "status": "completed"}
    return {"type": "response.output_item.done", "item": {**item, **more}}


ROME, OSLO = '{"city": "Rome"}', '{"city": "Oslo"}'
SAID = {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "It rains."}
INTERLEAVED = (
    begun("fc_a"),
    begun("fc_b"),
    arguments("fc_b", OSLO[:9]),
    arguments("fc_a", ROME),
    arguments("fc_b", OSLO[9:]),
    done("fc_a", ROME),
    done("fc_b", OSLO),
)
BY_ITEM = (
    begun("call_1", id="fc_1"),
    arguments("fc_1", ROME),
    done("call_1", ROME, id="fc_1"),
    begun("call_2", id="fc_2"),
    arguments("fc_2", OSLO),
    done("call_2", OSLO, id="fc_2"),
)
ONE_INDEX = tuple({**one, "output_index": 0} for one in BY_ITEM)


async def ask(*script: Reply) -> Run:
    async with server(*script, judge=lenient) as provider:
        chosen = OpenAIResponses("m", "compatible", base_url=f"{provider.url}/v1")
        async with model(chosen).using(sky) as pipeline:
            run = await pipeline.chat("Rain?").run()
    run.conversation.check()
    return run


@pytest.mark.parametrize("events", [INTERLEAVED, BY_ITEM, ONE_INDEX, (done("a", ROME), done("b", OSLO))])
async def test_items_are_told_apart_without_an_index(events: tuple[dict[str, Any], ...]) -> None:
    run = await ask(responses(*events), responses(SAID))
    assert [message.result.text for message in run.conversation.messages if message.role == "tool"] == [
        "rain in Rome",
        "rain in Oslo",
    ]
    assert run.text == "It rains."


@pytest.mark.parametrize("details", [{}, {"incomplete_details": {"reason": "max_output_tokens"}}])
async def test_an_answer_that_is_completed_with_the_status_incomplete_was_cut(details: dict[str, Any]) -> None:
    run = await ask(responses(SAID, status="incomplete", **details))
    assert (run.text, run.stopped) == ("It rains.", "length")


async def read(*events: dict[str, Any], **response: Any) -> MessageFinished:
    async with server(responses(*events, **response), judge=lenient) as provider:
        chosen = OpenAIResponses("m", "compatible", base_url=f"{provider.url}/v1")
        conversation = Conversation((user("?"),))
        *_, finished = [one async for one in chosen.stream(conversation, [sky.spec], ModelSettings())]
        await chosen.aclose()
    assert isinstance(finished, MessageFinished)
    return finished


async def test_a_call_cut_by_the_limit_is_truncated_and_one_before_it_is_whole() -> None:
    cut = (begun("b"), arguments("b", '{"city": "Os'), done("b", '{"city": "Os', status="incomplete"))
    finished = await read(done("a", ROME), *cut, status="incomplete")
    whole, broken = finished.message.parts
    assert whole == ToolCall("a", "sky", ROME)
    assert isinstance(broken, MalformedCall)
    assert broken.kind == "truncated"


async def test_arguments_of_a_complete_answer_stay_as_they_are() -> None:
    assert (await read(begun("a"), done("a", '{"city"'))).message.parts == (ToolCall("a", "sky", '{"city"'),)


def joined(*entries: dict[str, Any]) -> Reply:
    return chat(*({"tool_calls": [entry]} for entry in entries), finish="tool_calls")


async def ask_chat(reply: Reply) -> Run:
    async with (
        server(reply, says("Rain."), judge=lenient) as provider,
        model("vllm:m", base_url=f"{provider.url}/v1").using(sky) as pipeline,
    ):
        return await pipeline.chat("Rain?").run()


@pytest.mark.parametrize(
    "reply",
    [
        joined(call(0, ROME, "sky"), call(0, OSLO, "sky")),
        joined(call(0, ROME, "sky"), call(0, "", "sky"), call(0, OSLO[:4]), call(0, OSLO[4:])),
        joined(call(0, ROME[:4], "sky"), call(0, ROME[4:]), call(0, OSLO[:4], "sky"), call(0, OSLO[4:], "sky")),
        chat({"tool_calls": [call(0, ROME, "sky"), call(0, OSLO, "sky")]}, finish="tool_calls"),
        joined(call(0, ROME, "sky", "a"), call(0, OSLO, "sky")),
    ],
)
async def test_complete_calls_under_one_index_are_told_apart(reply: Reply) -> None:
    run = await ask_chat(reply)
    results = [message.result.text for message in run.conversation.messages if message.role == "tool"]
    assert results == ["rain in Rome", "rain in Oslo"]


async def test_pieces_that_look_complete_on_the_way_stay_one_call() -> None:
    pieces = ('{"city": {"a": 1}', ', "b": {}', "}")
    reply = joined(call(0, pieces[0], "sky"), *(call(0, piece, "sky") for piece in pieces[1:]))
    run = await ask_chat(reply)
    (made,) = run.conversation.messages[1].calls
    assert made.arguments == "".join(pieces)


async def test_what_becomes_of_an_answer_that_breaks_off() -> None:
    whole = chat(call_piece(ROME), ending="dropped")
    inside = chat({"content": "Let me see."}, call_piece(ROME[:9]), ending="dropped")
    run = await ask_chat(whole)
    assert [message.role for message in run.conversation.messages] == ["user", "assistant", "tool", "assistant"]
    assert (run.text, run.stopped) == ("Rain.", "done")
    run = await ask_chat(inside)
    assert [message.role for message in run.conversation.messages] == ["user", "assistant"]
    assert (run.text, run.stopped) == ("Rain.", "done")
    run = await ask_chat(says("It ra", ending="dropped"))
    assert (run.text, run.stopped) == ("It ra", "error")


def call_piece(written: str) -> dict[str, Any]:
    return {"tool_calls": [call(0, written, "sky", "a")]}
