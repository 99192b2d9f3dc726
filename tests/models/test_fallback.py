"""Where one model can't be had, the next is asked, and nobody notices but the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import fields

import pytest

from ferrule.capabilities import Capabilities
from ferrule.conversation import Conversation, ToolCall, user
from ferrule.errors import ModelError, Overloaded, ProviderError, StreamBroken
from ferrule.events import Event, TextDelta
from ferrule.models.fallback import FallbackModel
from ferrule.models.protocol import ModelSettings
from ferrule.models.scripted import EchoModel, ScriptedModel
from ferrule.toolspec import ToolSpec

ASKED = Conversation((user("Are you there?"),))


class FailingModel:
    """Says what it is told to, then fails."""

    def __init__(self, error: Exception, *said: str, capabilities: Capabilities | None = None) -> None:
        self.name = f"failing with {type(error).__name__}"
        self.error = error
        self.said = said
        self.capabilities = capabilities or Capabilities()
        self.is_closed = False

    async def stream(
        self, conversation: Conversation, tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Event, None]:
        for text in self.said:
            yield TextDelta(text)
        raise self.error

    async def aclose(self) -> None:
        self.is_closed = True
        raise self.error


def events_of(model, conversation: Conversation = ASKED) -> list[Event]:
    async def collect() -> list[Event]:
        return [event async for event in model.stream(conversation, (), ModelSettings())]

    return asyncio.run(collect())


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("the shop burns", 500),
        ProviderError("no answer", None),
        ProviderError("too many customers", 429),
        ProviderError("too long", 400),
        StreamBroken("the line is dead"),
        Overloaded("the queue is full"),
    ],
)
def test_the_next_model_is_asked_where_the_first_fails(error: ModelError, caplog: pytest.LogCaptureFixture) -> None:
    second = ScriptedModel("Yes.")
    model = FallbackModel(FailingModel(error), second)
    with caplog.at_level(logging.WARNING):
        events = events_of(model)
    assert events == events_of(ScriptedModel("Yes."))
    assert model.last_used is second
    assert second.seen == [ASKED]
    assert caplog.messages == [f"falling back to scripted from failing with {type(error).__name__}: {error}"]


def test_the_first_model_is_asked_again_for_each_message() -> None:
    first, second = ScriptedModel("One.", "Two."), ScriptedModel()
    model = FallbackModel(first, second)
    events_of(model)
    events_of(model)
    first.assert_used_up()
    assert model.last_used is first


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_noticed_unless_another_model_was_to_be_asked_then(status: int) -> None:
    refused = FailingModel(ProviderError("no such key", status))
    with pytest.raises(ProviderError, match="no such key"):
        events_of(FallbackModel(refused, EchoModel()))
    with_refused = FallbackModel(refused, EchoModel(), on={"refused"})
    assert events_of(with_refused) == events_of(EchoModel())
    with pytest.raises(ProviderError, match="the shop burns"):
        events_of(FallbackModel(FailingModel(ProviderError("the shop burns", 500)), EchoModel(), on={"refused"}))


def test_a_model_that_cannot_be_asked_at_all_is_a_mistake() -> None:
    with pytest.raises(ModelError, match="no key"):
        events_of(FallbackModel(FailingModel(ModelError("no key for OpenAI")), EchoModel()))


def test_nobody_else_is_asked_once_something_was_passed_on() -> None:
    model = FallbackModel(FailingModel(StreamBroken("the line is dead"), "Ye"), EchoModel())

    async def collect(events: list[Event]) -> None:
        async for event in model.stream(ASKED, (), ModelSettings()):
            events += [event]

    events: list[Event] = []
    with pytest.raises(StreamBroken, match="the line is dead"):
        asyncio.run(collect(events))
    assert events == [TextDelta("Ye")]


def test_where_all_fail_each_of_them_is_quoted() -> None:
    model = FallbackModel(
        FailingModel(Overloaded("the queue is full")), FailingModel(ProviderError("the shop burns", 502))
    )
    with pytest.raises(ProviderError, match=r"all 2 models failed: .*queue is full; .*shop burns") as raised:
        events_of(model)
    assert raised.value.status == 502


def test_its_capabilities_are_those_that_all_of_them_have() -> None:
    every = Capabilities(
        **{field.name: True for field in fields(Capabilities) if field.type == "bool"},
        tools=None,
        settings=frozenset({"seed", "stop"}),
    )
    for field in fields(Capabilities):
        if field.type == "bool":
            lacking = Capabilities(**{f.name: getattr(every, f.name) for f in fields(every)} | {field.name: False})
            model = FallbackModel(model_with(every), model_with(lacking), model_with(every))
            assert model.capabilities == lacking, field.name
    narrow = Capabilities(tools=("a", "b"), settings=frozenset({"stop", "effort"}))
    other = Capabilities(tools=("b", "c"), settings=frozenset({"stop"}))
    assert FallbackModel(model_with(every), model_with(narrow)).capabilities.tools == ("a", "b")
    assert FallbackModel(model_with(narrow), model_with(other)).capabilities.tools == ("b",)
    assert FallbackModel(model_with(every), model_with(narrow)).capabilities.settings == {"stop"}
    assert FallbackModel(model_with(every)).capabilities == every


def model_with(capabilities: Capabilities) -> FailingModel:
    return FailingModel(ProviderError("never asked"), capabilities=capabilities)


def test_calls_pass_as_they_are() -> None:
    call = ToolCall("call_1", "look", "{}")
    model = FallbackModel(FailingModel(ProviderError("away", 503)), ScriptedModel(call))
    assert events_of(model) == events_of(ScriptedModel(call))


def test_all_are_closed_also_where_one_cannot_be() -> None:
    first, second = FailingModel(ProviderError("one")), FailingModel(ProviderError("two"))
    with pytest.raises(ProviderError):
        asyncio.run(FallbackModel(first, second).aclose())
    assert first.is_closed
    assert second.is_closed
