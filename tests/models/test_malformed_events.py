"""Events that are JSON, but whose fields have other types or places than the API defines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai_server import chunk, event
from scripted_http import Reply, ScriptedServer

from ferrule import Run, model, tool
from ferrule.conversation import ToolCall
from ferrule.errors import StreamBroken
from ferrule.events import Usage
from ferrule.models.naming import make_hosted_model

KEY = "sk-very-secret"
CALL = {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 2, "b": 3}', "status": "completed"}
FIVE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "5"}]}
START = {"type": "message_start", "message": {"usage": {"input_tokens": "3"}}}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "5"}}
THOUGHT = {"type": "content_block_start", "index": 1, "content_block": {"type": "thinking", "thinking": "Hm."}}
UNSIGNED = {"type": "content_block_delta", "index": 1, "delta": {"type": "signature_delta", "signature": None}}
LAST = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7.0}}
STOP = {"type": "message_stop"}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def decode(written: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written.removeprefix(b"data: "))
    return found


def said(**fields: Any) -> dict[str, Any]:
    return decode(chunk({"content": "5"}, "stop", **fields))


def whole(finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}]}


def ended(**response: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"status": "completed", **response}}


def candidate(part: Any, finish: Any = "STOP", **used: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [part]}, "finishReason": finish}], "usageMetadata": used}


async def ask(provider: str, *answers: list[dict[str, Any]]) -> Run:
    replies = [Reply([event(one, one.get("type", "")) for one in answer]) for answer in answers]
    async with ScriptedServer(lambda _: None, *replies) as listening:
        base_url = listening.url + ("/v1" if provider.startswith(("compatible", "openai")) else "")
        chosen = make_hosted_model(provider, "m", api_key=KEY, base_url=base_url)
        async with model(chosen).using(add) as pipeline:
            return await pipeline.chat("2 + 3?").run()


@pytest.mark.parametrize(
    ("provider", "events", "usage"),
    [
        ("compatible", [said(usage={"prompt_tokens": "3", "completion_tokens": "7"})], Usage(3, 0, 7)),
        ("compatible", [said(usage={"prompt_tokens": 3.0, "completion_tokens": -7, "x": [1]})], Usage(3)),
        ("compatible", [said(usage={"prompt_tokens": {"a": 1}, "prompt_tokens_details": [1]})], Usage()),
        ("openai-responses", [ended(output=[FIVE], usage={"input_tokens": "3"})], Usage(3)),
        ("google", [candidate({"text": "5"}, promptTokenCount="3", candidatesTokenCount=None)], Usage(3)),
        ("anthropic", [START, BLOCK, LAST, STOP], Usage(3, 0, 7)),
    ],
)
async def test_wrong_numbers_of_tokens_cost_no_answer(provider: str, events: list[Any], usage: Usage) -> None:
    run = await ask(provider, events)
    assert (run.text, run.stopped, run.usage) == ("5", "done", usage)


@pytest.mark.parametrize(
    ("provider", "first"),
    [
        (
            "compatible",
            [whole("tool_calls", tool_calls=[{"function": {"name": "add", "arguments": CALL["arguments"]}}])],
        ),
        (
            "compatible",
            [decode(chunk({"tool_calls": [{"id": 0, "function": CALL}]}, "stop"))],
        ),
        ("openai-responses", [ended(output=[CALL])]),
        ("openai-responses", [ended(output=[{**CALL, "arguments": {"a": 2, "b": 3}}])]),
    ],
)
async def test_calls_are_run_wherever_a_server_puts_them(provider: str, first: list[Any]) -> None:
    last = [ended(output=[FIVE])] if provider == "openai-responses" else [whole(content="5")]
    run = await ask(provider, first, last)
    call, result, answer = run.conversation.messages[1:]
    made = call.calls[0]
    assert isinstance(made, ToolCall)
    assert isinstance(made.id, str)
    assert (made.name, result.result.text, answer.text) == ("add", "5", "5")


async def test_a_whole_message_after_its_pieces_adds_nothing() -> None:
    pieces = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("It ", "rains.")]
    run = await ask("compatible", [*pieces, whole(content="It rains.")])
    assert (run.text, run.stopped) == ("It rains.", "done")


async def test_a_thought_without_a_signature_is_read() -> None:
    run = await ask("anthropic", [START, BLOCK, THOUGHT, UNSIGNED, LAST, STOP])
    assert (run.text, run.stopped) == ("5", "done")


@pytest.mark.parametrize(
    ("provider", "wrong"),
    [
        ("compatible", {"choices": [{"delta": {"tool_calls": [{"index": {}, "function": {"name": "add"}}]}}]}),
        ("openai-responses", {"type": "response.output_text.delta", "output_index": 0, "delta": {"text": KEY}}),
        ("openai-responses", {"type": "response.output_text.delta", "output_index": [], "delta": "5"}),
        ("google", candidate({"text": 5}, None)),
        ("anthropic", {"type": "content_block_start", "index": 0, "content_block": None}),
        ("anthropic", {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "5"}}),
    ],
)
async def test_an_event_in_another_format_is_reported_and_shown(provider: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(
        StreamBroken, match=f"^{provider}:m: an event of the answer is not in the API's format: {{"
    ) as raised:
        await ask(provider, [wrong])
    assert KEY not in str(raised.value)


async def test_what_came_before_an_event_in_another_format_is_kept() -> None:
    begun = {"choices": [{"index": 0, "delta": {"content": "It rains."}}]}
    run = await ask("compatible", [begun, {"choices": [{"delta": {"tool_calls": 5}}]}])
    assert (run.text, run.stopped) == ("It rains.", "error")
    assert "not in the API's format" in run.losses[0].detail


async def test_an_event_that_cannot_be_classified_is_requested_again() -> None:
    run = await ask("compatible", [{"choices": 5}], [said()])
    assert (run.text, run.stopped) == ("5", "done")


async def test_the_reason_of_an_error_in_a_choice_is_reported() -> None:
    begun = {"choices": [{"index": 0, "delta": {"content": "It "}}]}
    error = {"code": 502, "message": f"upstream is down for {KEY}"}
    run = await ask("compatible", [begun, {"choices": [{"index": 0, "finish_reason": "error", "error": error}]}])
    assert (run.text, run.stopped) == ("It ", "error")
    assert [loss.detail for loss in run.losses] == [
        "the server ended the answer: error: upstream is down for [scrubbed]"
    ]
