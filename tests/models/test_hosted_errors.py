"""What a person is told who gives a wrong address or option, and what a server's odd answers become."""

from __future__ import annotations

import logging
import traceback

import pytest
from asking import events_of, look, try_again_at_once
from openai_server import chunks, lenient, piece, says
from scripted_http import Reply, ScriptedServer, json_reply

from ferrule import model
from ferrule.errors import ModelError, ProviderError, SettingsError, StreamBroken
from ferrule.models.anthropic.schema import fit_answer_schema
from ferrule.models.gateway import GatewaySettings, configure
from ferrule.models.naming import get_model, make_hosted_model
from ferrule.models.openai.chat import OpenAIChat


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("localhost:8000/v1", "must begin with http://"),
        ("http://local host/v1", "needs a host, and no spaces"),
        ("http://", "needs a host"),
        ("http://localhost:99999/v1", "is not a valid address: Port out of range"),
    ],
)
def test_an_address_that_can_not_be_asked_is_refused_when_the_model_is_made(address: str, words: str) -> None:
    with pytest.raises(ModelError, match=rf"compatible:m: base_url .*{words}"):
        OpenAIChat("m", "compatible", base_url=address)


def test_a_key_that_no_header_can_carry_is_not_shown() -> None:
    with pytest.raises(ModelError, match=r"key for OpenAI contains invalid characters.*OPENAI_API_KEY") as raised:
        OpenAIChat("m", api_key="secret\nvalue")
    assert "secret" not in str(raised.value)


def test_an_option_that_a_model_has_not_is_named_with_those_it_has() -> None:
    with pytest.raises(SettingsError, match=r"no option 'temprature'; expected one of api_key, base_url.*with_"):
        make_hosted_model("openai", "m", api_key="k", temprature=1)
    with pytest.raises(ModelError, match="'openai:' names no model"):
        get_model("openai:")
    with pytest.raises(ModelError, match="Anthropic does not speak OpenAI's formats"):
        OpenAIChat("m", "anthropic", api_key="k")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply([b""], 301, {"location": "https://example.org/v1"}), "301.* redirects to https://example.org/v1"),
        (Reply([b"<html>\nNot  Found</html>"], 404, {}), r"404: <html> Not Found</html>; is .*/v1 the right base_url"),
        (Reply([], 405, {}), "405: Method Not Allowed; is .* the right base_url"),
        (
            json_reply(200, {"error": {"message": "no such adapter", "code": 400}}),
            "the server broke off: no such adapter",
        ),
        (json_reply(422, {"detail": [{"msg": "extra"}]}), "answered 422: .*extra"),
        (Reply([b""], 404, {"content-type": "application/json"}), "404: Not Found"),
        (json_reply(401, {"error": "Unauthorized."}), "answered 401: Unauthorized; check "),
        (
            # What llama.cpp sends for images without a projector.
            json_reply(500, {"error": {"code": 500, "message": "image input is not supported - hint: give mmproj"}}),
            "answered 500: image input is not supported",
        ),
    ],
)
async def test_an_odd_answer_is_told_and_not_tried_again(reply: Reply, words: str) -> None:
    async with ScriptedServer(lenient, reply) as server:
        try_again_at_once(server.url)
        made = OpenAIChat("m", "compatible", base_url=f"{server.url}/v1")
        with pytest.raises(ProviderError, match=words):
            await events_of(made)
        await made.aclose()


NOT_FOUND = [
    json_reply(404, {"detail": "Not Found"}),  # vLLM
    json_reply(404, {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}),  # llama.cpp
    Reply([b"404 page not found"], 404, {"content-type": "text/plain"}),  # Ollama
    json_reply(200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}),  # LM Studio
    Reply([b"<html>"], 200, {"content-type": "text/html"}),
]
ADDRESSES = [
    ("compatible", "", r"base_url should end with /v1: http://[\d.:]+/v1(?= |$)"),
    ("compatible", "/", r"base_url should end with /v1: http://[\d.:]+/v1(?= |$)"),
    ("compatible", "/v1/chat/completions", r"base_url should end with /v1: http://[\d.:]+/v1(?= |$)"),
    ("compatible", "/openai/v2/responses/", r"base_url should end before the path of a request: .*/openai/v2(?= |$)"),
    ("openai-responses", "/proxy", r"base_url should end with /v1: .*/proxy/v1(?= |$)"),
    ("anthropic", "/v1", r"base_url should end before the path of a request: http://[\d.:]+(?= |$)"),
    ("anthropic", "/v1/messages", r"base_url should end before the path of a request: http://[\d.:]+(?= |$)"),
    ("google", "/v1beta", r"base_url should end before the path of a request: http://[\d.:]+(?= |$)"),
]


@pytest.mark.parametrize(("provider", "path", "words"), ADDRESSES)
async def test_an_address_with_a_wrong_end_is_answered_with_the_right_one(provider: str, path: str, words: str) -> None:
    async with ScriptedServer(lenient, *NOT_FOUND) as server:
        configure(server.url, GatewaySettings(attempts=1))
        made = make_hosted_model(provider, "m", api_key="test-key", base_url=server.url + path)
        for _ in NOT_FOUND:
            with pytest.raises(ProviderError, match=words):
                await events_of(made)
        await made.aclose()


@pytest.mark.parametrize("path", ["/v1", "/v1/account/gateway/openai", "/v1beta/openai/"])
async def test_an_address_that_may_be_right_is_not_doubted_where_a_model_is_missing(path: str) -> None:
    async with ScriptedServer(lenient, json_reply(404, {"error": {"message": "no model m"}})) as server:
        made = OpenAIChat("m", "compatible", base_url=server.url + path)
        with pytest.raises(ProviderError, match=r"answered 404: no model m$"):
            await events_of(made)
        await made.aclose()


async def test_a_server_that_does_not_say_what_it_sends_is_read() -> None:
    async with ScriptedServer(lenient, Reply(chunks({"content": "Yes."}), headers={})) as server:
        made = OpenAIChat("m", "compatible", base_url=f"{server.url}/v1")
        assert (await events_of(made))[-1].message.text == "Yes."
        await made.aclose()


async def test_a_server_that_needs_no_key_is_sent_none() -> None:
    async with ScriptedServer(lenient, says("Yes.")) as server:
        made = OpenAIChat("m", "compatible", base_url=f"{server.url}/v1")
        await events_of(made)
        await made.aclose()
        assert "authorization" not in server.requests[0].headers


def test_an_answers_schema_is_told_where_anthropic_can_not_hold_to_it() -> None:
    schema = {
        "type": "object",
        "$defs": {"Word": {"type": "string", "pattern": "a+", "format": "date"}},
        "properties": {
            "count": {"type": "integer", "description": "How many", "minimum": 1},
            "words": {"type": "array", "items": {"$ref": "#/$defs/Word"}, "minItems": 2},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "either": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {}}]},
        },
        "required": ["count"],
    }
    assert fit_answer_schema(schema) == {
        "$defs": {"Word": {"type": "string", "format": "date", "description": "{pattern: a+}"}},
        "type": "object",
        "properties": {
            "count": {"type": "integer", "description": "How many\n\n{minimum: 1}"},
            "words": {"type": "array", "items": {"$ref": "#/$defs/Word"}, "description": "{minItems: 2}"},
            "kind": {"enum": ["a", "b"]},
            "either": {
                "anyOf": [{"type": "null"}, {"type": "object", "properties": {}, "additionalProperties": False}]
            },
        },
        "additionalProperties": False,
        "required": ["count"],
    }


async def test_no_key_and_no_password_is_in_a_representation_an_error_or_a_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    echoes = json_reply(400, {"error": {"message": "bad key sk-SECRET and pa$sw0rd"}})
    page = Reply([b"sk-SECRET pa$sw0rd is wrong"], 200, {"content-type": "text/html"})
    async with ScriptedServer(lenient, echoes, page, says("Yes.")) as server:
        address = server.url.replace("//", "//user:pa%24sw0rd@") + "/v1"
        pipeline = model("compatible:m", base_url=address, api_key="sk-SECRET").chat("Hi")
        shown = [repr(pipeline), repr(pipeline.model), str(vars(pipeline.model)["_gateway"].report())]
        for _ in range(2):
            with pytest.raises(ProviderError) as raised:
                await pipeline.run()
            shown += traceback.format_exception(raised.value)
        run = await pipeline.run()
        shown.append(repr(run))
        await pipeline.aclose()
    assert server.requests[0].headers["authorization"] == "Basic dXNlcjpwYSRzdzByZA=="
    nobody = model("compatible:m", base_url="http://user:pa$sw0rd@127.0.0.1:1/v1").chat("Hi")
    configure("http://127.0.0.1:1", GatewaySettings(attempts=1))
    with pytest.raises(ProviderError, match=r"no connection to http://127\.0\.0\.1:1/v1") as raised:
        await nobody.run()
    shown += traceback.format_exception(raised.value)
    for text in (*shown, caplog.text):
        assert "SECRET" not in text
        assert "sw0rd" not in text


async def test_answers_that_end_in_the_middle_of_a_call_open_the_breaker() -> None:
    broken = Reply(chunks(piece(0, '{"at": 1', "look", "c1"), finish=None, usage=False)[:-1], ending="closed")
    async with ScriptedServer(lenient, *[broken] * 4) as server:
        configure(server.url, GatewaySettings(breaker_failures=4))
        made = OpenAIChat("m", "compatible", base_url=f"{server.url}/v1")
        pipeline = model(made).chat("Look.").using(look)
        with pytest.raises(StreamBroken, match="broke off in the middle of a call, 3 times"):
            await pipeline.run()
        with pytest.raises(ProviderError, match="the circuit breaker is open"):
            await pipeline.run()
        assert len(server.requests) == 4
        await made.aclose()
