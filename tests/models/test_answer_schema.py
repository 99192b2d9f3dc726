"""A schema for the answer: where it is sent, and where it is stated in the prompt."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anthropic_server
import google_server
import openai_server
import pytest
from asking import HOSTED, events_of, try_again_at_once
from scripted_http import Reply, Request

from ferrule import tool
from ferrule.agent.pipeline import Pipeline, model
from ferrule.conversation import ToolCall
from ferrule.models.naming import make_hosted_model
from ferrule.models.protocol import ModelSettings
from ferrule.models.providers import PROVIDERS
from ferrule.models.scripted import ScriptedModel

SCHEMA = {"type": "object", "properties": {"celsius": {"type": "integer"}}, "required": ["celsius"]}
ANSWER = '{"celsius": 21}'
INVENTED = '{"celsius": 0}'
HERMES_CALL = '<tool_call>{"name": "measure", "arguments": {"city": "Paris"}}</tool_call>'
STATED = "Call tools as you need them. Your final answer must be JSON and nothing else, and fit this schema:\n"


@dataclass(frozen=True)
class Degrees:
    celsius: int


@tool
def measure(city: str) -> int:
    """The temperature of a city, in degrees Celsius."""
    return {"Paris": 21}[city]


def constrain_by_grammar(request: Request) -> Reply:
    """A server that keeps to the schema by a grammar: where there is one, the message is JSON, and holds no call."""
    body = request.body
    if "response_format" in body:
        if body.get("tool_choice") == "required":
            return openai_server.refused(400, "response_format and a required tool_choice exclude each other")
        return openai_server.says(INVENTED)
    said = json.dumps(body["messages"])
    if "21" in said:
        return openai_server.says(ANSWER)
    if "tools" in body:
        return openai_server.calls(("call_1", "measure", '{"city": "Paris"}'))
    return openai_server.says(HERMES_CALL) if "<tools>" in said else openai_server.says(INVENTED)


def refuse_tools(request: Request) -> Reply:
    """Such a server for a model without tools."""
    if "tools" in request.body:
        return openai_server.refused(400, "m does not support tools")
    return constrain_by_grammar(request)


@asynccontextmanager
async def asking(judge: Any) -> AsyncIterator[tuple[Pipeline[Any], list[Request]]]:
    requests: list[Request] = []

    def answer(request: Request) -> Reply:
        requests.append(request)
        return judge(request)

    async with (
        openai_server.server(judge=answer) as server,
        model("vllm:m", base_url=f"{server.url}/v1").chat("How warm is it in Paris?") as pipeline,
    ):
        yield pipeline, requests


@pytest.mark.parametrize(
    ("judge", "options"),
    [
        (constrain_by_grammar, {}),
        (constrain_by_grammar, {"force": True}),
        (constrain_by_grammar, {"choice": "measure"}),
        (constrain_by_grammar, {"mode": "hermes"}),
        (constrain_by_grammar, {"mode": "hermes", "force": True}),
        (refuse_tools, {}),
        (refuse_tools, {"force": True}),
    ],
)
async def test_tools_are_called_before_an_answer_of_a_type(judge: Any, options: dict[str, Any]) -> None:
    async with asking(judge) as (pipeline, requests):
        run = await pipeline.using(measure, **options).parse_as(Degrees).run()
    assert (run.output, run.stopped, run.losses) == (Degrees(21), "done", ())
    assert [message.role for message in run.conversation.messages] == ["user", "assistant", "tool", "assistant"]
    for request in requests:
        assert "response_format" not in request.body
        assert STATED in request.body["messages"][0]["content"]


async def test_a_schema_given_as_a_setting_is_stated_too_and_sent_without_tools() -> None:
    async with asking(constrain_by_grammar) as (pipeline, requests):
        with_schema = pipeline.with_(output_schema=SCHEMA)
        assert (await with_schema.using(measure).run()).text == ANSWER
        assert (await with_schema.run()).text == INVENTED
        assert (await with_schema.using(mode="hermes").run()).text == INVENTED
    assert ["response_format" in request.body for request in requests] == [False, False, True, True]


async def test_an_answer_that_does_not_fit_is_still_sent_back() -> None:
    replies = (openai_server.says("It is warm."), openai_server.says(ANSWER))
    async with openai_server.server(*replies, judge=openai_server.lenient) as server:
        asked = model("vllm:m", base_url=f"{server.url}/v1").chat("?").using(measure).parse_as(Degrees)
        async with asked:
            run = await asked.run()
    assert run.output == Degrees(21)
    assert server.requests[1].body["messages"][-1]["content"].startswith("The answer must be JSON")


async def test_a_model_that_takes_no_schema_is_told_that_calls_come_first() -> None:
    scripted = ScriptedModel(ToolCall("call_1", "measure", '{"city": "Paris"}'), ANSWER)
    assert (await model(scripted).chat("?").using(measure).parse_as(Degrees).run()).output == Degrees(21)
    assert scripted.seen[0].messages[0].text.startswith(STATED)


OWN_SERVERS = {
    "openai": (openai_server, "/v1", lambda body: body.get("response_format")),
    "openai-responses": (openai_server, "/v1", lambda body: body.get("text")),
    "groq": (openai_server, "/v1", lambda body: body.get("response_format")),
    "anthropic": (anthropic_server, "", lambda body: body.get("output_config")),
    "google": (google_server, "", lambda body: body.get("generationConfig")),
}
ANSWERS = {
    "openai-responses": openai_server.responses(openai_server.message_item(ANSWER)),
    "anthropic": anthropic_server.answer(anthropic_server.text(ANSWER)),
    "google": google_server.answer(google_server.text(ANSWER)),
}


@pytest.mark.parametrize(
    ("name", "model_name", "is_sent"),
    [
        ("openai", "gpt-5", True),
        ("openai-responses", "gpt-5", True),
        ("groq", "openai/gpt-oss-120b", False),
        ("anthropic", "claude-sonnet-5", True),
        ("google", "gemini-3-pro", True),
        ("google", "gemini-2.5-flash", False),
    ],
)
async def test_a_provider_that_allows_calls_is_sent_it_at_its_own_address(
    name: str, model_name: str, is_sent: bool
) -> None:
    kind, path, find = OWN_SERVERS[name]
    reply = ANSWERS.get(name, openai_server.says(ANSWER))
    async with openai_server.ScriptedServer(openai_server.lenient, reply, reply) as server:
        address = server.url + path
        own = replace(PROVIDERS[name], base_url=address, url=None)
        for provider in (own, PROVIDERS[name]):
            async with make_hosted_model(provider, model_name, api_key=kind.KEY, base_url=address) as made:
                async for _ in made.stream(asked(), [measure.spec], ModelSettings(output_schema=SCHEMA)):
                    pass
    at_its_own, elsewhere = (request.body for request in server.requests)
    assert bool(find(at_its_own)) is is_sent
    # A server at another address may be anything, such as one of a gateway that serves open models.
    assert not find(elsewhere)
    assert (STATED.splitlines()[0] in json.dumps(at_its_own)) is not is_sent
    assert STATED.splitlines()[0] in json.dumps(elsewhere)


def asked() -> Any:
    return Pipeline(ScriptedModel()).chat("How warm is it?").conversation


REFUSALS = [
    (400, "This response_format type is unavailable now"),
    (400, "This model does not support response format `json_schema`. See supported models at the docs."),
    (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
    (400, "litellm.UnsupportedParamsError: m does not support parameters: ['response_format']"),
    (422, "Extra inputs are not permitted: response_format"),
    (500, "guided decoding is not supported by this engine"),
]


@pytest.mark.parametrize(("status", "words"), REFUSALS)
async def test_a_refused_schema_is_stated_in_the_prompt(
    status: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    def judge(request: Request) -> Reply:
        if "response_format" in request.body:
            return openai_server.refused(status, words)
        return openai_server.says(ANSWER)

    async with asking(judge) as (pipeline, requests):
        try_again_at_once(pipeline.model.address)
        typed = pipeline.parse_as(Degrees)
        with caplog.at_level(logging.WARNING, "ferrule.models"):
            runs = await typed.run_batch(["One?", "Two?"], concurrency=1)
    assert [run.output for run in runs] == [Degrees(21)] * 2
    assert ["response_format" in request.body for request in requests][-3:] == [True, False, False]
    assert requests[-1].body["messages"][0]["content"].startswith("Your answer must be JSON")
    (record,) = caplog.records
    assert words.rstrip(".")[:40] in record.getMessage()
    assert record.getMessage().endswith("; the schema of the answer is stated in the prompt instead")


@pytest.mark.parametrize("kind", HOSTED)
async def test_other_refusals_stay_errors(kind: str) -> None:
    errors = {
        "openai": openai_server.refused(400, "no"),
        "anthropic": anthropic_server.error(400, "invalid_request_error", "no"),
        "google": google_server.error(400, "INVALID_ARGUMENT", "no"),
    }
    async with openai_server.ScriptedServer(openai_server.lenient, errors[kind]) as server:
        made = HOSTED[kind](server.url)
        with pytest.raises(Exception, match="answered 400: no"):
            await events_of(made, output_schema=SCHEMA)
        await made.aclose()
