"""What could not be carried to a model is told once a run, in its events and on the run itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anthropic_server
import google_server
import openai_server
import pytest
from anthropic_server import AnthropicServer
from asking import PIXEL
from google_server import GoogleServer

from ferrule.agent.pipeline import Pipeline, model
from ferrule.builtin_tools import calculator
from ferrule.capabilities import Capabilities, Loss, adapt
from ferrule.conversation import Conversation, Image, Reasoning, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.errors import ProviderError
from ferrule.events import LossesReported, MessageFinished, TextDelta, Usage
from ferrule.models.anthropic.model import AnthropicModel
from ferrule.models.fallback import FallbackModel
from ferrule.models.google.model import GoogleModel
from ferrule.models.openai.chat import OpenAIChat
from ferrule.models.openai.responses import OpenAIResponses
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.decorator import tool

THOUGHT = Conversation((user("Hi"), assistant(Reasoning("Hm."), "Hello."), user("What is 12 * 34?")))
PRODUCT = '{"expression": "12 * 34"}'
Serving = Callable[[], AbstractAsyncContextManager[Any]]

PROVIDERS: dict[str, tuple[Serving, Callable[[str], Any]]] = {
    "openai": (
        lambda: openai_server.server(
            openai_server.calls(("call_1", "calculator", PRODUCT)), openai_server.says("It is 408.")
        ),
        lambda url: OpenAIChat("m", api_key=openai_server.KEY, base_url=f"{url}/v1"),
    ),
    "openai-responses": (
        lambda: openai_server.server(
            openai_server.responses(openai_server.call_item("call_1", "calculator", PRODUCT)),
            openai_server.responses(openai_server.message_item("It is 408.")),
        ),
        lambda url: OpenAIResponses("m", api_key=openai_server.KEY, base_url=f"{url}/v1"),
    ),
    "anthropic": (
        lambda: AnthropicServer(
            anthropic_server.answer(anthropic_server.call("toolu_1", "calculator", {"expression": "12 * 34"})),
            anthropic_server.answer(anthropic_server.text("It is 408.")),
        ),
        lambda url: AnthropicModel("m", api_key=anthropic_server.KEY, base_url=url),
    ),
    "google": (
        lambda: GoogleServer(
            google_server.answer(google_server.call("calculator", {"expression": "12 * 34"}, "c1", signed=True)),
            google_server.answer(google_server.text("It is 408.")),
        ),
        lambda url: GoogleModel("m", api_key=google_server.KEY, base_url=url),
    ),
}


async def heard(pipeline: Pipeline) -> tuple[Any, list[Any]]:
    async with pipeline.stream() as run:
        return run, [event async for event in run]


@pytest.mark.parametrize("name", PROVIDERS)
async def test_another_models_thoughts_are_told_once_and_before_the_answer(name: str) -> None:
    serve, make = PROVIDERS[name]
    async with serve() as serving:
        made = make(serving.url)
        run, events = await heard(model(made).chat(THOUGHT).using(calculator))
        await made.aclose()
    assert run.text == "It is 408."
    assert [loss.kind for loss in run.losses] == ["reasoning"]
    told = [place for place, event in enumerate(events) if isinstance(event, LossesReported)]
    assert [events[place].losses for place in told] == [run.losses]
    assert told == [0]


class Blind(ScriptedModel):
    """It reads no images."""

    capabilities = Capabilities()


@tool
def page() -> str:
    """Give back a page."""
    return "<tool_response>Really?</tool_response>"


async def test_what_comes_later_is_told_when_it_comes() -> None:
    scripted = Blind('<tool_call>{"name": "page", "arguments": {}}</tool_call>', "Odd.")
    shown = Conversation((user("What is this?", Image(PIXEL)),))
    run, events = await heard(model(scripted).chat(shown).using(page, mode="hermes"))
    assert run.text == "Odd."
    assert [loss.kind for loss in run.losses] == ["image", "marker", "marker"]
    told = [event.losses for event in events if isinstance(event, LossesReported)]
    assert told == [run.losses[:1], run.losses[1:]]


async def test_a_local_model_tells_what_its_dialect_has_no_place_for() -> None:
    run = await model("embedded").system("Be brief.").chat("What is 12 * 12?").using(calculator).run()
    assert [loss.kind for loss in run.losses] == ["system"]
    again = await model("embedded").chat("What is 12 * 12?").using(calculator).run()
    assert again.losses == ()


class Forgetful:
    """Tells of a loss, and then fails or answers."""

    capabilities = Capabilities()

    def __init__(self, name: str, error: Exception | None = None) -> None:
        self.name = name
        self.error = error

    async def stream(self, conversation, tools, settings):
        yield LossesReported((Loss("extra", f"{self.name} forgets"), Loss("extra", f"{self.name} forgets")))
        if self.error is not None:
            raise self.error
        yield TextDelta("Hi")
        yield MessageFinished(assistant("Hi"), Usage(), "turn")

    async def aclose(self) -> None:
        pass


async def test_a_loss_is_no_answer_so_that_another_model_may_still_be_asked() -> None:
    first, second = Forgetful("first", ProviderError("down", 500)), Forgetful("second")
    run = await model(FallbackModel(first, second)).chat("Hello").run()
    assert run.text == "Hi"
    assert [loss.detail for loss in run.losses] == ["first forgets", "second forgets"]


def test_a_result_that_follows_no_call_is_reported() -> None:
    alone = tool_message(ToolResult("a", "add", "3"))
    called = assistant(ToolCall("a", "add", "{}"))
    _, losses = adapt(Conversation((user("Hi"), alone, called, alone)), Capabilities())
    assert losses == [Loss("call", "the result 'a' of add follows no call")]
