"""Tools in the text of a model that has none of its own."""

from __future__ import annotations

import asyncio

import openai_server
import pytest

from ferrule.agent.pipeline import model
from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Message,
    Reasoning,
    Text,
    ToolCall,
    assistant,
    user,
)
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.text_protocol import encode_conversation, keep_source
from ferrule.events import ArgumentsDelta, CallFinished, CallStarted, Event, MessageFinished, TextDelta, Usage
from ferrule.models.protocol import ModelSettings
from ferrule.models.scripted import ScriptedModel
from ferrule.models.text_mode import TextModeModel
from ferrule.tools.decorator import tool

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'


@tool
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"21 °C in {city}"


def in_text(*script: str | Message) -> TextModeModel:
    return TextModeModel(ScriptedModel(*script), get_notation("hermes"))


async def test_a_call_in_the_text_is_answered_in_the_text() -> None:
    asked = ScriptedModel(f"Let me look.\n{CALL}", "It is 21 °C.")
    run = await model(TextModeModel(asked, get_notation("hermes"))).chat("Weather in Paris?").using(weather).run()
    assert (run.stopped, run.text) == ("done", "It is 21 °C.")
    assert [m.role for m in run.conversation.messages] == ["user", "assistant", "tool", "assistant"]
    shown = [[m.role for m in conversation.messages] for conversation in asked.seen]
    assert shown == [["system", "user"], ["system", "user", "assistant", "user"]]
    # What the model wrote is shown to it again as it was, and the offer is the same each time.
    assert asked.seen[1].messages[2].text == f"Let me look.\n{CALL}"
    assert asked.seen[1].messages[0] == asked.seen[0].messages[0]
    assert "21 °C in Paris" in asked.seen[1].messages[3].text


async def test_a_call_that_can_not_be_read_is_answered_and_shown_again() -> None:
    asked = ScriptedModel("<tool_call>{nothing}</tool_call>", CALL, "So.")
    run = await model(TextModeModel(asked, get_notation("hermes"))).chat("?").using(weather).run()
    run.conversation.check()
    assert isinstance(run.conversation.messages[1].parts[0], MalformedCall)
    assert [m.result.status for m in run.conversation.messages if m.role == "tool"] == ["invalid", "ok"]
    assert asked.seen[1].messages[2].text == "<tool_call>{nothing}</tool_call>"


async def events_of(mode: TextModeModel, *messages: Message) -> list[Event]:
    return [event async for event in mode.stream(Conversation(messages), [weather.spec], ModelSettings())]


async def test_its_events_are_those_of_any_model() -> None:
    events = await events_of(in_text(f"One moment. {CALL}"), user("?"))
    kinds = [type(event) for event in events]
    assert kinds[0] is TextDelta
    assert kinds[-1] is MessageFinished
    assert {CallStarted, ArgumentsDelta, CallFinished} < set(kinds)
    finished = events[-1]
    assert isinstance(finished, MessageFinished)
    assert (finished.stop, finished.usage) == ("calls", Usage())


async def test_what_the_model_thinks_goes_through_and_images_are_shown() -> None:
    mode = in_text(assistant(Reasoning("Hm."), "Hello."))
    shown = user("What is this?", Image(b"png"))
    finished = (await events_of(mode, shown))[-1]
    assert isinstance(finished, MessageFinished)
    assert finished.stop == "turn"
    assert finished.message.text == "Hello."
    scripted = mode.model
    assert isinstance(scripted, ScriptedModel)
    assert scripted.seen[0].messages[1] == shown


def test_it_says_what_it_is() -> None:
    mode = TextModeModel(ScriptedModel(), get_notation("react"))
    assert mode.name == "scripted in react"
    assert mode.capabilities.native_tools
    assert not mode.capabilities.parallel_calls
    asyncio.run(mode.aclose())


@pytest.mark.parametrize("notation", ["native", "fenced_json", "json_in_tag", "anthropic_xml", "pythonic"])
async def test_other_notations(notation: str) -> None:
    said = get_notation(notation)
    asked = ScriptedModel(said.call(ToolCall("call_1", "weather", '{"city": "Rome"}'), [weather.spec]), "So.")
    run = await model(TextModeModel(asked, said)).chat("?").using(weather).run()
    assert [m.result.text for m in run.conversation.messages if m.role == "tool"] == ["21 °C in Rome"]


async def test_what_was_thought_in_the_text_is_shown_again_there_and_nowhere_else() -> None:
    thought = f"<think>Where is it?</think>Let me look.\n{CALL}"
    asked = ScriptedModel(thought, "It is 21 °C.")
    run = await model(TextModeModel(asked, get_notation("hermes"))).chat("?").using(weather).run()
    assert Reasoning("Where is it?") in run.conversation.messages[1].parts
    assert asked.seen[1].messages[2].parts == (Text(thought),)


def test_what_was_thought_beside_the_text_is_shown_again_beside_it() -> None:
    notation = get_notation("hermes")
    said = Message("assistant", (Reasoning("Where is it?"), ToolCall("c1", "weather", '{"city": "Paris"}')))
    lowered, _ = encode_conversation(
        notation, Conversation((user("?"), keep_source(notation, CALL, said))), [weather.spec]
    )
    assert lowered.messages[2].parts == (Reasoning("Where is it?"), Text(CALL))


@pytest.mark.parametrize(
    "notation", ["hermes", "native", "fenced_json", "json_in_tag", "anthropic_xml", "pythonic", "react"]
)
@pytest.mark.parametrize("before", [(), ("Let me look.",)])
async def test_a_call_that_the_server_parsed_is_taken(notation: str, before: tuple[str, ...]) -> None:
    said = get_notation(notation)
    made = assistant(*before, ToolCall("call_0", "weather", '{"city": "Rome"}'))
    asked = ScriptedModel(made, made, "So.")
    run = await model(TextModeModel(asked, said)).chat("?").using(weather).run()
    run.conversation.check()
    assert (run.stopped, run.text, run.losses) == ("done", "So.", ())
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    assert [one.text for one in results] == ["21 °C in Rome"] * 2
    assert len({one.call_id for one in results}) == 2
    # It is shown again in the notation, as if it had arrived in the text.
    call = said.call(ToolCall("call_0", "weather", '{"city": "Rome"}'), [weather.spec])
    assert call in asked.seen[1].messages[-2].text
    assert asked.seen[1].messages[-2].text.startswith("".join(before))


async def test_several_calls_that_the_server_parsed_are_taken() -> None:
    made = assistant(*(ToolCall(f"call_{n}", "weather", f'{{"city": "{city}"}}') for n, city in enumerate("AB")))
    run = await model(in_text(made, "So.")).chat("?").using(weather).run()
    assert [m.result.text for m in run.conversation.messages if m.role == "tool"] == ["21 °C in A", "21 °C in B"]
    async with model(in_text(made, "So.")).chat("?").using(weather).stream() as watched:
        events = [event async for event in watched if isinstance(event, CallStarted | CallFinished)]
    assert [type(event).__name__ for event in events] == ["CallStarted", "CallFinished"] * 2


async def test_a_call_that_the_server_parsed_and_cut_off_is_answered() -> None:
    cut = openai_server.chat(openai_server.piece(0, '{"city": "Ro', "weather", "call_9"), finish="tool_calls")
    replies = (cut, openai_server.calls(("call_9", "weather", '{"city": "Rome"}')), openai_server.says("So."))
    async with (
        openai_server.server(*replies, judge=openai_server.lenient) as server,
        model("vllm:m", base_url=f"{server.url}/v1").using(weather, mode="hermes") as pipeline,
    ):
        run = await pipeline.chat("?").run()
    run.conversation.check()
    assert [m.result.status for m in run.conversation.messages if m.role == "tool"] == ["invalid", "ok"]
    assert (run.text, run.losses) == ("So.", ())
    assert all("tools" not in request.body for request in server.requests)
    assert 'weather({"city": "Ro' in server.requests[1].body["messages"][-2]["content"]
