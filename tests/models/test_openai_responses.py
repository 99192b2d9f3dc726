"""The Responses API, against a server that refuses what OpenAI refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from openai_server import KEY, call_item, error_body, event, message_item, reasoning_item, refused, responses, server
from scripted_http import Reply, cut

from ferrule import tool
from ferrule.agent.pipeline import model
from ferrule.conversation import Conversation, Image, Reasoning, Text, ToolCall, assistant, user
from ferrule.errors import ModelError, ProviderError
from ferrule.events import Usage
from ferrule.models.gateway import GatewaySettings, configure
from ferrule.models.openai.responses import OpenAIResponses
from ferrule.models.protocol import ModelSettings


@pytest.fixture(autouse=True)
def _quick() -> None:
    configure("http://127.0.0.1", GatewaySettings(first_delay=0.001, longest_delay=0.01, attempts=3))


@tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


@tool
def photo() -> Image:
    """Take a picture."""
    return Image(b"\x89PNG", "image/png")


async def run_with(*script: Reply, conversation: Conversation | str = "Rain?"):
    async with server(*script) as provider:
        chosen = OpenAIResponses("gpt-test", api_key=KEY, base_url=f"{provider.url}/v1")
        try:
            run = await model(chosen).chat(conversation).using(get_weather, photo).run()
        finally:
            await chosen.aclose()
        run.conversation.check()
        return run, [request.body for request in provider.requests]


async def test_calls_are_run_and_what_was_thought_goes_back_as_it_came() -> None:
    london = call_item("call_a", "get_weather", '{"city": "London"}')
    paris = call_item("call_b", "get_weather", '{"city": "Paris"}')
    thought = reasoning_item("Two cities.", "One by one.")
    silent = reasoning_item(number=2)
    run, (first, second) = await run_with(
        responses(thought, message_item("Let me see.", phase="commentary"), silent, london, paris),
        responses(message_item("It rains.")),
    )
    said = run.conversation.messages[1]
    assert said.parts[:2] == (Reasoning("Two cities.\n\nOne by one."), Text("Let me see."))
    assert run.text == "It rains."
    assert run.usage == Usage(40, 16, 10)
    assert first["store"] is False
    assert second["input"][:1] == first["input"]
    kinds = [item["type"] for item in second["input"][1:]]
    assert kinds == ["reasoning", "message", "reasoning", *["function_call"] * 2, *["function_call_output"] * 2]
    assert second["input"][1] == thought
    assert second["input"][2]["phase"] == "commentary"
    assert second["input"][3] == silent
    assert second["input"][-1]["output"] == "rain in Paris"


async def test_what_was_thought_stays_behind_where_the_message_was_changed() -> None:
    run, _ = await run_with(responses(reasoning_item("Hm."), message_item("Yes.")))
    changed = run.conversation.messages[1].with_parts((Reasoning("No."), Text("Yes.")))
    again = Conversation((run.conversation.messages[0], changed, user("Sure?")))
    _, (body,) = await run_with(responses(message_item("Yes.")), conversation=again)
    assert [item["type"] for item in body["input"]] == ["message"] * 3


async def test_an_image_stands_in_the_result_itself() -> None:
    run, (_, body) = await run_with(responses(call_item("c1", "photo", "{}")), responses(message_item("A cat.")))
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"}
    assert picture in body["input"][-1]["output"]
    assert run.text == "A cat."


@pytest.mark.parametrize("size", [1, 3, 64])
async def test_an_answer_may_be_cut_anywhere(size: int) -> None:
    whole = b"".join(responses(message_item("naïve – 日本 🙂")).pieces)
    run, _ = await run_with(Reply(cut(whole, *range(size, len(whole), size))))
    assert run.text == "naïve – 日本 🙂"


async def test_a_drop_in_the_middle_of_a_call_is_asked_again() -> None:
    whole = responses(call_item("c1", "get_weather", '{"city": "London"}'), call_item("c2", "get_weather", '{"city"'))
    dropped = responses(*[call_item("c2", "get_weather", '{"city": "Paris"}')], ending="dropped")
    run, bodies = await run_with(dropped, responses(message_item("Sorry.")))
    assert [message.role for message in run.conversation.messages] == ["user", "assistant"]
    assert bodies[1]["input"] == bodies[0]["input"]
    run, _ = await run_with(whole, responses(message_item("Sorry.")))
    assert [m.result.status for m in run.conversation.messages if m.role == "tool"] == ["ok", "invalid"]


FAILED = {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "out of order"}}}


@pytest.mark.parametrize(
    "failure",
    [
        refused(429, "Rate limit reached", retry_after="0"),
        refused(500, "The server had an error"),
        Reply([event(FAILED, "response.failed")]),
        Reply([event({"type": "error", "code": "server_error", "message": "out of order"}, "error")]),
        Reply([event(error_body("out of order", "server_error"))]),
        replace(responses(), ending="dropped", pieces=responses().pieces[:1]),
    ],
)
async def test_what_can_be_tried_again_is(failure: Reply) -> None:
    run, bodies = await run_with(failure, responses(message_item("It rains.")))
    assert run.text == "It rains."
    assert len(bodies) == 2


async def test_an_answer_that_fails_later_ends_with_what_came() -> None:
    begun = responses(message_item("It ra"), ending="dropped").pieces
    run, _ = await run_with(Reply([*begun, event(FAILED, "response.failed")]))
    assert (run.text, run.stopped) == ("It ra", "error")


async def test_a_prompt_that_is_refused_is_not_tried_again() -> None:
    refusal = {**FAILED, "response": {"error": {"code": "invalid_prompt", "message": "not that"}}}
    with pytest.raises(ProviderError, match="openai-responses:gpt-test: OpenAI broke off: not that"):
        await run_with(Reply([event(refusal, "response.failed")]))


@pytest.mark.parametrize(("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "refusal")])
async def test_why_an_answer_ended(reason: str, stop: str) -> None:
    run, _ = await run_with(responses(message_item("It ra"), end="incomplete", incomplete_details={"reason": reason}))
    assert (run.text, run.stopped) == ("It ra", stop)


async def request_of(*tools: Any, **settings: Any) -> dict[str, Any]:
    async with server(responses(message_item("Yes."))) as provider:
        chosen = OpenAIResponses("gpt-test", api_key=KEY, base_url=f"{provider.url}/v1")
        asked = Conversation((user("?"), assistant("!"), user("?")))
        async for _ in chosen.stream(asked, [one.spec for one in tools], ModelSettings(**settings)):
            pass
        await chosen.aclose()
        return provider.requests[0].body


async def test_settings_by_this_apis_names() -> None:
    assert set(await request_of()) == {"model", "input", "stream", "store"}
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    body = await request_of(
        get_weather,
        temperature=0.3,
        max_tokens=9,
        choice="get_weather",
        parallel_calls=False,
        effort="low",
        extra={"metadata": {"a": "b"}},
    )
    assert body["tool_choice"] == {"type": "function", "name": "get_weather"}
    assert (body["max_output_tokens"], body["reasoning"]) == (9, {"effort": "low"})
    assert (await request_of(output_schema=schema))["text"]["format"]["strict"] is True
    assert body["metadata"] == {"a": "b"}
    for name, value in {"stop": ("x",), "seed": 1, "top_k": 2}.items():
        with pytest.raises(ModelError, match=f"doesn't support {name}"):
            await request_of(**{name: value})


async def test_it_goes_on_with_a_conversation_of_another_provider() -> None:
    earlier = Conversation((user("?"), assistant(Reasoning("Hm."), Text("Yes."), ToolCall("t" * 70, "get.it", ""))))
    from ferrule.conversation import ToolResult, tool_message

    earlier = earlier.add(tool_message(ToolResult("t" * 70, "get.it", (Text("a"), Text("b")))))
    run, (body,) = await run_with(responses(message_item("Yes.")), conversation=earlier)
    call, output = body["input"][2:4]
    assert call["call_id"] == output["call_id"]
    assert len(call["call_id"]) <= 64
    assert call["arguments"] == "{}"
    assert run.text == "Yes."
