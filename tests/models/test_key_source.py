"""`api_key=` as a function: asked before each request, once more after a 401, and never shown."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from asking import events_of, try_again_at_once
from openai_server import error_body, says
from scripted_http import Reply, Request, ScriptedServer, json_reply

from ferrule import model, user
from ferrule.errors import ModelError, ProviderError, SettingsError
from ferrule.models.anthropic.model import AnthropicModel
from ferrule.models.google.model import GoogleModel
from ferrule.models.hosted import HostedModel
from ferrule.models.naming import get_model
from ferrule.models.openai.chat import OpenAIChat


def accept(*keys: str) -> Callable[[Request], Reply | None]:
    """Accept one key after another, each for one request."""
    wanted = list(keys)

    def judge(request: Request) -> Reply | None:
        if request.headers.get("authorization") != f"Bearer {wanted[0]}":
            return json_reply(401, error_body(f"wrong key: {request.headers.get('authorization')}"))
        if len(wanted) > 1:
            wanted.pop(0)
        return None

    return judge


async def test_it_is_asked_before_each_request() -> None:
    keys = iter(["first", "second"])
    async with ScriptedServer(accept("first", "second"), says("One."), says("Two.")) as server:
        made = OpenAIChat("m", "openai", api_key=lambda: next(keys), base_url=f"{server.url}/v1")
        assert (await events_of(made))[-1].message.text == "One."
        assert (await events_of(made))[-1].message.text == "Two."
        await made.aclose()


async def test_it_may_be_async_and_one_that_blocks_runs_in_a_thread() -> None:
    threads: list[int] = []

    async def fetch() -> str:
        return " first\n"

    def read() -> str:
        threads.append(threading.get_ident())
        return "first"

    for function in (fetch, read):
        async with ScriptedServer(accept("first"), says("One.")) as server:
            made = OpenAIChat("m", "openai", api_key=function, base_url=f"{server.url}/v1")
            assert (await events_of(made))[-1].message.text == "One."
            await made.aclose()
    assert threads != [threading.get_ident()]
    assert len(threads) == 1


async def test_after_a_401_it_is_asked_once_more() -> None:
    keys = iter(["old", "new"])
    async with ScriptedServer(accept("new"), says("Yes.")) as server:
        made = OpenAIChat("m", "openai", api_key=lambda: next(keys), base_url=f"{server.url}/v1")
        assert (await events_of(made))[-1].message.text == "Yes."
        await made.aclose()


async def test_the_same_key_is_not_sent_again_after_a_401_and_no_key_is_shown() -> None:
    asked: list[str] = []

    def give() -> str:
        asked.append("secret-key-1")
        return asked[-1]

    async with ScriptedServer(accept("other")) as server:
        made = OpenAIChat("m", "openai", api_key=give, base_url=f"{server.url}/v1")
        with pytest.raises(ProviderError, match="401") as raised:
            await events_of(made)
        assert "secret-key-1" not in str(raised.value)
        assert len(asked) == 2
        await made.aclose()


async def test_a_retried_request_asks_again() -> None:
    keys = iter(["first", "second"])
    failing = json_reply(500, error_body("busy"))
    async with ScriptedServer(accept("first", "second"), failing, says("Yes.")) as server:
        try_again_at_once(server.url)
        made = OpenAIChat("m", "openai", api_key=lambda: next(keys), base_url=f"{server.url}/v1")
        assert (await events_of(made))[-1].message.text == "Yes."
        await made.aclose()


@pytest.mark.parametrize(
    ("kind", "header"), [(AnthropicModel, "x-api-key"), (GoogleModel, "x-goog-api-key"), (OpenAIChat, "authorization")]
)
async def test_every_provider_is_sent_it(kind: type[HostedModel], header: str) -> None:
    sent: list[str | None] = []

    def judge(request: Request) -> Reply | None:
        sent.append(request.headers.get(header))
        return json_reply(400, error_body("enough"))

    async with ScriptedServer(judge) as server:
        made: Any = kind("m", api_key=lambda: "rotated", base_url=server.url)  # type: ignore[call-arg]
        with pytest.raises(ProviderError):
            await events_of(made)
        await made.aclose()
    assert [(key or "").removeprefix("Bearer ") for key in sent] == ["rotated"]


def fail() -> str:
    raise OSError("vault says: token=abc")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (fail, "raised OSError; nothing was sent"),
        (lambda: "", "a text that can't be a key"),
        (lambda: "a\nb", "a text that can't be a key"),
        (lambda: None, "returned NoneType"),
    ],
)
async def test_a_function_that_gives_no_key_is_named(function: Any, words: str) -> None:
    async with ScriptedServer(accept("x")) as server:
        made = OpenAIChat("m", "openai", api_key=function, base_url=f"{server.url}/v1")
        with pytest.raises(ModelError, match=f"openai:m: the function given as api_key .*{words}") as raised:
            await events_of(made)
        assert "abc" not in str(raised.value)
        assert server.requests == []
        await made.aclose()


def test_where_a_package_signs_requests_a_function_is_refused_with_what_to_give() -> None:
    with pytest.raises(ModelError, match="api_key must be a text here, or give token_provider="):
        get_model("azure:gpt", api_key=lambda: "k", base_url="https://x.openai.azure.com")


def test_a_pipeline_with_one_that_cannot_be_sent_to_another_process_says_so() -> None:
    import pickle

    pipeline = model("openai:gpt-5", api_key=lambda: "k").chat(user("Hi"))
    with pytest.raises(SettingsError, match="the options of the model 'openai:gpt-5'"):
        pickle.dumps(pipeline)
