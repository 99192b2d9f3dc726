"""Answers that servers end without a reason: with `[DONE]`, or Anthropic's `message_stop`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic_server as claude
import pytest
from asking import HOSTED, try_again_at_once
from openai_server import calls, chat, lenient, says
from scripted_http import Reply, ScriptedServer

from ferrule import Run, model, record, tool
from ferrule.conversation import ToolCall
from ferrule.errors import ProviderError


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


CALL = ("c1", "add", '{"a": 2, "b": 3}')
BARE: dict[str, Any] = {"finish": None, "usage": False}


def silent(*blocks: dict[str, Any]) -> Reply:
    """An answer of Anthropic's without a `stop_reason`."""
    return Reply([one for one in claude.events(*blocks) if b"event: message_delta" not in one])


def remove_last(reply: Reply) -> Reply:
    """The same answer without its `[DONE]` or `message_stop`."""
    return Reply(reply.pieces[:-1])


ANSWERS = {"openai": says("5", **BARE), "anthropic": silent(claude.text("5"))}
CALLS = {"openai": calls(CALL, finish=None, usage=False), "anthropic": silent(claude.call("c1", "add", CALL[2]))}


async def ask(provider: str, *replies: Reply, output: Any = None, path: Path | None = None) -> Run:
    async with ScriptedServer(lenient, *replies) as server:
        try_again_at_once(server.url)
        chosen = HOSTED[provider](server.url)
        async with model(chosen if path is None else record(path, chosen)).using(add).chat("2 + 3?") as pipeline:
            return await (pipeline.parse_as(output) if output else pipeline).run()


@pytest.mark.parametrize("provider", ANSWERS)
async def test_an_answer_that_ends_without_a_reason_is_complete(provider: str, tmp_path: Path) -> None:
    run = await ask(provider, ANSWERS[provider], output=int)
    assert (run.output, run.stopped, run.losses) == (5, "done", ())
    path = tmp_path / "answer.jsonl"
    await ask(provider, ANSWERS[provider], path=path)
    again = await model(record(path)).using(add).chat("2 + 3?").run()
    assert (again.text, again.stopped) == ("5", "done")


@pytest.mark.parametrize("provider", CALLS)
async def test_its_calls_are_run(provider: str) -> None:
    run = await ask(provider, CALLS[provider], ANSWERS[provider])
    (made,) = run.conversation.messages[1].calls
    assert isinstance(made, ToolCall)
    assert (run.conversation.messages[2].result.text, run.text, run.stopped) == ("5", "5", "done")


@pytest.mark.parametrize("provider", ANSWERS)
async def test_without_the_last_event_it_is_cut_off(provider: str) -> None:
    run = await ask(provider, remove_last(ANSWERS[provider]))
    assert (run.text, run.stopped) == ("5", "error")
    assert "stopped before its end" in run.losses[0].detail


async def test_an_answer_of_nothing_but_its_end_is_no_answer() -> None:
    with pytest.raises(ProviderError, match="stopped before its end"):
        await ask("openai", *[chat(**BARE)] * 4)
    assert (await ask("anthropic", silent())).stopped == "error"
