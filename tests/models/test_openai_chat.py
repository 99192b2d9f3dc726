"""Chat completions, against a server that refuses what OpenAI refuses and fails as it does."""

from __future__ import annotations

import asyncio
import sys

import pytest
from openai_server import KEY, calls, chat, chunk, chunks, error_body, event, piece, refused, says, server
from scripted_http import Reply, cut, json_reply

from ferrule import tool
from ferrule.agent.pipeline import Pipeline, model
from ferrule.conversation import Image, MalformedCall, Message, Reasoning, Text, ToolCall
from ferrule.errors import ModelError, ProviderError, StreamBroken
from ferrule.events import ArgumentsDelta, CallFinished, CallStarted, MessageFinished, TextDelta, Usage
from ferrule.models.gateway import GatewaySettings, Timeouts, configure
from ferrule.models.openai.chat import OpenAIChat
from ferrule.models.protocol import ModelSettings

QUICK = GatewaySettings(first_delay=0.001, longest_delay=0.01, attempts=3)


@pytest.fixture(autouse=True)
def _quick() -> None:
    configure("http://127.0.0.1", QUICK)


@tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


def asking(provider, question: str = "Rain?", **options) -> tuple[OpenAIChat, Pipeline]:
    chosen = OpenAIChat("gpt-test", api_key=KEY, base_url=f"{provider.url}/v1", **options)
    return chosen, model(chosen).chat(question).using(get_weather)


async def run_with(*script: Reply, question: str = "Rain?", **options):
    async with server(*script) as provider:
        chosen, pipeline = asking(provider, question, **options)
        try:
            run = await pipeline.run()
        finally:
            await chosen.aclose()
        run.conversation.check()
        return run, provider


async def test_calls_are_run_and_their_results_go_back_in_order() -> None:
    asked = calls(("call_a", "get_weather", '{"city": "London"}'), ("call_b", "get_weather", '{"city": "Paris"}'))
    run, provider = await run_with(asked, says("It rains", " in both."))
    assert run.text == "It rains in both."
    assert run.stopped == "done"
    assert run.usage == Usage(40, 16, 10)
    assert [m.role for m in run.conversation.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    first, second = provider.requests
    assert second.body["messages"][: len(first.body["messages"])] == first.body["messages"]
    assert second.body["messages"][2:] == [
        {"role": "tool", "tool_call_id": "call_a", "content": "rain in London"},
        {"role": "tool", "tool_call_id": "call_b", "content": "rain in Paris"},
    ]
    assert second.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"city": "London"}'


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
async def test_an_answer_may_be_cut_anywhere(size: int) -> None:
    words = "naïve – 日本 🙂\n\ndata: no event"
    whole = b"".join(chunks({"content": words}, piece(0, '{"city": "Zürich 🙂"}', "get_weather", "c1"), finish="stop"))
    run, _ = await run_with(Reply(cut(whole, *range(size, len(whole), size))), says("Yes."))
    said = run.conversation.messages[1]
    assert said.parts == (Text(words), ToolCall("c1", "get_weather", '{"city": "Zürich 🙂"}'))
    assert run.conversation.messages[2].result.text == "rain in Zürich 🙂"


async def test_the_events_tell_a_message_as_it_comes() -> None:
    async with server(
        chat({"content": "Let me"}, {"content": " see."}, piece(0, "{}", "get_weather", "c1"))
    ) as provider:
        chosen, pipeline = asking(provider)
        stream = chosen.stream(pipeline.conversation, pipeline.registry.specs, ModelSettings())
        events = [event async for event in stream]
        await chosen.aclose()
    assert events[:-1] == [
        TextDelta("Let me"),
        TextDelta(" see."),
        CallStarted(0, "get_weather", "c1"),
        ArgumentsDelta(0, "{}"),
        CallFinished(0, ToolCall("c1", "get_weather", "{}")),
    ]
    assert isinstance(events[-1], MessageFinished)
    assert events[-1].stop == "calls"


async def test_arguments_that_are_no_json_are_answered_and_the_conversation_goes_on() -> None:
    run, provider = await run_with(calls(("c1", "get_weather", '{"city": "Lon')), says("Sorry."))
    result = run.conversation.messages[2].result
    assert result.status == "invalid"
    assert provider.requests[1].body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"city": "Lon'
    assert run.text == "Sorry."


@pytest.mark.parametrize(
    "failure",
    [
        refused(429, "Rate limit reached", "rate_limit_exceeded", retry_after="0"),
        refused(429, "Rate limit reached", "rate_limit_exceeded", retry_after_ms="5"),
        refused(429, "Rate limit reached"),
        refused(500, "The server had an error"),
        json_reply(503, {"detail": "model is loading"}),
        Reply([], ending="dropped"),
        Reply([chunk({"role": "assistant", "content": ""})], ending="dropped"),
        Reply([chunk({"role": "assistant", "content": ""}), event(error_body("try again", "server_error", "error"))]),
        Reply([b'data: {"choices": [\n\n']),
        Reply([chunk({"role": "assistant", "content": ""})], ending="closed"),
    ],
)
async def test_what_can_be_tried_again_is(failure: Reply) -> None:
    run, provider = await run_with(failure, says("It rains."))
    assert run.text == "It rains."
    assert len(provider.requests) == 2


async def test_a_key_that_is_refused_is_named_and_not_tried_again() -> None:
    async with server() as provider:
        chosen = OpenAIChat("gpt-test", api_key="wrong", base_url=f"{provider.url}/v1")
        with pytest.raises(
            ProviderError, match=r"gpt-test.*401: Incorrect API key.*OPENAI_API_KEY.*api_key="
        ) as raised:
            await model(chosen).chat("?").run()
        assert raised.value.status == 401
        assert "wrong" not in str(raised.value)
        await chosen.aclose()


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (refused(429, "You exceeded your current quota", "insufficient_quota"), "exceeded your current quota"),
        (refused(404, "The model `gpt-test` does not exist", "model_not_found"), "openai:gpt-test.*does not exist"),
        (refused(400, "Invalid schema for function 'get_weather'"), "400: Invalid schema for function 'get_weather'"),
        (Reply([b"<html>hello</html>"], headers={"content-type": "text/html"}), "text/html.*address of OpenAI's API"),
        (json_reply(200, {"choices": []}), "application/json instead of a stream"),
    ],
)
async def test_what_will_not_change_is_not_tried_again(failure: Reply, words: str) -> None:
    with pytest.raises(ProviderError, match=words):
        await run_with(failure)


async def test_a_server_that_is_not_there_is_named() -> None:
    async with server() as provider:
        address = f"{provider.url}/v1"
    chosen = OpenAIChat("gpt-test", api_key=KEY, base_url=address)
    with pytest.raises(ProviderError, match=f"no connection to {address}.*3 attempts"):
        await model(chosen).chat("?").run()
    await chosen.aclose()


async def test_a_drop_in_the_middle_of_a_call_is_asked_again() -> None:
    begun = chat(
        {"content": "One moment."},
        piece(0, '{"city": "London"}', "get_weather", "c1"),
        piece(1, '{"city": "Par', "get_weather", "c2"),
        ending="dropped",
    )
    run, provider = await run_with(begun, says("It rains."))
    assert [message.role for message in run.conversation.messages] == ["user", "assistant"]
    assert run.text == "It rains."
    assert [loss.kind for loss in run.losses] == ["text", "call"]
    assert [one.body["messages"] for one in provider.requests] == [[{"role": "user", "content": "Rain?"}]] * 2
    with pytest.raises(StreamBroken, match="the answer broke off in the middle of a call, 3 times"):
        await run_with(*[begun] * 16)


async def test_a_call_that_the_token_limit_cuts_off_is_answered() -> None:
    begun = chat(piece(0, '{"city": "Par', "get_weather", "c1"), finish="length")
    run, provider = await run_with(begun, says("It rains."))
    assert run.conversation.messages[1].parts == (MalformedCall("c1", 'get_weather({"city": "Par', "truncated"),)
    assert [m.result.status for m in run.conversation.messages if m.role == "tool"] == ["invalid"]
    again = provider.requests[1].body["messages"]
    assert [one["role"] for one in again] == ["user", "assistant", "user"]
    assert 'get_weather({"city": "Par' in str(again[1]["content"])


async def test_in_text_too_a_drop_in_the_middle_of_a_call_is_asked_again() -> None:
    begun = chat({"content": 'So. <tool_call>{"name": "get_weather", "argu'}, ending="dropped")
    async with server(begun, says("It rains.")) as provider:
        chosen, _ = asking(provider)
        run = await model(chosen).chat("?").using(get_weather, mode="hermes").run()
        await chosen.aclose()
    assert run.text == "It rains."
    assert [message.role for message in run.conversation.messages] == ["user", "assistant"]
    assert len(provider.requests) == 2


async def test_a_drop_in_the_middle_of_words_keeps_them() -> None:
    run, provider = await run_with(chat({"content": "It ra"}, ending="dropped"))
    assert run.text == "It ra"
    assert run.stopped == "error"
    assert len(provider.requests) == 1


async def test_an_error_in_the_middle_of_an_answer_ends_it() -> None:
    broken = Reply([chunk({"content": "It ra"}), event(error_body("overloaded", None, "server_error"))])
    run, _ = await run_with(broken)
    assert (run.text, run.stopped) == ("It ra", "error")


async def test_a_server_that_stops_sending_is_given_up() -> None:
    configure("http://127.0.0.1", GatewaySettings(attempts=1, timeouts=Timeouts(first=0.2, silence=0.2)))
    with pytest.raises(ProviderError, match="no first chunk"):
        await run_with(Reply([], ending="stalled"))
    run, _ = await run_with(chat({"content": "It ra"}, ending="stalled"))
    assert (run.text, run.stopped) == ("It ra", "error")


async def test_a_break_before_anything_that_can_be_kept_is_an_error() -> None:
    broken = Reply([chunk({"tool_calls": []}), chunk({"reasoning": None, "content": None, "refusal": "", "x": 1})])
    with pytest.raises(ProviderError, match="stopped before its end") as raised:
        await run_with(*[broken] * 4)  # as often as it is tried
    assert not isinstance(raised.value, StreamBroken)


async def test_leaving_a_stream_closes_the_connection() -> None:
    async with server(chat({"content": "It"}, ending="stalled")) as provider:
        chosen, pipeline = asking(provider)
        async with pipeline.stream() as run:
            async for happened in run:
                if isinstance(happened, TextDelta):
                    break
        await provider.idle()
        await chosen.aclose()


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("stop", "turn"), ("length", "length"), ("content_filter", "refusal"), ("end_turn", "turn"), (None, "turn")],
)
async def test_why_an_answer_ended(finish: str | None, stop: str) -> None:
    async with server(says("It rains.", finish=finish)) as provider:
        chosen, pipeline = asking(provider)
        stream = chosen.stream(pipeline.conversation, (), ModelSettings())
        assert [one async for one in stream][-1].stop == stop
        await chosen.aclose()


async def test_a_call_cut_by_the_limit_on_tokens_is_malformed_and_a_whole_one_is_run() -> None:
    cut_off = chat(
        piece(0, '{"city": "London"}', "get_weather", "c1"),
        piece(1, '{"city": "Par', "get_weather", "c2"),
        finish="length",
    )
    run, _ = await run_with(cut_off, says("It rains."))
    assert [m.result.status for m in run.conversation.messages if m.role == "tool"] == ["ok", "invalid"]


async def test_a_refusal_is_text_and_goes_back_as_a_refusal() -> None:
    async with server(chat({"refusal": "I "}, {"refusal": "won't."}), says("No.")) as provider:
        chosen, pipeline = asking(provider)
        run = await pipeline.run()
        assert run.text == "I won't."
        await model(chosen).chat(run.conversation).chat("Please?").run()
        assert provider.requests[1].body["messages"][1] == {
            "role": "assistant",
            "content": None,
            "refusal": "I won't.",
        }
        await chosen.aclose()


async def test_names_that_openai_does_not_allow_are_mapped_there_and_back() -> None:
    dotted = get_weather
    from ferrule import ToolRegistry

    registry = ToolRegistry([dotted]).renamed({"get_weather": "weather.now"})
    async with server(calls(("c1", "weather_now", '{"city": "Rome"}')), says("Rain.")) as provider:
        chosen = OpenAIChat("gpt-test", api_key=KEY, base_url=f"{provider.url}/v1")
        run = await model(chosen).chat("?").using(registry).run()
        assert run.conversation.messages[1].calls[0].name == "weather.now"
        assert run.conversation.messages[2].result.text == "rain in Rome"
        assert provider.requests[1].body["messages"][1]["tool_calls"][0]["function"]["name"] == "weather_now"
        await chosen.aclose()


async def test_images_and_calls_of_another_provider_can_be_shown() -> None:
    from ferrule.conversation import Conversation, ToolResult, tool_message, user

    picture = Image(b"\x89PNG", "image/png")
    long_id = "toolu_" + "x" * 60
    earlier = Conversation(
        (
            user("What is this?", picture),
            Message("assistant", (Reasoning("look"), ToolCall(long_id, "snap.shot", ""))),
            tool_message(ToolResult(long_id, "snap.shot", (Text("here"), picture))),
        )
    )
    async with server(says("A cat.")) as provider:
        chosen = OpenAIChat("gpt-test", api_key=KEY, base_url=f"{provider.url}/v1")
        run = await model(chosen).chat(earlier).run()
        assert run.text == "A cat."
        sent = provider.requests[0].body["messages"]
        assert sent[0]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw=="
        assert sent[2]["tool_call_id"] == sent[1]["tool_calls"][0]["id"]
        assert sent[3]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw=="
        await chosen.aclose()


async def test_one_model_serves_several_event_loops() -> None:
    async with server(says("One."), says("Two.")) as provider:
        chosen, pipeline = asking(provider)
        assert (await pipeline.run()).text == "One."
        assert (await asyncio.to_thread(pipeline.run_sync)).text == "Two."
        await chosen.aclose()
        from ferrule._util.background import run_synchronously

        await asyncio.to_thread(run_synchronously, chosen.aclose())


def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(
        ModelError, match=r'no key for OpenAI: set OPENAI_API_KEY, or give model\("openai:gpt-5", api_key'
    ):
        OpenAIChat("gpt-5")


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ModelError, match=r'needs the httpx2 package: pip install "ferrule\[hosted\]"'):
        OpenAIChat("gpt-5", api_key=KEY)
