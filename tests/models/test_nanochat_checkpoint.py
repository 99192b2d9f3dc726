"""A NanoChat checkpoint with its tool: calls are made in the token loop, their outputs forced into the context."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

from nanochat_checkpoints import make_sum, write_nanochat_checkpoint

from ferrule.agent.pipeline import model
from ferrule.agent.run import Run
from ferrule.builtin_tools import calculator
from ferrule.conversation import ToolResult
from ferrule.models.checkpoints.loading import load_local_model

SUMS = {"12 * 34": "408", "7 + 5": "12", "100 - 1": "99", "2 ** 10": "1024"}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nanochat")
    return write_nanochat_checkpoint(folder, [make_sum(*one) for one in SUMS.items()])


def test_many_rows_at_once_call_and_go_on_with_the_output_in_their_context(checkpoint: Path) -> None:
    rows = [expression for expression in SUMS for _ in range(4)]
    random.Random(1).shuffle(rows)

    async def ask_all() -> tuple[list[Run[Any]], int]:
        async with load_local_model(checkpoint, max_batch=len(rows)) as local:
            widths: list[int] = []
            local.engine.model.register_forward_pre_hook(
                lambda _module, _args, given: widths.append(given["input_ids"].shape[0]), with_kwargs=True
            )
            pipeline = model(local).using(calculator)
            asked = (pipeline.chat(f"What is {expression}?").run() for expression in rows)
            return list(await asyncio.gather(*asked)), max(widths)

    runs, widest = asyncio.run(ask_all())
    assert widest > 1
    for expression, run in zip(rows, runs, strict=True):
        assert run.text == f"It is {SUMS[expression]}."
        assert [(call.name, call.arguments) for call in run.conversation.messages[1].calls] == [
            ("calculator", f'{{"expression": "{expression}"}}')
        ]
        [trace] = run.traces()
        forced = bytes(token for token, mask in zip(trace.ids, trace.mask, strict=True) if not mask and token < 256)
        assert forced.decode() == f"What is {expression}?{SUMS[expression]}"
        # The output continues the prefix that was sampled, of which the engine has the keys and values.
        assert run.usage.cached_tokens > 0


def test_a_context_that_is_full_within_an_output_ends_the_turn_with_a_valid_conversation(checkpoint: Path) -> None:
    async def ask(limit: int) -> Run[Any]:
        async with model(f"local:{checkpoint}", context_length=limit) as local:
            return await local.chat("What is 12 * 34?").using(calculator).run()

    whole = asyncio.run(ask(100))
    [trace] = whole.traces()
    called = trace.ids.index(load_local_model(checkpoint).tokenizer.control["<|python_end|>"]) + 1
    for limit in range(called, called + 5):
        run = asyncio.run(ask(limit))
        assert run.stopped == "context"
        run.conversation.check()
        assert not run.conversation.pending
        [result] = [
            part for message in run.conversation.messages for part in message.parts if isinstance(part, ToolResult)
        ]
        assert result.text == "408"


@pytest.mark.slow
def test_a_call_and_its_output_on_the_command_line(checkpoint: Path) -> None:
    command = [sys.executable, "-m", "ferrule", "ask", "What is 12 * 34?", "--model", f"local:{checkpoint}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "▸ calculator  12 * 34  →  408\nIt is 408.\n"
