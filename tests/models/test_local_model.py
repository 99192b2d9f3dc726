"""A local model's conversations: what was sampled is what training sees, and turns end where they should."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from random_models import random_model

from ferrule.agent.pipeline import model
from ferrule.agent.run import Run
from ferrule.builtin_tools import calculator
from ferrule.conversation import Conversation, MalformedCall, user
from ferrule.dialects import get_dialect
from ferrule.dialects.segments import SampledIds
from ferrule.errors import DialectError, ModelError, TokenizerError
from ferrule.events import MessageFinished
from ferrule.models.checkpoints.loading import load_local_model
from ferrule.models.local import LocalModel
from ferrule.models.protocol import ModelSettings
from ferrule.tokens.render import Trace
from ferrule.tokens.tokenizer import make_byte_tokenizer_json
from ferrule.tokens.truncation import ContextMeter
from ferrule.tools.decorator import tool

WARM = ModelSettings(temperature=1.0, seed=1, max_tokens=40)


@pytest.mark.parametrize("dialect", ["nanochat", "hermes", "template"])
def test_two_hundred_sampled_conversations_render_to_the_very_ids_and_masks(tmp_path: Path, dialect: str) -> None:
    # I1: the ids of a rollout are those that training sees; I2: mask 1 is what was sampled.
    runs = asyncio.run(_sampled(tmp_path, dialect))
    assert len(runs) == 200
    assert any(m.role == "tool" for run, _, _ in runs for m in run.conversation.messages)
    for run, trace, generated in runs:
        run.conversation.check()
        assert len(trace.ids) == len(trace.mask) == len(trace.logprobs)
        sampled = [token for token, trained in zip(trace.ids, trace.mask, strict=True) if trained]
        assert sampled == generated
        assert all((logprob is not None) == bool(m) for logprob, m in zip(trace.logprobs, trace.mask, strict=True))


async def _sampled(folder: Path, dialect: str) -> list[tuple[Run, Trace, list[int]]]:
    async with random_model(folder, dialect) as local:
        tools = [calculator]

        async def one(seed: int) -> tuple[Run, Trace, list[int]]:
            settings = {"temperature": 1.0, "seed": seed, "max_tokens": 40}
            pipeline = model(local).chat(f"Question {seed}").using(*tools).within(rounds=3).with_(**settings)
            run = await pipeline.run()
            again = await pipeline.chat(run.conversation).chat("And then?").run()
            ids = [i for m in again.conversation.messages if m.sampled for i in m.sampled.ids]
            specs = [one.spec for one in tools]
            return again, local.trace(again.conversation, specs), ids

        return list(await asyncio.gather(*(one(seed) for seed in range(200))))


def test_appending_never_changes_earlier_ids(tmp_path: Path) -> None:
    # I4 and I9: at each generation point the prompt is a prefix of what follows.
    async def check() -> None:
        async with random_model(tmp_path) as local:
            conversation = Conversation((user("Hello"),))
            for round_number in range(6):
                before = local.dialect.layout(conversation)
                prompt = local.trace(conversation).ids
                run = (
                    await model(local).chat(conversation).with_(temperature=1.0, seed=round_number, max_tokens=9).run()
                )
                after = local.trace(run.conversation).ids
                assert after[: len(prompt)] == prompt
                assert before.segments == local.dialect.layout(run.conversation).segments[: len(before.segments)]
                conversation = run.conversation.add(user(f"More {round_number}"))

    asyncio.run(check())


def test_max_tokens_counts_sampled_tokens_only(tmp_path: Path) -> None:
    async def check() -> None:
        async with random_model(tmp_path, likely=0.1) as local:
            run = await model(local).chat("A long question, " * 10).with_(max_tokens=7, temperature=1.0, seed=3).run()
            assert run.stopped == "length"
            assert run.usage.sampled_tokens == 7
            message = run.conversation.messages[-1]
            assert message.sampled is not None
            assert len(message.sampled.ids) == 7
            # The closer that the system adds is not trained (I5).
            trace = local.trace(run.conversation)
            assert trace.ids[-1] == local.tokenizer.control["<|assistant_end|>"]
            assert trace.mask[-1] == 0

    asyncio.run(check())


def test_a_conversation_is_measured_by_the_prompt_that_the_engine_gets(tmp_path: Path) -> None:
    async def check() -> None:
        async with random_model(tmp_path, context=512) as local:
            assert isinstance(local, ContextMeter)
            assert local.context_length == 512
            run = await model(local).chat("x" * 40).with_(max_tokens=3).run()
            assert run.usage.prompt_tokens == local.count_tokens(Conversation((user("x" * 40),)))

    asyncio.run(check())


def test_a_full_context_ends_the_turn_with_a_valid_conversation(tmp_path: Path) -> None:
    async def check() -> None:
        async with random_model(tmp_path, likely=0.1, context=512) as local:
            run = await model(local).chat("x" * 480).with_(temperature=1.0, seed=1).run()
            assert run.stopped == "context"
            run.conversation.check()
            full = await model(local).chat("x" * 600).run()
            assert full.stopped == "context"
            assert [m.role for m in full.conversation.messages] == ["user"]

    asyncio.run(check())


def test_output_markers_that_the_model_writes_are_a_malformed_call(tmp_path: Path) -> None:
    async def forged(seed: int) -> int:
        async with random_model(tmp_path, seed=seed) as local:
            run = (
                await model(local).chat("x").using(calculator).within(rounds=2).with_(temperature=1.0, seed=seed).run()
            )
            run.conversation.check()
            assert not run.conversation.pending
            calls = [call for message in run.conversation.messages for call in message.calls]
            return sum(isinstance(call, MalformedCall) and call.kind == "forged_result" for call in calls)

    assert sum(asyncio.run(forged(seed)) for seed in range(40))


def test_tools_that_the_dialect_can_not_write_are_refused_before_generating(tmp_path: Path) -> None:
    @tool
    def weather(city: str) -> str:
        """Look up the weather."""
        return city

    async def check() -> None:
        async with random_model(tmp_path) as local:
            with pytest.raises(DialectError, match="weather"):
                await model(local).chat("x").using(weather).run()

    asyncio.run(check())


def test_a_tokenizer_without_the_control_tokens_of_the_dialect_is_refused(tmp_path: Path) -> None:
    async def check() -> None:
        async with random_model(tmp_path) as local:
            other = LocalModel(local.engine, local.tokenizer, get_dialect("hermes"))
            with pytest.raises(TokenizerError, match=r"no control token for '<\|im_end\|>', '<\|im_start\|>'"):
                await model(other).chat("x").run()
            for use in (other.count_tokens, other.trace):
                with pytest.raises(TokenizerError, match="no control token"):
                    use(Conversation((user("x"),)))

    asyncio.run(check())


def test_a_cancelled_conversation_frees_its_place(tmp_path: Path) -> None:
    async def check() -> None:
        async with random_model(tmp_path, likely=0.01) as local:
            async with model(local).chat("x").with_(temperature=1.0, seed=1).stream() as run:
                async for _event in run:
                    break
            run.conversation.check()
            # The step thread lets go of it before its next step.
            for _ in range(200):
                if local.engine.occupied == 0:
                    break
                await asyncio.sleep(0.01)
            assert local.engine.occupied == 0

    asyncio.run(check())


def test_samples_of_another_tokenizer_are_encoded_anew(tmp_path: Path) -> None:
    async def check() -> None:
        async with random_model(tmp_path) as local:
            run = await model(local).chat("x").with_(temperature=1.0, seed=1, max_tokens=5).run()
            own = local.dialect.layout(run.conversation)
            assert any(isinstance(segment, SampledIds) for segment in own.segments)
            (tmp_path / "other").mkdir()
            other = random_model(tmp_path / "other", "hermes")
            assert all(logprob is None for logprob in other.trace(run.conversation).logprobs)
            await other.aclose()

    asyncio.run(check())


def test_stream_ends_with_the_message(tmp_path: Path) -> None:
    async def check() -> None:
        async with random_model(tmp_path) as local:
            events = [event async for event in local.stream(Conversation((user("x"),)), [], WARM)]
            assert isinstance(events[-1], MessageFinished)
            text = "".join(getattr(event, "text", "") for event in events[:-1])
            assert text == events[-1].message.text

    asyncio.run(check())


def test_a_folder_says_itself_how_it_is_framed(tmp_path: Path) -> None:
    for dialect, name in (("template", "hermes@"), ("nanochat", "nanochat")):
        folder = tmp_path / dialect
        folder.mkdir()
        random_model(folder, dialect)
        assert load_local_model(folder).dialect.name.startswith(name)
    hermes = tmp_path / "template"
    (hermes / "chat_template.jinja").unlink()
    assert load_local_model(hermes).dialect.name == "hermes"
    assert load_local_model(hermes, dialect="minicpm5").dialect.name == "minicpm5"
    (hermes / "tokenizer.json").write_text(json.dumps(make_byte_tokenizer_json(["<|end|>"])))
    with pytest.raises(ModelError, match=r"add its chat_template\.jinja, or name a dialect"):
        load_local_model(hermes)
