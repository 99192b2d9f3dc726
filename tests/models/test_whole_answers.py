"""Answers that a server sends as one JSON value: because it was asked to, or because it can't stream."""

from __future__ import annotations

from typing import Any

import anthropic_server as claude
import openai_server
import pytest
from scripted_http import Reply, Request, ScriptedServer, json_reply

from ferrule import Reasoning, model, tool
from ferrule.errors import ProviderError
from ferrule.models.naming import make_hosted_model

CITY = {"city": "São  Paulo"}
ARGUMENTS = '{"city": "São  Paulo"}'
FUNCTION = {"type": "function", "function": {"name": "sky", "arguments": ARGUMENTS}}
CHAT_USAGE = {"prompt_tokens": 20, "completion_tokens": 5}


@tool
def sky(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


def chat(finish: str, **message: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": CHAT_USAGE}


def response(*output: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 20, "output_tokens": 5}
    return {"object": "response", "status": status, "output": list(output), "usage": usage, **more}


def message(stop: str, *content: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 20, "output_tokens": 5}
    return {"type": "message", "role": "assistant", "content": list(content), "stop_reason": stop, "usage": usage}


def candidates(stop: str, *parts: dict[str, Any]) -> dict[str, Any]:
    used = {"promptTokenCount": 20, "candidatesTokenCount": 5}
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": stop}], "usageMetadata": used}


def block(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "sky", "input": CITY}


# For each format: an answer with two calls, one in words, and one that was cut.
ANSWERS: dict[str, tuple[Any, Any, Any]] = {
    "compatible": (
        chat("tool_calls", content=None, reasoning_content="Hm.", tool_calls=[{"id": "a", **FUNCTION}, FUNCTION]),
        chat("stop", content="It rains."),
        chat("length", content="It rai"),
    ),
    "openai-responses": (
        response(
            openai_server.reasoning_item("Hm."),
            openai_server.call_item("a", "sky", ARGUMENTS),
            openai_server.call_item("b", "sky", ARGUMENTS),
        ),
        response(openai_server.message_item("It rains.")),
        response(
            openai_server.message_item("It rai"),
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
    ),
    "anthropic": (
        message("tool_use", claude.thinking("Hm."), block("a"), block("b")),
        message("end_turn", claude.text("It rains.")),
        message("max_tokens", claude.text("It rai")),
    ),
    "google": (
        candidates("STOP", {"text": "Hm.", "thought": True}, *[{"functionCall": {"name": "sky", "args": CITY}}] * 2),
        candidates("STOP", {"text": "It rains."}),
        [candidates("MAX_TOKENS", {"text": "It rai"})],
    ),
}


def make(provider: str, server: ScriptedServer, **options: Any) -> Any:
    path = "" if provider in ("anthropic", "google") else "/v1"
    return make_hosted_model(provider, "m", api_key="test-key", base_url=f"{server.url}{path}", **options)


@pytest.mark.parametrize("options", [{}, {"stream": False}])
@pytest.mark.parametrize("provider", ANSWERS)
async def test_an_answer_in_one_piece_is_read_as_one_that_streams(provider: str, options: dict[str, Any]) -> None:
    replies = [json_reply(200, answer) for answer in ANSWERS[provider]]
    async with ScriptedServer(lambda _: None, *replies) as server, model(make(provider, server, **options)) as asked:
        run = await asked.using(sky).chat("Rain?").run()
        cut = await asked.chat("Rain?").run()
    run.conversation.check()
    results = [one.result.text for one in run.conversation.messages if one.role == "tool"]
    assert (run.text, run.stopped, results) == ("It rains.", "done", ["rain in São  Paulo"] * 2)
    assert run.conversation.messages[1].parts[0] == Reasoning("Hm.")
    assert (run.usage.prompt_tokens, run.usage.sampled_tokens) == (40, 10)
    assert (cut.text, cut.stopped) == ("It rai", "length")
    first = server.requests[0]
    is_streamed = "streamGenerateContent" in first.path if provider == "google" else first.body["stream"]
    assert is_streamed == options.get("stream", True)
    assert ("stream_options" in first.body) == (provider == "compatible" and not options)


@pytest.mark.parametrize("provider", ANSWERS)
@pytest.mark.parametrize("body", [{"status": "ok"}, [], {"choices": []}, {"type": "message"}, {"output": "no"}, "no"])
async def test_other_json_is_still_no_answer(provider: str, body: Any) -> None:
    async with ScriptedServer(lambda _: None, json_reply(200, body)) as server:
        made = make(provider, server)
        with pytest.raises(ProviderError, match="application/json instead of a stream of events"):
            await model(made).chat("Rain?").run()
        await made.aclose()


async def test_a_server_that_streams_although_it_was_asked_not_to_is_read() -> None:
    def judge(request: Request) -> None:
        assert request.body["stream"] is False

    async with (
        ScriptedServer(judge, openai_server.says("Yes.")) as server,
        model(make("compatible", server, stream=False)) as asked,
    ):
        run = await asked.chat("?").run()
    assert run.text == "Yes."


@pytest.mark.parametrize("media_type", ["application/json", "text/plain; charset=utf-8"])
async def test_events_of_another_media_type_are_read(media_type: str) -> None:
    answers = [openai_server.calls(("a", "sky", ARGUMENTS)), openai_server.says("São  Paulo: ", "rain.")]
    typed = [Reply(answer.pieces, headers={"content-type": media_type}) for answer in answers]
    async with ScriptedServer(lambda _: None, *typed) as server:
        run = await model("compatible:m", base_url=f"{server.url}/v1").chat("Rain?").using(sky).run()
    assert (run.text, run.stopped, run.usage.prompt_tokens) == ("São  Paulo: rain.", "done", 40)
