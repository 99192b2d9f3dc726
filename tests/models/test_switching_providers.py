"""One conversation that begins at Anthropic, goes on at Google and comes back; each side's server checks it."""

from __future__ import annotations

import logging

import anthropic_server
import google_server
import pytest
from anthropic_server import AnthropicServer
from google_server import GoogleServer

from ferrule.agent.pipeline import model
from ferrule.builtin_tools import calculator
from ferrule.conversation import Conversation, Image, Reasoning, ToolCall
from ferrule.models.anthropic.model import AnthropicModel
from ferrule.models.google.model import GoogleModel
from ferrule.tools.decorator import tool

PIXEL = b"\x89PNG\r\n\x1a\nnot really"


@tool
def look(at: str) -> list[str | Image]:
    """Look at something."""
    return [f"This is {at}.", Image(PIXEL)]


async def asked(made: AnthropicModel | GoogleModel, conversation: Conversation, question: str) -> Conversation:
    pipeline = model(made).chat(conversation).chat(question).using(look, calculator)
    return (await pipeline.run()).conversation


def blocks_of(request: object, role: str, kind: str) -> list[dict[str, object]]:
    messages = [message for message in request.body["messages"] if message["role"] == role]
    return [block for message in messages for block in message["content"] if block["type"] == kind]


def parts_of(request: object, kind: str) -> list[dict[str, object]]:
    return [part for content in request.body["contents"] for part in content["parts"] if kind in part]


@pytest.mark.parametrize("gemini", ["gemini-3-pro", "gemini-2.5-flash"])
async def test_there_and_back(gemini: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ferrule")
    at_anthropic = [
        anthropic_server.answer(
            anthropic_server.thinking("Look at both."),
            anthropic_server.redacted("c2VjcmV0"),
            anthropic_server.call("toolu_1", "look", {"at": "it"}),
            anthropic_server.call("toolu_2", "calculator", {"expression": "12 * 34"}),
        ),
        anthropic_server.answer(anthropic_server.text("Seen.")),
        anthropic_server.answer(anthropic_server.text("Back again.")),
    ]
    at_google = [
        google_server.answer(
            google_server.thought("Once more."),
            google_server.call("look", {"at": "that"}, signed=True),
            google_server.call("look", {"at": "this"}),
        ),
        google_server.answer(google_server.text("Seen as well.", signed=True)),
        google_server.answer(google_server.text("Here again.")),
    ]
    async with (
        AnthropicServer(*at_anthropic) as there,
        GoogleServer(*at_google) as elsewhere,
        AnthropicModel("claude-sonnet-5", api_key="test-key", base_url=there.url) as claude,
        GoogleModel(gemini, api_key="test-key", base_url=elsewhere.url) as google,
    ):
        conversation = await asked(claude, Conversation(), "Look, and multiply.")
        conversation = await asked(google, conversation, "Look again.")
        conversation = await asked(claude, conversation, "And now?")
        conversation = await asked(google, conversation, "And you?")
    conversation.check()
    calls = [call for message in conversation.messages for call in message.calls if isinstance(call, ToolCall)]
    assert [(call.name, call.decode()) for call in calls] == [
        ("look", {"at": "it"}),
        ("calculator", {"expression": "12 * 34"}),
        ("look", {"at": "that"}),
        ("look", {"at": "this"}),
    ]
    _check_at_anthropic(there.requests[2], [call.id for call in calls])
    _check_at_google(elsewhere.requests[2], [call.id for call in calls], "gemini-3" in gemini)
    assert Reasoning("Look at both.") in conversation.messages[1].parts
    assert Reasoning("Once more.") in conversation.messages[6].parts
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert "anthropic:claude-sonnet-5: reasoning: message 6" in told
    assert f"google:{gemini}: reasoning: message 1" in told


def _check_at_anthropic(request: object, ids: list[str]) -> None:
    """Google's calls are there by their ids and with their images; Claude's own thoughts, and no others."""
    assert [block["id"] for block in blocks_of(request, "assistant", "tool_use")] == ids
    results = blocks_of(request, "user", "tool_result")
    assert [block["tool_use_id"] for block in results] == ids
    assert [len(block["content"]) for block in results] == [2, 1, 2, 2]
    assert [block["thinking"] for block in blocks_of(request, "assistant", "thinking")] == ["Look at both."]
    assert len(blocks_of(request, "assistant", "redacted_thinking")) == 1


def _check_at_google(request: object, ids: list[str], is_third: bool) -> None:
    """Claude's calls are there by their ids and with their images; Google's own signatures are back."""
    made = parts_of(request, "functionCall")
    assert [part["functionCall"]["id"] for part in made] == ids
    assert [part["functionResponse"]["id"] for part in parts_of(request, "functionResponse")] == ids
    own = google_server.sign("look")
    first = google_server.UNSIGNED if is_third else None
    assert [part.get("thoughtSignature") for part in made] == [first, None, own, None]
    images = parts_of(request, "inlineData") if not is_third else [
        image for part in parts_of(request, "functionResponse") for image in part["functionResponse"].get("parts", ())
    ]  # fmt: skip
    assert len(images) == 3
    [text] = [part for part in parts_of(request, "text") if part["text"] == "Seen as well."]
    assert "thoughtSignature" in text
