"""A stream that ends once a part of the answer has begun, and before anything of it is there: it is asked for again."""

from __future__ import annotations

from typing import Any

import anthropic_server as claude
import google_server
import openai_server
import pytest
from asking import try_again_at_once
from openai_server import call_item, event, message_item
from scripted_http import Ending, Reply, ScriptedServer

from ferrule import model, tool
from ferrule.models.naming import make_hosted_model


@tool
def sky(city: str) -> str:
    """Tell the weather."""
    return f"rain in {city}"


def begin_block(**block: Any) -> list[bytes]:
    start = claude.event("message_start", message={"usage": {"input_tokens": 1}})
    return [start, claude.event("content_block_start", index=0, content_block=block), claude.event("ping")]


def begin_item(item: dict[str, Any], *parts: str) -> list[bytes]:
    written = [{"type": "response.created"}, {"type": "response.output_item.added", "output_index": 0, "item": item}]
    return [event(one) for one in (*written, *({"type": part, "output_index": 0} for part in parts))]


BEGUN: dict[str, list[list[bytes]]] = {
    "anthropic": [
        begin_block(type="text", text=""),
        begin_block(type="thinking", thinking="", signature=""),
        begin_block(type="tool_use", id="a", name="sky", input={}),
    ],
    "openai-responses": [
        begin_item({**message_item(""), "content": []}, "response.content_part.added"),
        begin_item({"type": "reasoning", "id": "r", "summary": []}, "response.reasoning_summary_part.added"),
        begin_item(call_item("a", "sky", ""), "keepalive"),
    ],
    "google": [[event({"candidates": [{"content": {"parts": parts}}]})] for parts in ([], [{"text": ""}])],
    "compatible": [[openai_server.chunk({"role": "assistant", "content": ""})]],
}
ANSWERS = {
    "anthropic": claude.answer(claude.text("Rain.")),
    "openai-responses": openai_server.responses(message_item("Rain.")),
    "google": Reply(google_server.chunks(google_server.text("Rain."))),
    "compatible": openai_server.says("Rain."),
}


@pytest.mark.parametrize("ending", ["dropped", "closed"])
@pytest.mark.parametrize(
    ("provider", "pieces"), [(provider, pieces) for provider, all_of_them in BEGUN.items() for pieces in all_of_them]
)
async def test_it_is_tried_again(provider: str, pieces: list[bytes], ending: Ending) -> None:
    async with ScriptedServer(lambda _: None, Reply(pieces, ending=ending), ANSWERS[provider]) as server:
        try_again_at_once(server.url)
        made = make_hosted_model(provider, "m", api_key="test-key", base_url=server.url)
        async with model(made) as asked:
            run = await asked.using(sky).chat("Rain?").run()
        report = made.gateway.report()
    assert (run.text, run.stopped, run.losses) == ("Rain.", "done", ())
    assert (report.requests, report.retries) == (1, 1)
