"""Answers that reach the limit of tokens inside a call: asked for twice, with the cause, and no more."""

from __future__ import annotations

from pathlib import Path

import anthropic_server
import openai_server
import pytest
from asking import HOSTED
from random_models import random_model
from reciting_engine import RecitingEngine
from scripted_http import Reply

from ferrule import calculator, model
from ferrule.agent.pipeline import Pipeline
from ferrule.dialects.segments import Control
from ferrule.engines import Finished, Sampled
from ferrule.models.checkpoints.loading import load_local_model, read_tokenizer
from ferrule.tokens.render import encode_segments

CUT = '{"expression": "12 *'
HERMES = '<tool_call>{"name": "calculator", "arguments": {"expression": "12 *'
FINISHED = ("calculator", '{"expression": "12 * 34"}')


def cut_answer(kind: str) -> Reply:
    if kind == "anthropic":
        return anthropic_server.answer(anthropic_server.call("c1", "calculator", CUT), stop="max_tokens")
    if kind == "hermes":
        return openai_server.says(HERMES, finish="length")
    return openai_server.chat(openai_server.piece(0, CUT, "calculator", "c1"), finish="length")


def whole_answer(kind: str) -> Reply:
    if kind == "anthropic":
        return anthropic_server.answer(anthropic_server.call("c2", *FINISHED), stop="tool_use")
    if kind == "hermes":
        return openai_server.says(f'{HERMES} 34"}}}}</tool_call>')
    return openai_server.calls(("c2", *FINISHED))


def text_answer(kind: str) -> Reply:
    if kind == "anthropic":
        return anthropic_server.answer(anthropic_server.text("408"))
    return openai_server.says("408")


async def run_on(kind: str, *replies: Reply):
    async with openai_server.server(*replies, judge=openai_server.lenient) as server:
        made = HOSTED["anthropic" if kind == "anthropic" else "openai"](server.url)
        asked: Pipeline = model(made).chat("?").using(calculator, mode="hermes" if kind == "hermes" else "auto")
        async with asked:
            run = await asked.run()
    run.conversation.check()
    return run, server


@pytest.mark.parametrize("kind", ["openai", "anthropic", "hermes"])
async def test_it_is_asked_for_twice_with_the_cause(kind: str) -> None:
    run, server = await run_on(kind, *[cut_answer(kind)] * 2)
    assert len(server.requests) == 2
    assert run.stopped == "length"
    assert run.stop_detail.startswith("two answers reached max_tokens inside a call; give a larger one by with_(")
    results = [message.result.text for message in run.conversation.messages if message.role == "tool"]
    assert results[0] == (
        "error: the call broke off where the message reached its limit of tokens (max_tokens); write it again, "
        "complete and shorter"
    )
    assert len(results) == 2


@pytest.mark.parametrize("kind", ["openai", "anthropic", "hermes"])
async def test_an_answer_that_fits_then_is_taken(kind: str) -> None:
    script = (cut_answer(kind), whole_answer(kind), cut_answer(kind), text_answer(kind))
    run, _ = await run_on(kind, *script)
    assert (run.stopped, run.text) == ("done", "408")


async def test_a_local_model_is_asked_twice() -> None:
    async with model("embedded").chat("What is 12 * 34?").using(calculator).with_(max_tokens=3) as asked:
        run = await asked.run()
    assert run.stopped == "length"
    assert [message.role for message in run.conversation.messages] == ["user", *["assistant", "tool"] * 2]
    assert "max_tokens" in run.stop_detail


class FullEngine(RecitingEngine):
    """One whose context is full inside a call."""

    def generate(self, ids, **options):
        tokenizer = read_tokenizer(self.folder / "tokenizer.json")
        return self._fill(encode_segments([Control("<|python_start|>12 *")], tokenizer).ids, len(ids))

    @staticmethod
    async def _fill(answer, given):
        yield [Sampled(token, -0.5) for token in answer]
        yield Finished("context", given, cached_tokens=0, sampled_tokens=len(answer))


async def test_a_full_context_is_not_taken_for_max_tokens(tmp_path: Path) -> None:
    def make_engine(folder: Path) -> FullEngine:
        engine = FullEngine(folder, [])
        engine.folder = folder
        return engine

    async with random_model(tmp_path):
        pass
    async with load_local_model(tmp_path, dialect="nanochat", engine=make_engine) as local:
        run = await model(local).chat("What is 12 * 34?").using(calculator).run()
    run.conversation.check()
    assert (run.stopped, run.stop_detail) == ("context", "")
