"""Gemini over the real protocol: conversations with tools, what goes back verbatim, and a server that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import google_server as server
import pytest
from asking import QUESTION, events_of, look, try_again_at_once
from google_server import GoogleServer, answer, broken, call, sign, text, thought
from scripted_http import Reply, cut

from ferrule.agent.pipeline import model
from ferrule.builtin_tools import calculator
from ferrule.conversation import Conversation, MalformedCall, Reasoning, Text, ToolCall, user
from ferrule.errors import ModelError, ProviderError
from ferrule.events import CallMalformed, TextDelta, Usage
from ferrule.models.gateway import GatewaySettings, Timeouts, configure
from ferrule.models.google.model import GoogleModel
from ferrule.models.protocol import ModelSettings

PRODUCT = {"expression": "12 * 34"}


@contextlib.asynccontextmanager
async def gemini(*script, name="gemini-3-pro", timeouts=None):
    """A model and its server."""
    async with GoogleServer(*script) as serving:
        try_again_at_once(serving.url, timeouts)
        async with GoogleModel(name, api_key=server.KEY, base_url=serving.url) as made:
            yield made, serving


async def test_a_question_is_answered_through_a_tool() -> None:
    script = [answer(text("Let me see."), call("calculator", PRODUCT, "c1", signed=True)), answer(text("It is 408."))]
    async with gemini(*script) as (made, serving):
        run = await model(made).system("Be brief.").chat("What is 12 * 34?").using(calculator).run()
    assert (run.text, run.stopped) == ("It is 408.", "done")
    run.conversation.check()
    assert run.usage == Usage(60, 40, 14)
    first, second = (request.body for request in serving.requests)
    declared = first["tools"][0]["functionDeclarations"][0]
    assert declared["name"] == "calculator"
    assert declared["parametersJsonSchema"]["type"] == "object"
    assert first["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    asked, answered = second["contents"][1:]
    assert asked["parts"][1]["thoughtSignature"].replace("-", "+").replace("_", "/") == sign("calculator")
    response = {"id": "c1", "name": "calculator", "response": {"output": "408"}}
    assert answered == {"role": "user", "parts": [{"functionResponse": response}]}
    assert not serving.script


@pytest.mark.parametrize(("name", "inside"), [("gemini-3-pro", True), ("gemini-2.5-flash", False)])
async def test_parallel_calls_without_ids_are_answered_in_one_content(name: str, inside: bool) -> None:
    calls = [call("look", {"at": "it"}, signed=True), call("look", {"at": "that"}), call("calculator", PRODUCT)]
    async with gemini(answer(*calls), answer(text("Seen.")), name=name) as (made, serving):
        run = await model(made).chat("Look twice, and multiply.").using(look, calculator).run()
    assert run.text == "Seen."
    contents = serving.requests[1].body["contents"]
    answers = [part["functionResponse"] for part in contents[2]["parts"]]
    assert [made["name"] for made in answers] == ["look", "look", "calculator"]
    assert ["parts" in made for made in answers] == [inside, inside, False]
    following = [part for content in contents[3:] for part in content["parts"] if "inlineData" in part]
    assert len(following) == (0 if inside else 2)


async def test_what_was_signed_goes_back_so() -> None:
    first = [thought("Hm. "), thought("Multiply."), text("Well, "), text("then", signed=True), text("")]
    first.append(call("calculator", PRODUCT, "c1", signed=True))
    async with gemini(answer(*first), answer(text("408."))) as (made, serving):
        run = await model(made).chat("What is 12 * 34?").using(calculator).run()
        message = run.conversation.messages[1]
        assert message.parts[:2] == (Reasoning("Hm. Multiply."), Text("Well, then"))
        sent = serving.requests[1].body["contents"][1]["parts"]
        assert [part.get("text") for part in sent] == ["Well, ", "then", "", None]
        assert ["thoughtSignature" in part for part in sent] == [False, True, False, True]
        changed = message.with_parts((Text("Well, now"), message.parts[2]))
        messages = run.conversation.messages
        serving.script.append(answer(text("Yes.")))
        other = Conversation((messages[0], changed, *messages[2:], user("Sure?")))
        await model(made).chat(other).using(calculator).run()
    assert serving.requests[2].body["contents"][1]["parts"][0] == {"text": "Well, now"}


@pytest.mark.parametrize("size", [1, 3, 50])
async def test_an_answer_reads_the_same_however_it_is_cut(size: int) -> None:
    whole = b"".join(server.chunks(thought("Käse 🧀?"), text("Zürich — 🏔"), call("calculator", {"expression": "1"})))
    async with gemini(Reply([whole]), Reply(cut(whole, *range(size, len(whole), size)))) as (made, _):
        at_once, in_pieces = await events_of(made), await events_of(made)
    assert at_once == in_pieces
    expected = (Reasoning("Käse 🧀?"), Text("Zürich — 🏔"), ToolCall("call_1", "calculator", '{"expression": "1"}'))
    assert in_pieces[-1].message.parts == expected
    assert in_pieces[-1].stop == "calls"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("STOP", "turn"), ("MAX_TOKENS", "length"), ("SAFETY", "refusal"), ("RECITATION", "refusal"), ("OTHER", "error")],
)
async def test_why_it_stopped(reason: str, stop: str) -> None:
    async with gemini(answer(text("So"), stop=reason)) as (made, _):
        assert (await events_of(made))[-1].stop == stop


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
async def test_a_call_that_google_could_not_read_is_answered(reason: str) -> None:
    raw = "Malformed function call: print(default_api.calculator(expression=12 * "
    script = [answer(stop=reason, message=raw), answer(text("Sorry."))]
    async with gemini(*script) as (made, serving), made_pipeline(made).stream() as run:
        events = [event async for event in run]
    assert [event.raw for event in events if isinstance(event, CallMalformed)] == [raw]
    assert isinstance(run.conversation.messages[1].parts[0], MalformedCall)
    run.conversation.check()
    assert run.text == "Sorry."
    assert serving.requests[1].body["contents"][1]["parts"] == [{"text": raw}]


def made_pipeline(made):
    return model(made).chat("?").using(calculator)


async def test_a_prompt_that_is_blocked_is_told() -> None:
    blocked = Reply([server.chunk({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})])
    async with gemini(blocked) as (made, _):
        with pytest.raises(ProviderError, match="PROHIBITED_CONTENT"):
            await events_of(made)


@pytest.mark.parametrize("ending", ["dropped", "closed"])
async def test_a_drop_keeps_what_was_said(ending) -> None:
    cut_off = broken(text("One, "), call("calculator", PRODUCT), after=b"12 *", ending=ending)
    async with gemini(cut_off) as (made, _):
        events = await events_of(made)
    assert events[0] == TextDelta("One, ")
    assert (events[-1].message.text, events[-1].stop) == ("One, ", "error")


async def test_wherever_an_answer_is_dropped_the_conversation_goes_on() -> None:
    parts = [thought("Hm."), text("So."), call("calculator", {"expression": "2"}, signed=True), call("f", {})]
    data = b"".join(server.chunks(*parts))
    for place in range(0, len(data), 61):
        async with gemini(Reply([data[:place]], ending="dropped"), *[answer(text("Yes."))] * 2) as (made, _):
            run = await made_pipeline(made).run()
            run.conversation.check()
            if run.stopped == "error":  # some of the text, and no call
                run = await model(made).chat(run.conversation).chat("Go on.").using(calculator).run()
        assert (run.text, run.stopped) == ("Yes.", "done"), place


async def test_a_call_that_came_whole_before_the_drop_is_run() -> None:
    cut_off = broken(call("calculator", PRODUCT), text("and"), after=b"\r\n\r\n")
    async with gemini(cut_off, answer(text("408."))) as (made, _):
        run = await made_pipeline(made).run()
    assert run.conversation.messages[2].result.text == "408"
    assert run.text == "408."


@pytest.mark.parametrize("ending", ["dropped", "closed"])
async def test_a_drop_before_anything_was_said_is_tried_again(ending) -> None:
    async with gemini(broken(text("One."), after=b"cand", ending=ending), answer(text("One."))) as (made, serving):
        assert (await events_of(made))[-1].message.text == "One."
    assert len(serving.requests) == 2


async def test_a_stall_is_noticed() -> None:
    stalled = broken(text("One, "), text("two."), after=b"\r\n\r\n", ending="stalled")
    async with gemini(stalled, timeouts=Timeouts(silence=0.05)) as (made, _):
        finished = (await events_of(made))[-1]
    assert (finished.message.text, finished.stop) == ("One, ", "error")


async def test_leaving_the_stream_closes_the_connection() -> None:
    stalled = broken(text("One, "), text("two."), after=b"\r\n\r\n", ending="stalled")
    async with gemini(stalled) as (made, serving):
        stream = made.stream(QUESTION, (), ModelSettings())
        async for event in stream:
            assert event == TextDelta("One, ")
            break
        await stream.aclose()
        await asyncio.wait_for(serving.idle(), 30)


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0s"}


@pytest.mark.parametrize(
    "refusal",
    [
        server.error(429, "RESOURCE_EXHAUSTED", "slow down", [RETRY_INFO]),
        server.error(429, "RESOURCE_EXHAUSTED", "slow down", retry_after="0"),
        server.error(503, "UNAVAILABLE", "The model is overloaded."),
        server.error(500, "INTERNAL", "oops"),
        Reply([], ending="dropped"),
        Reply([b'data: {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}\r\n\r\n']),
    ],
    ids=["429 with RetryInfo", "429 with Retry-After", "503", "500", "dropped", "503 in the stream"],
)
async def test_what_passes_is_tried_again(refusal: Reply) -> None:
    async with gemini(refusal, answer(text("Yes."))) as (made, serving):
        assert (await events_of(made))[-1].message.text == "Yes."
    assert len(serving.requests) == 2


async def test_a_key_that_is_refused_is_named_and_not_tried_again() -> None:
    async with gemini() as (_, serving), GoogleModel("gemini-3-pro", api_key="w", base_url=serving.url) as other:
        with pytest.raises(ProviderError, match=r"API key not valid.*GEMINI_API_KEY") as refused:
            await events_of(other)
    assert refused.value.status == 401


async def test_a_model_that_there_is_not_is_named() -> None:
    async with gemini(name="gemini-nothing") as (made, _):
        with pytest.raises(ProviderError, match=r"google:gemini-nothing.*404.*models/gemini-nothing is not found"):
            await events_of(made)


async def test_a_wrong_content_type_is_told() -> None:
    page = Reply([b"<html>\nWelcome</html>"], headers={"content-type": "text/html"})
    async with gemini(page) as (made, serving):
        with pytest.raises(ProviderError, match=r"text/html instead of a stream of events: <html>"):
            await events_of(made)
    assert len(serving.requests) == 1


async def test_nobody_listens() -> None:
    async with GoogleServer() as serving:
        address = serving.url
    configure(address, GatewaySettings(attempts=1))
    async with GoogleModel("gemini-3-pro", api_key="k", base_url=address) as made:
        with pytest.raises(ProviderError, match="no connection to"):
            await events_of(made)


def test_without_a_key_or_the_package_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match=r"set GEMINI_API_KEY, or give model\(\"google:gemini-3-pro\", api_key"):
        GoogleModel("gemini-3-pro")
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    assert GoogleModel("gemini-3-pro").name == "google:gemini-3-pro"
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ModelError, match=r'pip install "ferrule\[hosted\]"'):
        GoogleModel("gemini-3-pro")


async def test_the_settings_arrive() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    settings = ModelSettings(
        temperature=0.5, top_k=3, top_p=0.9, seed=4, max_tokens=500, stop=("END",), choice="calculator",
        extra={"labels": {"a": "b"}},
    )  # fmt: skip
    async with gemini(*[answer(text("Yes."))] * 3) as (made, serving):
        async for _ in made.stream(QUESTION, [calculator.spec], settings):
            pass
        async for _ in made.stream(QUESTION, [calculator.spec], ModelSettings(choice="required")):
            pass
        await events_of(made, output_schema=schema)
    first, second, third = (request.body for request in serving.requests)
    config = first["generationConfig"]
    assert (config["temperature"], config["topK"], config["topP"], config["seed"]) == (0.5, 3, 0.9, 4)
    assert (config["maxOutputTokens"], config["stopSequences"]) == (500, ["END"])
    assert first["labels"] == {"a": "b"}
    calling = {"mode": "ANY", "allowedFunctionNames": ["calculator"]}
    assert first["toolConfig"]["functionCallingConfig"] == calling
    assert second["toolConfig"]["functionCallingConfig"] == {"mode": "ANY"}
    assert third["generationConfig"] == {"responseMimeType": "application/json", "responseJsonSchema": schema}


@pytest.mark.parametrize(
    ("name", "effort", "expected"),
    [
        ("gemini-3-pro", "high", {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("gemini-3.8-flash", "none", {"thinkingLevel": "MINIMAL", "includeThoughts": False}),
        ("gemini-2.5-flash", "low", {"thinkingBudget": 2048, "includeThoughts": True}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0, "includeThoughts": False}),
    ],
)
async def test_effort(name, effort, expected) -> None:
    async with gemini(answer(text("Yes.")), name=name) as (made, serving):
        await events_of(made, effort=effort)
    assert serving.requests[0].body["generationConfig"]["thinkingConfig"] == expected


async def test_what_can_not_be_honoured_is_refused_by_name() -> None:
    async with gemini() as (made, serving):
        with pytest.raises(ModelError, match="parallel_calls"):
            await events_of(made, parallel_calls=False)
        with pytest.raises(ModelError, match="no tools are offered"):
            await events_of(made, choice="required")
        with pytest.raises(ModelError, match="calculator"):
            await events_of(made, tools=[calculator.spec], choice="calculater")
    assert not serving.requests


async def test_a_longer_conversation_begins_as_the_shorter_one_did() -> None:
    script = [answer(call("calculator", PRODUCT, signed=True))] * 2
    async with gemini(*script, answer(text("Yes."))) as (made, serving):
        await made_pipeline(made).run()
    first, second, third = (request.body["contents"] for request in serving.requests)
    assert third[: len(second)] == second
    assert second[: len(first)] == first


async def test_one_model_serves_several_event_loops() -> None:
    async with gemini(answer(text("One.")), answer(text("Two."))) as (made, _):
        assert (await events_of(made))[-1].message.text == "One."

        async def there():
            events = await events_of(made)
            await made.aclose()
            return events

        other = await asyncio.to_thread(asyncio.run, there())
    assert other[-1].message.text == "Two."
