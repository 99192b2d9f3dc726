"""Anthropic's format requires a limit of tokens: the default that nobody asked for fails no request."""

from __future__ import annotations

from typing import Any

import anthropic_server as claude
import pytest
from scripted_http import Reply, ScriptedServer

from ferrule import model
from ferrule.errors import ProviderError
from ferrule.models.anthropic.model import AnthropicModel

ANSWER = claude.answer(claude.text("Yes."))


def refused(words: str) -> Reply:
    return claude.error(400, "invalid_request_error", words)


# What a server says, what is sent then, and with the next request.
REFUSALS = [
    (
        "max_tokens=32000 cannot be greater than max_model_len=max_total_tokens=4096. Please request fewer tokens.",
        4096,
        4096,
    ),
    ("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-test", 8192, 8192),
    ("input length and `max_tokens` exceed context limit: 178959 + 32000 > 200000, decrease either", 21041, 32000),
    (
        "'max_tokens' is too large: 32000. This model's maximum context length is 4096 tokens (32000 > 4096 - 50).",
        4046,
        2048,
    ),
    (
        "exceeds the model's maximum context length of 4096 tokens: 50 tokens from the input messages and 32000 others",
        4046,
        2048,
    ),
    ("Range of max_tokens should be [1, 16384]", 16384, 16384),
]


async def ask(*script: Reply, times: int = 1, name: str = "m", **settings: Any) -> list[Any]:
    async with (
        ScriptedServer(lambda _: None, *script) as server,
        model(AnthropicModel(name, api_key="k", base_url=server.url)).with_(**settings) as asked,
    ):
        runs = [await asked.chat("?").run() for _ in range(times)]
    assert {run.text for run in runs} <= {"Yes.", ""}
    return [request.body for request in server.requests]


@pytest.mark.parametrize(("words", "then", "later"), REFUSALS)
async def test_a_refused_default_is_lowered(words: str, then: int, later: int) -> None:
    bodies = await ask(refused(words), ANSWER, ANSWER, times=2)
    assert [body["max_tokens"] for body in bodies] == [32_000, then, later]
    assert {str(body["messages"]) for body in bodies} == {str(bodies[0]["messages"])}


async def test_a_limit_that_was_set_is_not_changed() -> None:
    with pytest.raises(ProviderError, match="cannot be greater"):
        await ask(refused(REFUSALS[0][0]), max_tokens=32_000)


async def test_the_budget_to_think_stays_below_it() -> None:
    script = (refused("max_tokens: 32000 > 4096, which is the most"), ANSWER)
    bodies = await ask(*script, name="claude-3-7-sonnet", effort="medium")
    limits = [(body["max_tokens"], body["thinking"]["budget_tokens"]) for body in bodies]
    assert limits == [(32_000, 8192), (4096, 4095)]


@pytest.mark.parametrize(
    "words",
    [
        "input length and `max_tokens` exceed context limit: 199990 + 32000 > 200000",
        "prompt is too long: 208310 tokens > 200000 maximum",
    ],
)
async def test_a_prompt_that_leaves_no_room_is_still_too_long(words: str) -> None:
    assert [body["max_tokens"] for body in await ask(refused(words))] == [32_000]
