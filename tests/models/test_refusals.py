"""A model that refuses, or whose answer is withheld: a reason of its own to stop, with what was said about it."""

from __future__ import annotations

from pathlib import Path

import anthropic_server
import google_server
import openai_server
import pytest
from asking import HOSTED
from scripted_http import Reply

from ferrule import calculator, model, record
from ferrule.models.openai.responses import OpenAIResponses

NO = "I can't help with that."
HALF = '{"expression": "12 *'
REFUSALS = {
    "openai": (openai_server.chat({"refusal": NO[:9]}, {"refusal": NO[9:]}), NO, NO),
    "openai withheld": (openai_server.says("How to", finish="content_filter"), "How to", "content_filter"),
    "openai in a call": (
        openai_server.chat(openai_server.piece(0, HALF, "calculator", "c1"), finish="content_filter"), "",
        "content_filter",
    ),
    "responses": (
        Reply([
            openai_server.event({"type": "response.refusal.delta", "output_index": 0, "delta": NO}),
            openai_server.event({"type": "response.completed", "response": {"status": "completed"}}),
        ]), NO, NO,
    ),
    "responses withheld": (
        openai_server.responses(
            openai_server.message_item("How to"), end="incomplete", incomplete_details={"reason": "content_filter"}
        ), "How to", "content_filter",
    ),
    "anthropic": (anthropic_server.answer(anthropic_server.text("How to"), stop="refusal"), "How to", "refusal"),
    "google": (google_server.answer(google_server.text("How to"), stop="SAFETY"), "How to", "SAFETY"),
}  # fmt: skip
MODELS = {**HOSTED, "responses": lambda address: OpenAIResponses("m", api_key="k", base_url=address)}


def refusing(kind: str) -> tuple[openai_server.ScriptedServer, str, str]:
    reply, text, detail = REFUSALS[kind]
    return openai_server.ScriptedServer(openai_server.lenient, reply), text, detail


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("kind", REFUSALS)
async def test_a_refusal_ends_the_run_with_its_text(kind: str, typed: bool) -> None:
    server, text, detail = refusing(kind)
    async with server, model(MODELS[kind.split()[0]](server.url)).chat("?").using(calculator) as pipeline:
        run = await (pipeline.parse_as(int) if typed else pipeline).run()
    run.conversation.check()
    assert (run.stopped, run.stop_detail, run.output) == ("refusal", detail, None)
    assert (run.text if "call" not in kind else "") == text
    assert len(server.requests) == 1


async def test_complete_calls_are_answered_all_the_same() -> None:
    replies = (
        openai_server.calls(("c1", "calculator", '{"expression": "2"}'), finish="content_filter"),
        openai_server.says("2"),
    )
    async with (
        openai_server.server(*replies, judge=openai_server.lenient) as server,
        model(HOSTED["openai"](server.url)).chat("?").using(calculator) as pipeline,
    ):
        assert (await pipeline.run()).stopped == "done"


@pytest.mark.parametrize("mode", ["hermes", "api"])
async def test_a_refusal_in_text_mode_and_in_a_recording(tmp_path: Path, mode: str) -> None:
    server, text, detail = refusing("openai")
    path = tmp_path / "talk.jsonl"
    async with server:
        runs = []
        for recorded in (record(path, MODELS["openai"](server.url)), None):
            asked = model(recorded or record(path)).chat("?").using(calculator, mode=mode)
            runs.append(await asked.run())
            await asked.aclose()
    assert [(run.stopped, run.stop_detail, run.text) for run in runs] == [("refusal", detail, text)] * 2
