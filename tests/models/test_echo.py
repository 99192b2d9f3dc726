"""The echo model: a pipeline can be tried with no key and no network."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.agent.pipeline import model
from ferrule.conversation import (
    Conversation,
    Image,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.events import Event, MessageFinished, TextDelta, Usage
from ferrule.models.protocol import ModelSettings
from ferrule.models.scripted import EchoModel


def events_of(*messages) -> list[Event]:
    async def collect() -> list[Event]:
        return [event async for event in EchoModel().stream(Conversation(messages), (), ModelSettings())]

    return asyncio.run(collect())


def result(number: int, *content: Text | Image):
    return tool_message(ToolResult(f"call_{number}", "look", content))


CALLS = assistant(ToolCall("call_1", "look", "{}"), ToolCall("call_2", "look", "{}"))


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([system("Be brief."), user("Who is there?")], "Who is there?"),
        ([user("One"), assistant("One"), user("Two", Image(b"x"), " three")], "Two three"),
        ([user("Look"), CALLS, result(1, Text("a cat")), result(2, Text("a dog"), Image(b"x"))], "a cat\na dog"),
        ([user("Look"), CALLS, result(1, Text("a cat")), result(2), user("And?")], "And?"),
        ([user("Go on"), assistant("I")], "Go on"),
        ([system("Be brief.")], ""),
        ([], ""),
    ],
)
def test_it_says_back_what_was_said_last(messages: list, said: str) -> None:
    *streamed, finished = events_of(*messages)
    assert "".join(event.text for event in streamed if isinstance(event, TextDelta)) == said
    assert finished == MessageFinished(assistant(said), Usage(), "turn")


@given(st.text())
def test_nothing_is_lost_between_its_words(text: str) -> None:
    *deltas, _ = events_of(user(text))
    assert "".join(delta.text for delta in deltas) == text
    assert all(delta.text for delta in deltas)


def test_it_comes_word_by_word() -> None:
    *deltas, _ = events_of(user("Who  is there?\n"))
    assert deltas == [TextDelta("Who  "), TextDelta("is "), TextDelta("there?\n")]


def test_a_pipeline_runs_on_it_whatever_tools_there_are() -> None:
    def look() -> str:
        """Look around."""
        return "a cat"

    run = asyncio.run(model(EchoModel()).chat("Who is there?").using(look).run())
    assert run.text == "Who is there?"
