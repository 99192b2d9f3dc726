"""A server that takes no tools for a model: the run goes on in text mode, and the model remembers it."""

from __future__ import annotations

import logging
from typing import Any

import openai_server
import pytest
from scripted_http import Reply, Request

from ferrule import calculator, model
from ferrule.agent.pipeline import Pipeline
from ferrule.errors import ModelError, ProviderError

REFUSALS = [
    (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (404, "No endpoints found that support tool use. To learn more, visit: https://openrouter.ai/docs"),
    (400, "tool calling is not supported with this model"),
    (405, "deepinfra error: Tool calling is not supported for model: mistralai/Mistral-Small"),
    (400, "Function calling is not enabled for models/gemma-3-12b-it"),
    (400, "Unsupported parameter: 'tools' is not supported with this model."),
    (400, "deepseek-reasoner does not support Function Calling"),
    (400, "This model doesn't support tool use in streaming mode."),
]
CALL = openai_server.says('<tool_call>{"name": "calculator", "arguments": {"expression": "12 * 34"}}</tool_call>')
ANSWER = openai_server.says("It is 408.")


def refused(status: int, words: str) -> Reply:
    return openai_server.refused(status, words)


def asking(address: str, **options: object) -> Pipeline:
    return model("vllm:m", base_url=f"{address}/v1", **options).using(calculator)


@pytest.mark.parametrize(("status", "words"), REFUSALS)
async def test_the_tools_are_offered_in_the_text(status: int, words: str, caplog: pytest.LogCaptureFixture) -> None:
    replies = (refused(status, words), CALL, ANSWER, CALL, ANSWER)
    async with openai_server.server(*replies, judge=openai_server.lenient) as server:
        pipeline = asking(server.url)
        with caplog.at_level(logging.WARNING, "ferrule.models"):
            run = await pipeline.chat("What is 12 * 34?").run()
        again = await pipeline.chat("And again?").run()
        await pipeline.aclose()
    assert (run.text, run.mode, again.text, again.mode) == ("It is 408.", "hermes", "It is 408.", "hermes")
    assert [message.role for message in run.conversation.messages] == ["user", "assistant", "tool", "assistant"]
    assert ["tools" in request.body for request in server.requests] == [True, False, False, False, False]
    (record,) = caplog.records
    assert words.rstrip(".")[:40] in record.getMessage()
    assert 'as by mode="hermes"' in record.getMessage()
    assert not pipeline.model.capabilities.native_tools


async def test_a_choice_is_dropped_where_text_has_none() -> None:
    replies = (refused(*REFUSALS[0]), CALL, ANSWER)
    async with (
        openai_server.server(*replies, judge=openai_server.lenient) as server,
        asking(server.url).using(choice="required") as pipeline,
    ):
        run = await pipeline.chat("12 * 34?").run()
    assert run.text == "It is 408."
    assert "tool_choice" not in server.requests[1].body


async def test_runs_at_the_same_time() -> None:
    def refuse_tools(request: Request) -> Reply | None:
        return refused(*REFUSALS[0]) if "tools" in request.body else None

    async with (
        openai_server.server(*[ANSWER] * 3, judge=refuse_tools) as server,
        asking(server.url) as pipeline,
    ):
        runs = await pipeline.run_batch(["One?", "Two?", "Three?"], concurrency=3)
    assert [run.text for run in runs] == ["It is 408."] * 3


@pytest.mark.parametrize(
    ("words", "options"),
    [("Invalid schema", {}), (REFUSALS[0][1], {"mode": "api"}), (REFUSALS[0][1], {"tools": False})],
)
async def test_other_refusals_and_a_mode_that_was_asked_for_stay_errors(words: str, options: dict[str, Any]) -> None:
    async with openai_server.server(refused(400, words), judge=openai_server.lenient) as server:
        pipeline = model("vllm:m", base_url=f"{server.url}/v1").using(mode=options.get("mode", "auto"))
        async with pipeline if "tools" in options else pipeline.using(calculator) as asked:
            with pytest.raises(ProviderError, match=words):
                await asked.chat("Hi").run()


async def test_a_model_that_remembers_refuses_the_api() -> None:
    async with (
        openai_server.server(refused(*REFUSALS[0]), ANSWER, judge=openai_server.lenient) as server,
        asking(server.url) as pipeline,
    ):
        await pipeline.chat("Hi").run()
        with pytest.raises(ModelError, match="has no tools of its own"):
            await pipeline.using(mode="api").chat("Hi").run()
