"""The model in the package: small, standard, and what it samples is what training sees."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np
import pytest

from ferrule.agent.pipeline import model
from ferrule.agent.run import Run
from ferrule.builtin_tools import calculator
from ferrule.embedded import find_embedded_folder, load_embedded_model
from ferrule.engines import NumpyEngine, Sampling
from ferrule.models.local import LocalModel
from ferrule.tokens.render import Trace, render
from ferrule.training.embedded.scoring import draw_held_out_questions

QUESTION = "What is 123456 * 789?"


def test_it_takes_less_than_twelve_megabytes() -> None:
    assert sum(path.stat().st_size for path in find_embedded_folder().rglob("*") if path.is_file()) < 12_000_000


def test_transformers_gives_the_same_logits() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from ferrule.engines.config import read_config
    from ferrule.engines.decoder import TransformerDecoder
    from ferrule.engines.kv_cache import KeyValueCache
    from ferrule.engines.weights import fold_weights, read_safetensors

    folder = find_embedded_folder()
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = read_config(folder / "config.json")
    decoder = TransformerDecoder(config, fold_weights(config, read_safetensors(folder / "model.safetensors")))
    local = load_embedded_model()
    run = model(local).chat(QUESTION).using(calculator).run_sync()
    ids = list(local.trace(run.conversation).ids)
    with torch.no_grad():
        expected = theirs(torch.tensor([ids])).logits[0].numpy()
    for end in range(1, len(ids) + 1):
        cache = KeyValueCache(config)
        cache.reserve(1, end, [])
        logits = decoder.extend(cache, 0, ids[:end], 0, True)
        assert logits is not None
        assert np.abs(logits.reshape(-1) - expected[end - 1]).max() < 1e-4


def test_transformers_tokenizes_a_conversation_alike() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    tokenizer = transformers.AutoTokenizer.from_pretrained(find_embedded_folder())
    local = load_embedded_model()
    run = model(local).chat(QUESTION).using(calculator).run_sync()
    messages = []
    for message in run.conversation.messages:
        if message.role == "tool":
            messages.append({"role": "tool", "content": message.result.text})
            continue
        calls = [{"function": {"name": call.name, "arguments": call.decode()}} for call in message.calls]
        messages.append({"role": message.role, "content": message.text, **({"tool_calls": calls} if calls else {})})
    ids = tokenizer.apply_chat_template(messages, return_dict=True)["input_ids"]
    assert tuple(ids) == render(run.conversation, local.dialect, local.tokenizer).ids


def test_fifty_conversations_at_temperature_one_render_to_what_was_sampled() -> None:
    asked = [question.prompts for question in draw_held_out_questions(50, 5)]

    async def one(local: LocalModel, number: int) -> tuple[Run, Trace]:
        pipeline = model(local).using(calculator).within(rounds=4)
        run = Run(pipeline.conversation)
        for prompt in asked[number][:2]:
            turn = pipeline.chat(run.conversation).chat(prompt)
            run = await turn.with_(temperature=1.0, seed=number, max_tokens=120).run()
        return run, local.trace(run.conversation)

    async def every() -> list[tuple[Run, Trace]]:
        async with load_embedded_model() as local:
            return list(await asyncio.gather(*(one(local, number) for number in range(50))))

    for run, trace in asyncio.run(every()):
        run.conversation.check()
        sampled = [token for m in run.conversation.messages if m.sampled for token in m.sampled.ids]
        assert [token for token, on in zip(trace.ids, trace.mask, strict=True) if on] == sampled
        logprobs = [value for m in run.conversation.messages if m.sampled for value in m.sampled.logprobs]
        assert [value for value in trace.logprobs if value is not None] == logprobs


def test_a_log_probability_is_that_of_the_token_given_all_before_it() -> None:
    async def check() -> None:
        async with load_embedded_model() as local:
            run = await model(local).chat(QUESTION).using(calculator).run()
            trace = local.trace(run.conversation)
            engine = local.engine
            assert isinstance(engine, NumpyEngine)
            place = next(at for at, on in enumerate(trace.mask) if on)
            generation = engine.generate(trace.ids[:place], sampling=Sampling(max_tokens=1), stop_ids=())
            async for batch in generation:
                if isinstance(batch, list):
                    assert batch[0].id == trace.ids[place]
                    assert batch[0].logprob == pytest.approx(trace.logprobs[place], abs=1e-5)

    asyncio.run(check())


def test_its_calls_are_constrained_without_llguidance() -> None:
    program = f"""
import asyncio, sys
sys.modules["llguidance"] = None  # as if it weren't installed
from ferrule import calculator, model
from ferrule.embedded import load_embedded_model
local = load_embedded_model()
assert local.engine.can_constrain
run = asyncio.run(model(local).chat({QUESTION!r}).using(calculator).run())
print(run.conversation)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "97406784" in done.stdout.replace(",", "").replace("_", ""), done.stderr
