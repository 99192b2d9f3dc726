"""Full memories, damaged weights, consumers that leave: a named error or the right ids, and the engine goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import ClassVar

import numpy as np
import pytest
import torch
from generating import collect, ids_of, until
from tool_turns import captured_logits, check_against_forward, check_greedy, draw_ids, hold, make_scripts

from ferrule.engines import Finished, Sampling
from ferrule.engines.transformers_engine import TransformersEngine
from ferrule.errors import EngineError
from tiny_checkpoints import make_tiny_model, shared_tiny_model

PROMPT = draw_ids(np.random.default_rng(0), 20)
LAYERS = "model.layers"
POSITION = 4 * 2 * 2 * 12 * 4
"""The bytes of one position of the model: layers, keys and values, heads, width, float32."""


def run(use, model=None, **settings):
    """Use an engine, which must still sample the right ids afterwards and hold nobody's place."""
    model = shared_tiny_model("qwen3") if model is None else model

    async def main():
        async with TransformersEngine(model, **settings) as engine:
            await use(engine)
            tokens, _ = await collect(engine, PROMPT, 5)
            check_greedy(model, PROMPT, ids_of(tokens))
            await until(lambda: engine.occupied == 0)

    asyncio.run(main())


@pytest.mark.parametrize("conversations", [pytest.param(1.5, marks=pytest.mark.slow), 3])
def test_a_full_memory_makes_conversations_wait_and_changes_no_id(conversations):
    model = shared_tiny_model("qwen3")
    scripts = make_scripts(seed=6, count=10, calls=2, turn=16)

    async def use(engine):
        with captured_logits(model) as get_rows:
            held = await asyncio.gather(*(hold(engine, script) for script in scripts))
        check_against_forward(model, held, get_rows())

    run(use, kv_memory=int(conversations * 220 * POSITION))


@pytest.mark.parametrize("kv_memory", [0, 10 * POSITION])
def test_what_never_fits_is_refused_by_name(kv_memory):
    async def main():
        async with TransformersEngine(shared_tiny_model("qwen3"), kv_memory=kv_memory) as engine:
            with pytest.raises(EngineError, match=r"^kv_memory: 30 ids need"):
                await collect(engine, PROMPT, 10)
            if kv_memory:
                short, _ = await collect(engine, PROMPT[:4], 6)
                check_greedy(engine.model, PROMPT[:4], ids_of(short))

    asyncio.run(main())


def test_too_long_requests_beside_others_leave_them_alone():
    async def use(engine):
        long = draw_ids(np.random.default_rng(1), 400)
        outcomes = await asyncio.gather(
            *(collect(engine, ids, 8) for ids in (PROMPT, long, PROMPT[:9])), return_exceptions=True
        )
        assert isinstance(outcomes[1], EngineError)
        for ids, outcome in ((PROMPT, outcomes[0]), (PROMPT[:9], outcomes[2])):
            check_greedy(engine.model, ids, ids_of(outcome[0]))

    run(use, kv_memory=200 * POSITION)


def test_consumers_that_leave_free_their_places():
    async def use(engine):
        dropped = [engine.generate([*PROMPT, at], sampling=Sampling(), stop_ids=()) for at in range(4)]
        for generation in dropped:
            await anext(generation)
        closed = engine.generate(PROMPT, sampling=Sampling(), stop_ids=())
        await anext(closed)
        waiting = [asyncio.create_task(collect(engine, [*PROMPT, at], None)) for at in range(10, 14)]
        kept = asyncio.create_task(collect(engine, PROMPT[:7], 25))
        await asyncio.sleep(0)
        dropped.clear()
        del generation
        await closed.aclose()
        for task in waiting:
            task.cancel()
        check_greedy(engine.model, PROMPT[:7], ids_of((await kept)[0]))
        assert [item async for item in closed] == []

    run(use, max_batch=6)


def test_closing_in_the_middle_ends_every_generation_and_refuses_new_ones():
    async def main():
        engine = TransformersEngine(shared_tiny_model("qwen3"), max_batch=2)
        running = [asyncio.create_task(collect(engine, [*PROMPT, at], None)) for at in range(5)]
        generation = engine.generate(PROMPT, sampling=Sampling(), stop_ids=())
        await anext(generation)
        await engine.aclose()
        await engine.aclose()
        assert {end.reason for _, end in await asyncio.gather(*running)} == {"cancelled"}
        items = [item async for item in generation]
        assert isinstance(items[-1], Finished)
        assert items[-1].reason == "cancelled"
        with pytest.raises(EngineError, match="closed"):
            await collect(engine, PROMPT)
        engine.weights_changed()
        assert not [thread for thread in threading.enumerate() if thread.name == "ferrule-engine"]

    asyncio.run(main())


def test_event_loops_of_several_threads_share_an_engine():
    model = shared_tiny_model("qwen3")
    scripts = make_scripts(seed=7, count=8, calls=2, turn=12)
    engine = TransformersEngine(model)
    held = {}

    def use(part):
        async def main():
            return await asyncio.gather(*(hold(engine, script) for script in scripts[part::2]))

        held[part] = asyncio.run(main())

    with captured_logits(model) as get_rows:
        threads = [threading.Thread(target=use, args=(part,)) for part in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rows = get_rows()
    asyncio.run(engine.aclose())
    check_against_forward(model, [*held[0], *held[1]], rows)


@pytest.mark.parametrize("ids", [[1, 320], [-1], [2**40], [], [1.5], [[1]], ["a"], None])
def test_prompts_that_are_none_are_refused_by_name(ids):
    async def use(engine):
        with pytest.raises(EngineError, match=r"^ids: "):
            engine.generate(ids, sampling=Sampling(), stop_ids=())

    run(use)


def test_arrays_and_tensors_are_prompts():
    async def use(engine):
        expected = ids_of((await collect(engine, PROMPT, 6))[0])
        for ids in (np.array(PROMPT, np.int32), torch.tensor(PROMPT)):
            assert ids_of((await collect(engine, ids, 6))[0]) == expected

    run(use)


def test_damaged_weights_are_an_error_until_they_are_mended():
    model = make_tiny_model("qwen3")
    weight = model.model.layers[1].mlp.down_proj.weight.data
    whole = weight.clone()

    async def use(engine):
        await collect(engine, PROMPT, 3)
        weight.fill_(float("nan"))
        engine.weights_changed()
        outcomes = await asyncio.gather(*(collect(engine, [*PROMPT, at]) for at in range(4)), return_exceptions=True)
        assert all(isinstance(outcome, EngineError) for outcome in outcomes)
        assert all("not finite" in str(outcome) for outcome in outcomes)
        weight.copy_(whole)
        engine.weights_changed()

    run(use, model, max_batch=2)


@pytest.mark.parametrize(
    "failure",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("broken kernel"),
        SystemExit("leaving"),
        KeyboardInterrupt("stopped"),
        asyncio.CancelledError("cancelled"),
    ],
)
def test_a_failing_layer_is_an_error_for_those_that_it_fails(failure):
    model = make_tiny_model("qwen3")
    calls = []

    def fail(*_):
        calls.append(1)
        if len(calls) == 3:
            raise failure

    async def use(engine):
        handle = model.model.layers[2].register_forward_hook(fail)
        outcomes = await asyncio.gather(*(collect(engine, [*PROMPT, at], 6) for at in range(3)), return_exceptions=True)
        handle.remove()
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert failed
        assert all(isinstance(outcome, EngineError) and str(failure) in str(outcome) for outcome in failed)

    run(use, model)


def test_a_seed_gives_the_same_ids_in_any_batch():
    async def use(engine):
        warm = {"temperature": 1.0, "top_k": 50, "top_p": 0.9}
        alone = [ids_of((await collect(engine, PROMPT, 24, seed=seed, **warm))[0]) for seed in range(3)]
        others = [collect(engine, [*PROMPT[:at], 5], 30, temperature=1.0) for at in range(1, 6)]
        together = await asyncio.gather(*(collect(engine, PROMPT, 24, seed=seed, **warm) for seed in range(3)), *others)
        assert [ids_of(tokens) for tokens, _ in together[:3]] == alone
        assert len({tuple(ids) for ids in alone}) == 3

    run(use)
    run(use, max_batch=2)


@pytest.mark.parametrize(("setting", "value"), [("top_k", 321), ("top_k", 10**9), ("top_k", 320), ("top_p", 1.0)])
def test_limits_that_exclude_nothing_change_nothing(setting, value):
    async def use(engine):
        expected = ids_of((await collect(engine, PROMPT, 20, temperature=1.0, seed=4))[0])
        limited, _ = await collect(engine, PROMPT, 20, temperature=1.0, seed=4, **{setting: value})
        assert ids_of(limited) == expected

    run(use)


@pytest.mark.parametrize("settings", [{"temperature": 1e-40}, {"temperature": 5.0, "top_k": 1}, {"top_p": 1e-9}])
def test_settings_that_leave_one_id_are_greedy(settings):
    async def use(engine):
        tokens, _ = await collect(engine, PROMPT, 20, **{"temperature": 1.0, "seed": 3, **settings})
        check_greedy(engine.model, PROMPT, ids_of(tokens))

    run(use)


def test_a_context_that_a_result_fills_ends_the_conversation_in_order():
    async def use(engine):
        called, end = await collect(engine, PROMPT, 10)
        assert end.reason == "length"
        result = draw_ids(np.random.default_rng(2), 40)
        full = [*PROMPT, *ids_of(called), *result]
        assert await collect(engine, full, 10) == ([], Finished("context", len(full), 0, 0))
        nearly = full[: engine.context_length - 3]
        tokens, end = await collect(engine, nearly, 10)
        assert (len(tokens), end.reason) == (3, "context")
        check_greedy(engine.model, nearly, ids_of(tokens))

    run(use, context_length=64)


def test_changed_weights_are_used_from_the_next_id_on():
    model = make_tiny_model("qwen3")

    async def use(engine):
        for seed in (1, 2):
            tokens, end = await collect(engine, PROMPT, 10)
            assert end.cached_tokens == 0
            check_greedy(model, PROMPT, ids_of(tokens))
            model.load_state_dict(make_tiny_model("qwen3", seed).state_dict())
            engine.weights_changed()

    run(use, model)


def test_a_model_that_has_sampled_can_be_trained():
    """What the step thread makes must not come into the graph: it runs in inference mode."""
    model = make_tiny_model("qwen3").requires_grad_(True)

    async def use(engine):
        tokens, _ = await collect(engine, PROMPT, 6)
        ids = torch.tensor([[*PROMPT, *ids_of(tokens)]])
        model.train()
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
        model.eval()
        engine.weights_changed()

    run(use, model)


def test_an_engine_that_is_dropped_unclosed_ends_its_thread():
    async def main():
        engine = TransformersEngine(shared_tiny_model("qwen3"))
        await collect(engine, PROMPT, 3)

    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name == "ferrule-engine":
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.parametrize(("ending", "status"), [pytest.param("return", 0, marks=pytest.mark.slow), ("sys.exit(3)", 3)])
def test_leaving_python_in_the_middle_of_a_step_keeps_its_status(tmp_path, ending, status):
    shared_tiny_model("qwen3").save_pretrained(tmp_path)
    code = f"""
import asyncio, sys, threading, torch
from ferrule.engines import Sampling, TransformersEngine

def compute(*_):
    if is_leaving.is_set():
        in_step.set()
        torch.mm(large, large)

async def main():
    engine = TransformersEngine.load({str(tmp_path)!r})
    engine.model.register_forward_hook(compute)
    async for _ in engine.generate([1, 2], sampling=Sampling(), stop_ids=()):
        is_leaving.set()
        in_step.wait()
        {ending}

torch.set_num_threads(1)
large, is_leaving, in_step = torch.ones(1500, 1500), threading.Event(), threading.Event()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (status, b"")


@pytest.mark.slow
@pytest.mark.parametrize("family", ["lfm2", "qwen3-next"])
def test_transformers_warns_of_no_kernels_that_are_not_installed(family):
    code = f"""
import asyncio
from ferrule.engines import Sampling, TransformersEngine
from generating import collect
from tiny_checkpoints import make_tiny_model

async def main():
    async with TransformersEngine(make_tiny_model({family!r})) as engine:
        await collect(engine, [1, 2, 3], 3)

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_model_in_training_mode_is_refused_until_it_is_in_evaluation_mode():
    model = make_tiny_model("llama", attention_dropout=0.5)

    async def use(engine):
        model.train()
        with pytest.raises(EngineError, match=r"training mode.*model\.eval\(\)"):
            await collect(engine, PROMPT, 5)
        model.eval()

    run(use, model)


def test_an_event_loop_that_was_closed_over_a_generation_takes_nothing_from_others():
    engine = TransformersEngine(shared_tiny_model("qwen3"), max_batch=1)
    loop = asyncio.new_event_loop()
    generation = engine.generate(PROMPT, sampling=Sampling(), stop_ids=())
    loop.run_until_complete(anext(generation))
    loop.close()

    async def use():
        async with engine:
            tokens, _ = await collect(engine, PROMPT, 5)
            check_greedy(engine.model, PROMPT, ids_of(tokens))

    asyncio.run(use())


def test_a_prompt_that_is_cancelled_while_it_is_computed_frees_its_place():
    async def use(engine):
        task = asyncio.create_task(collect(engine, draw_ids(np.random.default_rng(3), 900), 5))
        await until(lambda: engine.occupied == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(use, max_batch=1)


def test_engines_can_share_a_model():
    model = shared_tiny_model("gemma3")
    scripts = make_scripts(seed=9, count=6, calls=1, turn=8)

    async def main():
        async with TransformersEngine(model) as one, TransformersEngine(model) as other:
            return await asyncio.gather(*(hold((one, other)[at % 2], script) for at, script in enumerate(scripts)))

    with captured_logits(model) as get_rows:
        held = asyncio.run(main())
        rows = get_rows()
    check_against_forward(model, held, rows)


@pytest.mark.parametrize("model", [None, torch.nn.Linear(2, 2), "headless", "meta"])
def test_what_is_no_model_with_weights_is_refused(model):
    if model == "headless":
        model = make_tiny_model("qwen3").model
    elif model == "meta":
        model = make_tiny_model("qwen3").to("meta")
    with pytest.raises(EngineError):
        TransformersEngine(model)


def test_no_id_that_no_token_has_is_sampled():
    class Vocabulary:
        control: ClassVar = {}
        vocabulary_size = 100

        def decode_token(self, token):
            return bytes([token])

    async def main():
        async with TransformersEngine(shared_tiny_model("qwen3"), vocabulary=Vocabulary()) as engine:
            tokens, _ = await collect(engine, PROMPT, 200, temperature=2.0, seed=1)
            assert max(ids_of(tokens)) < Vocabulary.vocabulary_size

    asyncio.run(main())
