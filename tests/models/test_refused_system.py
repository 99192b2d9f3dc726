"""A server that takes no system message: its text is sent with the user's first message."""

from __future__ import annotations

import logging
from typing import Any

import google_server
import openai_server
import pytest
from asking import HOSTED, PIXEL, try_again_at_once
from scripted_http import Reply, Request, ScriptedServer

from ferrule import calculator, model
from ferrule.conversation import Conversation, Image, assistant, system, user
from ferrule.errors import ProviderError
from ferrule.models.refusals import merge_system

RULE = "Answer in French."
WORDS = [
    (400, "System role not supported"),
    (500, "Jinja Exception: System role not supported"),
    (400, "Only user and assistant roles are supported!"),
    (400, "Only user, assistant and tool roles are supported"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
]


async def ask_twice(judge: Any, kind: str = "openai", mode: str = "api") -> tuple[list[str], list[dict[str, Any]]]:
    """The answers to two questions, and the bodies of all the requests for them."""
    bodies: list[dict[str, Any]] = []

    def note(request: Request) -> Reply:
        bodies.append(request.body)
        reply: Reply = judge(request)
        return reply

    async with ScriptedServer(note) as server:
        try_again_at_once(server.url)
        async with model(HOSTED[kind](server.url)).using(calculator, mode=mode).system(RULE) as pipeline:
            return [run.text for run in await pipeline.run_batch(["2 + 3?", "1 + 4?"], concurrency=1)], bodies


@pytest.mark.parametrize("mode", ["api", "hermes"])
@pytest.mark.parametrize(("status", "words"), WORDS)
async def test_its_text_goes_to_the_first_user_message(
    status: int, words: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    def judge(request: Request) -> Reply:
        if request.body["messages"][0]["role"] == "system":
            return openai_server.refused(status, words)
        return openai_server.says("5")

    with caplog.at_level(logging.WARNING, "ferrule.models"):
        texts, bodies = await ask_twice(judge, mode=mode)
    assert texts == ["5", "5"]
    for body, question in zip(bodies[-2:], ("2 + 3?", "1 + 4?"), strict=True):
        (asked,) = body["messages"]
        assert (asked["role"], RULE in asked["content"]) == ("user", True)
        assert asked["content"].endswith(f"\n\n{question}")
    (logged,) = caplog.records
    assert logged.getMessage().endswith("; the system text is sent at the beginning of the first user message instead")


async def test_gemma_behind_googles_api_is_asked_without_instructions() -> None:
    def judge(request: Request) -> Reply:
        if "systemInstruction" in request.body:
            return google_server.error(400, "INVALID_ARGUMENT", "Developer instruction is not enabled for models/m")
        return google_server.answer(google_server.text("5"))

    texts, bodies = await ask_twice(judge, "google")
    assert texts == ["5", "5"]
    assert ["systemInstruction" in body for body in bodies] == [True, False, False]


@pytest.mark.parametrize("words", ["System role not supported", "roles must alternate"])
async def test_without_a_system_message_it_stays_an_error(words: str) -> None:
    async with ScriptedServer(lambda _: None, openai_server.refused(400, words)) as server:
        with pytest.raises(ProviderError, match=words):
            await model("compatible:m", base_url=f"{server.url}/v1").chat("2 + 3?").run()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((), ()),
        ((user("a"),), (user("a"),)),
        ((system("S"),), (user("S"),)),
        ((system("S"), user("a"), assistant("b")), (user("S\n\na"), assistant("b"))),
        ((system("S"), user(Image(PIXEL), "a")), (user("S\n\n", Image(PIXEL), "a"),)),
        ((system("S"), assistant("b"), user("a")), (user("S"), assistant("b"), user("a"))),
        ((user("a"), assistant("b"), system("S"), user("c")), (user("a"), assistant("b"), user("S\n\nc"))),
    ],
)
def test_where_the_text_goes(before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    assert merge_system(Conversation(before)).messages == after
