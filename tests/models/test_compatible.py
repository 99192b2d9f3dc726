"""Providers by name: each is sent what it takes, and asked for nothing that it doesn't honour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from openai_server import calls, chat, lenient, piece, says, server
from scripted_http import Reply, Request, json_reply

from ferrule import Tool, tool
from ferrule.agent.pipeline import model
from ferrule.conversation import Conversation, Reasoning, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.errors import ModelError
from ferrule.models.naming import make_hosted_model
from ferrule.models.openai.chat import OpenAIChat
from ferrule.models.openai.responses import OpenAIResponses
from ferrule.models.protocol import ModelSettings
from ferrule.models.providers import OPENAI_PROVIDERS

CHAT = sorted(name for name, provider in OPENAI_PROVIDERS.items() if provider.model.endswith("OpenAIChat"))


@tool
def sky(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


@tool
def now() -> str:
    """Tell the time."""
    return "12:00"


def mistral_judge(request: Request) -> Reply | None:
    """Mistral refuses any field that it doesn't know, and ids that aren't nine letters and digits."""
    body = request.body
    known = {"model", "messages", "stream", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p"}
    known |= {"max_tokens", "stop", "random_seed", "response_format", "reasoning_effort"}
    fields = {"user": {"role", "content"}, "system": {"role", "content"}, "tool": {"role", "content", "tool_call_id"}}
    after = ""
    for message in body["messages"]:
        if message["role"] == "user" and after == "tool":
            return json_reply(400, {"message": "Unexpected role 'user' after role 'tool'"})
        after = message["role"]
        extra = set(message) - fields.get(message["role"], {"role", "content", "tool_calls"})
        ids = [one["id"] for one in message.get("tool_calls", ())] + [message.get("tool_call_id", "abcdefgh1")]
        if extra or not all(len(one) == 9 and one.isalnum() for one in ids):
            return json_reply(422, {"message": {"detail": [{"type": "extra_forbidden", "loc": sorted(extra) or ids}]}})
    unknown = sorted(set(body) - known)
    return json_reply(422, {"message": {"detail": [{"type": "extra_forbidden", "loc": unknown}]}}) if unknown else None


async def request_of(
    provider: str, conversation: Conversation | None = None, offered: Sequence[Any] = (sky, now), **settings: Any
) -> dict[str, Any]:
    """What a provider is sent."""
    judge = mistral_judge if provider == "mistral" else lenient
    async with server(says("Yes."), judge=judge) as listening:
        chosen = OpenAIChat("m", provider, api_key="k", base_url=f"{listening.url}/v1")
        asked = conversation or Conversation((user("?"),))
        async for _ in chosen.stream(asked, [one.spec for one in offered], ModelSettings(**settings)):
            pass
        await chosen.aclose()
        return listening.requests[0].body


def weigh(grams: float, **labels: str) -> str:
    """Weigh."""
    return f"{grams} {labels}"


OPEN = {"type": "object", "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}}


async def test_arguments_are_held_to_a_schema_where_the_server_can() -> None:
    shapeless = Tool.from_schema("label", "Label.", OPEN, weigh).spec
    for name in CHAT:
        async with server(says("Yes."), judge=lenient) as listening:
            chosen = OpenAIChat("m", name, api_key="k", base_url=f"{listening.url}/v1")
            async for _ in chosen.stream(Conversation((user("?"),)), [sky.spec, shapeless], ModelSettings()):
                pass
            await chosen.aclose()
            offers = [offer["function"] for offer in listening.requests[0].body["tools"]]
        assert [offer.get("strict") for offer in offers] == [True if name in ("vllm", "sglang") else None, None]
        assert offers[0]["parameters"] == sky.spec.parameters


@pytest.mark.parametrize("name", CHAT)
async def test_a_conversation_with_a_call_goes_through_every_provider(name: str) -> None:
    judge = mistral_judge if name == "mistral" else lenient
    thinks = chat({"reasoning_content": "Hm."}, piece(0, '{"city": "Rome"}', "sky", "call_0123456789"))
    async with server(thinks, says("Rain."), judge=judge) as listening:
        chosen = make_hosted_model(name, "m", api_key="k", base_url=f"{listening.url}/v1")
        run = await model(chosen).chat("?").using(sky).run()
        await chosen.aclose()
    assert run.text == "Rain."
    assert run.conversation.messages[2].result.text == "rain in Rome"
    first, second = listening.requests
    assert second.body["messages"][:1] == first.body["messages"]
    assert first.headers["authorization"] == "Bearer k"


@pytest.mark.parametrize("name", CHAT)
async def test_every_setting_that_a_provider_honours_is_sent_and_others_are_refused(name: str) -> None:
    given: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 7,
        "seed": 3,
        "max_tokens": 100,
        "stop": ("END",),
        "choice": "required",
        "parallel_calls": False,
        "effort": "low",
        "extra": {"metadata": {"a": "b"}} if name != "mistral" else {},
    }
    honoured = {key: value for key, value in given.items() if key in OPENAI_PROVIDERS[name].settings}
    body = await request_of(name, **honoured)
    plain = await request_of(name)
    assert len(set(body) - set(plain)) == sum(value != {} for value in honoured.values())
    assert body["stop"] == ["END"]
    for key in set(given) - set(honoured):
        with pytest.raises(ModelError, match=f"doesn't support {key}"):
            await request_of(name, **{key: given[key]})


async def test_nothing_that_was_not_asked_for_is_sent() -> None:
    assert set(await request_of("openai")) == {"model", "messages", "stream", "stream_options", "tools"}
    assert set(await request_of("mistral")) == {"model", "messages", "stream", "tools"}


async def test_settings_by_each_providers_names() -> None:
    assert (await request_of("openai", max_tokens=9))["max_completion_tokens"] == 9
    assert (await request_of("vllm", max_tokens=9, top_k=4))["top_k"] == 4
    assert (await request_of("mistral", seed=5))["random_seed"] == 5
    assert (await request_of("openai", effort="high"))["reasoning_effort"] == "high"
    assert (await request_of("openrouter", effort="high"))["reasoning"] == {"effort": "high"}
    with pytest.raises(ModelError, match=r"openai:m doesn't support top_k; leave that out"):
        await request_of("openai", top_k=4)
    with pytest.raises(ModelError, match=r"ollama:m doesn't support choice"):
        await request_of("ollama", choice="required")


async def test_one_tool_can_be_required_by_name_or_alone() -> None:
    named = await request_of("openai", choice="now")
    assert named["tool_choice"] == {"type": "function", "function": {"name": "now"}}
    assert len(named["tools"]) == 2
    alone = await request_of("llamacpp", choice="now")
    assert alone["tool_choice"] == "required"
    assert [one["function"]["name"] for one in alone["tools"]] == ["now"]
    with pytest.raises(ModelError, match=r"choice='clock'.*offered: sky, now"):
        await request_of("openai", choice="clock")


async def test_a_choice_without_tools_is_refused() -> None:
    chosen = OpenAIChat("m", api_key="k", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelError, match=r"choice='required', but no tools"):
        await anext(chosen.stream(Conversation((user("?"),)), (), ModelSettings(choice="required")))


async def test_an_answers_schema_is_made_strict_where_that_loses_nothing() -> None:
    open_ended = {"type": "object", "additionalProperties": {"type": "string"}}
    point = {"type": "object", "title": "Point", "properties": {"x": {"type": "number", "default": 0}}}
    strict = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    sent = (await request_of("openai", offered=(), output_schema=point))["response_format"]["json_schema"]
    assert sent == {"name": "answer", "schema": {**strict, "additionalProperties": False}, "strict": True}
    sent = (await request_of("openai", offered=(), output_schema=open_ended))["response_format"]["json_schema"]
    assert sent == {"name": "answer", "schema": open_ended, "strict": False}
    sent = (await request_of("vllm", offered=(), output_schema=point))["response_format"]["json_schema"]
    assert sent["schema"] == point
    with pytest.raises(ModelError, match="deepseek:m doesn't support output_schema"):
        await request_of("deepseek", output_schema=point)


THOUGHTFUL = Conversation(
    (
        user("?"),
        assistant(Reasoning("Hm."), Text("So:"), ToolCall("call_1", "sky", '{"city": "Lon'), ToolCall("c2", "now", "")),
        tool_message(ToolResult("call_1", "sky", (Text("no"),), "invalid")),
        tool_message(ToolResult("c2", "now", (Text("12:00"),))),
    )
)


@pytest.mark.parametrize(
    ("name", "field"),
    [("deepseek", "reasoning_content"), ("vllm", "reasoning_content"), ("groq", "reasoning"), ("ollama", "reasoning")],
)
async def test_what_was_thought_goes_back_in_the_providers_field(name: str, field: str) -> None:
    sent = (await request_of(name, THOUGHTFUL))["messages"][1]
    assert sent[field] == "Hm."
    assert [one["function"]["arguments"] for one in sent["tool_calls"]] == ['{"_invalid": "{\\"city\\": \\"Lon"}', "{}"]


async def test_mistral_gets_thoughts_as_parts_and_ids_of_nine() -> None:
    messages = (await request_of("mistral", THOUGHTFUL))["messages"]
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    assert messages[1]["content"] == [thinking, {"type": "text", "text": "So:"}]
    assert [one["id"] for one in messages[1]["tool_calls"]] == [one["tool_call_id"] for one in messages[2:]]


async def test_a_user_who_speaks_after_a_result_can_be_heard_by_mistral() -> None:
    asked = THOUGHTFUL.add(user("Well?"))
    roles = [one["role"] for one in (await request_of("mistral", asked))["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert [one["role"] for one in (await request_of("vllm", asked))["messages"]][-2:] == ["tool", "user"]


async def test_openai_gets_no_thoughts_and_arguments_as_they_were(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="ferrule"):
        sent = (await request_of("openai", THOUGHTFUL))["messages"][1]
    assert set(sent) == {"role", "content", "tool_calls"}
    assert sent["tool_calls"][0]["function"]["arguments"] == '{"city": "Lon'
    assert "reasoning: message 1 (assistant): 3 characters do not go back" in caplog.text


async def test_an_account_with_openai_is_told_to_openai_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer other")
    for name, organization in (("openai", "org-1"), ("groq", None)):
        async with server(says("Yes."), judge=lenient) as listening:
            chosen = make_hosted_model(name, "m", api_key="k", base_url=f"{listening.url}/v1")
            await model(chosen).chat("?").run()
            await chosen.aclose()
        headers = listening.requests[0].headers
        assert headers.get("openai-organization") == organization
        assert headers["authorization"] == "Bearer k"


async def test_a_model_without_tools_says_so() -> None:
    async with server(says("Yes."), judge=lenient) as listening:
        chosen = OpenAIChat("m", "ollama", base_url=f"{listening.url}/v1", native_tools=False)
        assert not chosen.capabilities.native_tools
        with pytest.raises(ModelError, match="has no native tools"):
            await anext(chosen.stream(Conversation((user("?"),)), [sky.spec], ModelSettings()))
        await chosen.aclose()


def test_where_keys_and_addresses_are_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(ModelError, match=r'no key for Groq: set GROQ_API_KEY, or give model\("groq:m", api_key'):
        make_hosted_model("groq", "m")
    monkeypatch.setenv("GROQ_API_KEY", "k")
    assert make_hosted_model("groq", "m").name == "groq:m"
    assert make_hosted_model("vllm", "m").name == "vllm:m"  # needs none
    with pytest.raises(ModelError, match=r"no address for compatible:m: give .*base_url="):
        make_hosted_model("compatible", "m")
    with pytest.raises(ModelError, match=r"unknown provider 'nobody'; expected one of .*openai, .*compatible"):
        make_hosted_model("nobody", "m")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert isinstance(make_hosted_model("openai-responses", "gpt-5"), OpenAIResponses)


def test_the_table_says_of_everybody_what_is_needed() -> None:
    assert {"openai", "vllm", "sglang", "llamacpp", "ollama", "lmstudio", "groq", "openrouter"} <= set(OPENAI_PROVIDERS)
    for name, provider in OPENAI_PROVIDERS.items():
        assert name == provider.name
        assert provider.key.isupper()
        assert provider.base_url.startswith("https://" if provider.needs_key else ("http://localhost", ""))


async def test_a_call_by_two_ids_of_a_provider_is_answered_under_ours() -> None:
    """Some servers count their calls anew in each message."""
    async with server(
        calls(("call_0", "now", "{}")), calls(("call_0", "now", "{}")), says("Noon."), judge=lenient
    ) as listening:
        chosen = make_hosted_model("vllm", "m", base_url=f"{listening.url}/v1")
        run = await model(chosen).chat("?").using(now).run()
        await chosen.aclose()
    run.conversation.check()
    assert run.text == "Noon."
