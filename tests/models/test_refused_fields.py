"""Fields of a request that a server refuses: the same request is sent without them, now and from then on."""

from __future__ import annotations

import logging
from typing import Any

import openai_server
import pytest
from asking import try_again_at_once
from scripted_http import Reply, Request, ScriptedServer, json_reply

from ferrule import Pipeline, calculator, model
from ferrule.errors import ProviderError

OPTIONS, PARALLEL = "stream_options", "parallel_tool_calls"
FORBIDDEN = [{"type": "extra_forbidden", "loc": ["body", OPTIONS], "msg": "Extra inputs are not permitted"}]


def error(status: int, words: str) -> Reply:
    return openai_server.refused(status, words)


def judge_by(*refusals: tuple[str, Reply]) -> Any:
    """A server that refuses a request with any of these fields, and answers every other."""

    def judge(request: Request) -> Reply:
        refused = next((reply for field, reply in refusals if field in request.body), None)
        if refused is not None:
            return refused
        if request.path.endswith("/responses"):
            return openai_server.responses(openai_server.message_item("5"))
        return openai_server.says("5")

    return judge


async def ask_twice(
    judge: Any, provider: str = "compatible", **settings: Any
) -> tuple[list[str], list[dict[str, Any]]]:
    """The answers to two questions, and the bodies of all the requests for them."""
    bodies: list[dict[str, Any]] = []

    def note(request: Request) -> Reply:
        bodies.append(request.body)
        reply: Reply = judge(request)
        return reply

    async with ScriptedServer(note) as server:
        try_again_at_once(f"{server.url}/v1")
        made: Pipeline = model(f"{provider}:m", api_key="k", base_url=f"{server.url}/v1").using(calculator)
        async with made.with_(**settings) if settings else made as pipeline:
            return [run.text for run in await pipeline.run_batch(["2 + 3?", "1 + 4?"], concurrency=1)], bodies


@pytest.mark.parametrize(
    ("provider", "field", "reply"),
    [
        ("compatible", OPTIONS, error(400, "Unrecognized request argument supplied: stream_options")),
        ("vllm", OPTIONS, json_reply(422, {"detail": FORBIDDEN})),
        ("groq", OPTIONS, error(400, "Stream options are not supported by this model")),
        ("compatible", PARALLEL, error(422, "Extra inputs are not permitted: parallel_tool_calls")),
        ("openai", PARALLEL, error(400, "Unsupported parameter: 'parallel_tool_calls' is not supported")),
        ("openrouter", PARALLEL, error(400, "This model does not support parallel tool calls.")),
        ("openai-responses", PARALLEL, error(400, "Unknown parameter: 'parallel_tool_calls'.")),
    ],
)
async def test_a_refused_field_is_left_out(
    provider: str, field: str, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "ferrule.models"):
        texts, bodies = await ask_twice(judge_by((field, reply)), provider, parallel_calls=False)
    assert texts == ["5", "5"]
    assert [field in body for body in bodies] == [True, False, False]
    assert {**bodies[0], field: None} == {**bodies[1], field: None}
    (logged,) = caplog.records
    assert f"; requests are sent without {field}, so " in logged.getMessage()


async def test_two_refused_fields_take_two_more_requests(caplog: pytest.LogCaptureFixture) -> None:
    refuse_both = judge_by(*((field, error(400, f"unknown field {field}")) for field in (OPTIONS, PARALLEL)))
    texts, bodies = await ask_twice(refuse_both, parallel_calls=True)
    assert texts == ["5", "5"]
    assert [(OPTIONS in body, PARALLEL in body) for body in bodies] == [
        (True, True), (False, True), (False, False), (False, False),
    ]  # fmt: skip
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("reply", "settings"),
    [
        (error(400, "unknown field temperature"), {}),
        (error(400, "unknown field parallel_tool_calls"), {}),  # which wasn't sent
        (error(400, "unknown field stream_options"), {"extra": {OPTIONS: {"include_usage": False}}}),
        (error(401, "a key without stream_options"), {}),
    ],
)
async def test_any_other_refusal_is_an_error(reply: Reply, settings: dict[str, Any]) -> None:
    async with ScriptedServer(lambda _: None, reply) as server:
        asked = model("compatible:m", base_url=f"{server.url}/v1").with_(**settings)
        with pytest.raises(ProviderError, match="answered 40"):
            await asked.chat("2 + 3?").run()
    assert len(server.requests) == 1


async def test_a_field_that_the_server_refuses_without_it_too_is_requested_once_more() -> None:
    async with ScriptedServer(lambda _: None, *[error(400, "unknown field stream_options")] * 2) as server:
        with pytest.raises(ProviderError, match="stream_options"):
            await model("compatible:m", base_url=f"{server.url}/v1").chat("2 + 3?").run()
    assert [OPTIONS in request.body for request in server.requests] == [True, False]
