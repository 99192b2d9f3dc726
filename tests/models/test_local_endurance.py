"""Many conversations of a local model whose tools fail, hang and are cancelled, while its weights change."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ferrule.agent.pipeline import model
from ferrule.conversation import Conversation
from ferrule.dialects import get_dialect
from ferrule.dialects.families.nanochat import ASSISTANT_END, CONTROL_TOKENS, PYTHON_END, PYTHON_START
from ferrule.engines.transformers_engine import TransformersEngine
from ferrule.models.local import LocalModel
from ferrule.tokens.tokenizer import ByteTokenizer, make_byte_tokenizer_json
from ferrule.tools.decorator import Tool, tool
from tiny_checkpoints import make_tiny_model

CONVERSATIONS, QUESTIONS = 64, 2
KV_MEMORY = 8 * 2**20
LOUD = {PYTHON_START: 4.0, PYTHON_END: 2.0, ASSISTANT_END: 1.5}
"""How many times as far as others the logits of control tokens are spread, so that calls are made and turns end; those
that a message can't have are hardly ever likely."""


def make_model(family: str) -> Any:
    made = make_tiny_model(family, vocab_size=256 + len(CONTROL_TOKENS), max_position_embeddings=8192)
    for at, token in enumerate(CONTROL_TOKENS, 256):
        made.get_output_embeddings().weight.data[at] *= LOUD.get(token, 0)
    return made


def make_calculator(engine: TransformersEngine, hangs: asyncio.Event, kinds: Counter[str]) -> Tool[..., Any]:
    """A tool that returns, fails, hangs, computes in a thread, or changes the weights, as its expression says."""

    @tool(timeout=0.05)
    async def calculator(expression: str) -> str:
        """Calculate."""
        kind = ("returns", "fails", "hangs", "computes", "changes")[sum(expression.encode()) % 5]
        kinds[kind] += 1
        if kind == "fails":
            raise ValueError("no such number")
        if kind == "hangs":
            hangs.set()
            await asyncio.Event().wait()
        if kind == "computes":
            return await asyncio.to_thread(str.upper, expression)
        if kind == "changes":
            engine.weights_changed()
        return "4" * (1 + len(expression) % 30)

    return calculator


def measure_tensors() -> int:
    """The bytes of all tensors in this process that something refers to."""
    import torch

    gc.collect()
    tensors = [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)]
    return sum({each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}.values())


@pytest.fixture
def nanochat(tmp_path: Path) -> ByteTokenizer:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(make_byte_tokenizer_json(CONTROL_TOKENS)), encoding="utf-8")
    return ByteTokenizer(path)


@pytest.fixture(autouse=True)
def _no_frozen_garbage() -> Iterator[None]:
    """What the collector passes over isn't counted either."""
    gc.unfreeze()
    yield
    gc.freeze()


class Conversations:
    """Conversations at once on one engine: every fourth is left early, every other fourth is cancelled in a tool."""

    def __init__(self, local: LocalModel, engine: TransformersEngine) -> None:
        self.local, self.engine = local, engine
        self.kinds: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.last_seen: dict[int, Conversation] = {}

    async def hold_all(self) -> None:
        await asyncio.gather(*(self.hold(number) for number in range(CONVERSATIONS)))

    async def hold(self, number: int) -> None:
        hangs = asyncio.Event()
        talk = asyncio.create_task(self.talk(number, hangs))
        if number % 4 == 1:
            hanging = asyncio.create_task(hangs.wait())
            await asyncio.wait([talk, hanging], return_when=asyncio.FIRST_COMPLETED)
            hanging.cancel()
            talk.cancel()
        with suppress(asyncio.CancelledError):
            await talk
        conversation = self.last_seen[number]
        conversation.check()
        assert not conversation.pending
        for message in conversation.messages:
            if message.role == "tool":
                self.statuses[message.result.status] += 1

    async def talk(self, number: int, hangs: asyncio.Event) -> None:
        calculator = make_calculator(self.engine, hangs, self.kinds)
        pipeline = model(self.local).using(calculator).within(rounds=3)
        conversation = Conversation()
        for turn in range(QUESTIONS):
            asked = pipeline.chat(conversation).chat(f"Question {number}, {turn}")
            asked = asked.with_(temperature=1.0, seed=number + CONVERSATIONS * turn, max_tokens=20)
            run = None
            try:
                async with asked.stream() as run:
                    async for at, _ in _enumerate(run):
                        run.conversation.check()
                        if number % 4 == 3 and at > 3 + number:
                            break
            finally:
                assert run is not None
                conversation = self.last_seen[number] = run.conversation


async def _enumerate(run: Any) -> Any:
    at = 0
    async for event in run:
        yield at, event
        at += 1


@pytest.mark.slow
@pytest.mark.parametrize("family", ["nanochat", "gemma3"])
def test_nothing_leaks_from_conversations_with_failing_tools(nanochat: ByteTokenizer, family: str) -> None:
    made = make_model(family)
    threads, tensors = set(threading.enumerate()), measure_tensors()

    async def main() -> None:
        engine = TransformersEngine(made, max_batch=16, kv_memory=KV_MEMORY)
        async with LocalModel(engine, nanochat, get_dialect("nanochat")) as local:
            conversations = Conversations(local, engine)
            sizes = []
            for _ in range(2):
                await conversations.hold_all()
                async with asyncio.timeout(30):
                    while engine.occupied:
                        await asyncio.sleep(0.001)
                sizes.append(measure_tensors())
                assert asyncio.all_tasks() == {asyncio.current_task()}
            assert set(conversations.kinds) == {"returns", "fails", "hangs", "computes", "changes"}
            assert {"ok", "error", "timeout", "cancelled"} <= set(conversations.statuses)
            assert max(sizes) <= tensors + 2 * KV_MEMORY, (tensors, sizes)
            print(conversations.kinds, conversations.statuses, tensors, sizes)

    asyncio.run(main())
    left = [thread for thread in threading.enumerate() if thread not in threads]
    assert not [thread for thread in left if "ferrule" in thread.name]
    assert measure_tensors() <= tensors
