"""What servers' templates can read: results as plain strings; and what they leave at the start of an answer."""

from __future__ import annotations

import openai_server
import pytest
from asking import HOSTED, events_of
from scripted_http import Reply

from ferrule import model
from ferrule.conversation import Conversation, Reasoning, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.models.openai.responses import OpenAIResponses
from ferrule.models.providers import OPENAI_PROVIDERS

MODELS = {**HOSTED, "responses": lambda address: OpenAIResponses("m", api_key="k", base_url=address)}


ASKED = Conversation(
    (
        user("?"),
        assistant(ToolCall("call_1", "look", "{}")),
        tool_message(ToolResult("call_1", "look", (Text("A tree."), Text("A house.")))),
    )
)


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("openai", openai_server.says("I see.")),
        ("responses", openai_server.responses(openai_server.message_item("I see."))),
    ],
)
async def test_a_result_of_several_texts_is_one_string(kind: str, reply: Reply) -> None:
    async with openai_server.server(reply, judge=openai_server.lenient) as server:
        made = MODELS[kind](server.url)
        await events_of(made, ASKED)
        await made.aclose()
    body = server.requests[0].body
    sent = body["messages"][-1]["content"] if kind == "openai" else body["input"][-1]["output"]
    assert sent == "A tree.\nA house."


def test_no_provider_is_sent_lists_of_texts_as_results() -> None:
    assert not [name for name, provider in OPENAI_PROVIDERS.items() if provider.style.text_lists]


@pytest.mark.parametrize(
    ("pieces", "parts"),
    [
        ([{"reasoning_content": "Hm."}, {"content": "\n\nYes."}], (Reasoning("Hm."), Text("Yes."))),
        ([{"reasoning": "Hm."}, {"content": "\n"}, {"content": "\n"}, {"content": "Yes.\n"}],
         (Reasoning("Hm."), Text("Yes.\n"))),
        ([{"content": "\n\n"}, {"content": "Yes."}], (Text("\n\nYes."),)),
        ([{"reasoning_content": "Hm."}, {"content": "  Yes."}], (Reasoning("Hm."), Text("  Yes."))),
    ],
)  # fmt: skip
async def test_line_feeds_after_reasoning_are_left_out(pieces, parts) -> None:
    async with (
        openai_server.server(openai_server.chat(*pieces), judge=openai_server.lenient) as server,
        model(HOSTED["openai"](server.url)).chat("?") as pipeline,
    ):
        run = await pipeline.run()
    assert run.conversation.messages[-1].parts == parts
