"""Tools in the text of a model that has none of its own."""

from __future__ import annotations

import asyncio

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


async def test_a_call_that_is_not_in_the_text_is_told_of_and_not_run() -> None:
    asked = ScriptedModel(assistant("Let me look.", ToolCall("call_1", "weather", '{"city": "Rome"}')))
    run = await model(TextModeModel(asked, get_notation("hermes"))).chat("?").using(weather).run()
    assert (run.stopped, run.text) == ("done", "Let me look.")
    assert [loss.detail for loss in run.losses] == ["weather, called natively and not in the text"]
    async with (
        model(TextModeModel(ScriptedModel(ToolCall("call_1", "weather", "{}")), get_notation("hermes")))
        .chat("?")
        .using(weather)
        .stream() as watched
    ):
        assert not [event async for event in watched if isinstance(event, CallStarted | ArgumentsDelta | CallFinished)]
