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
    (400, 'tool_choice="required" requires --tool-call-parser to be set'),
    (400, 'tool_choice=function "calculator" requires --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (404, "No endpoints found that support tool use. To learn more, visit: https://openrouter.ai/docs"),
    (400, "tool calling is not supported with this model"),
    (405, "deepinfra error: Tool calling is not supported for model: mistralai/Mistral-Small"),
    (400, "Function calling is not enabled for models/gemma-3-12b-it"),
    (400, "Unsupported parameter: 'tools' is not supported with this model."),
    (400, "deepseek-reasoner does not support Function Calling"),
    (400, "This model doesn't support tool use in streaming mode."),
    (400, "This model does not currently support tools"),
    (400, "`tool calling` is not supported with this model"),
    (400, "`tools` is not supported in this model."),
    (500, "Unsupported param: tools"),
    (422, "[{'type': 'extra_forbidden', 'loc': ['body', 'tools'], 'msg': 'Extra inputs are not permitted'}]"),
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


UNREAD = {
    '<tool_call>{"name": "calculator", "arguments": {"expression": "12 * 34"}}</tool_call>': "hermes",
    "Sure.\n<tool_call>\n<function=calculator>\n<parameter=expression>\n12 * 34\n</parameter>\n</function>\n"
    "</tool_call>": "qwen3_coder",
    '[TOOL_CALLS]calculator[ARGS]{"expression": "12 * 34"}': "mistral",
    '<tool_call>{"name": "weather", "arguments": {}}</tool_call>': "",
    "Models write <tool_call> before the name of a tool, such as calculator.": "",
    '{"name": "calculator", "arguments": {"expression": "12 * 34"}}': "",
}


@pytest.mark.parametrize(("words", "mode"), UNREAD.items())
async def test_a_call_that_the_server_left_in_the_text_is_reported(words: str, mode: str) -> None:
    answer = openai_server.says(words)
    async with openai_server.server(answer, judge=openai_server.lenient) as server, asking(server.url) as pipeline:
        run = await pipeline.chat("12 * 34?").run()
    assert (run.text, run.stopped) == (words, "done")
    expected = (
        "the server returned the model's call of 'calculator' as text, so it was not run; turn on the server's parser "
        f'of tool calls, or use mode="{mode}"'
    )
    assert [loss.detail for loss in run.losses] == ([expected] if mode else [])


async def test_a_call_in_the_text_is_not_reported_where_none_could_be_made() -> None:
    replies = (openai_server.says(next(iter(UNREAD))),)
    async with openai_server.server(*replies, judge=openai_server.lenient) as server:
        run = await model("vllm:m", base_url=f"{server.url}/v1").chat("Write a call.").run()
    assert not run.losses
