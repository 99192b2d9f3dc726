"""The engine as its callers see it: many conversations, each on its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import numpy as np
import pytest
from engine_checkpoints import SMALL, random_tensors
from generating import PROMPT, collect, ids_of, prompt, run, run_long, run_with, until

from ferrule.conversation import Image
from ferrule.dialects.grammar import JsonValue
from ferrule.engines import Finished, ImageInput, NumpyEngine, Sampling
from ferrule.engines.config import read_config
from ferrule.errors import EngineError


def test_a_stop_id_is_sampled_yielded_and_counted(checkpoint):
    async def use(engine):
        free, _ = await collect(engine, PROMPT)
        stop = ids_of(free)[4]
        first = ids_of(free).index(stop)
        tokens, end = await collect(engine, PROMPT, stop_ids={stop})
        assert ids_of(tokens) == ids_of(free)[: first + 1]
        assert (end.reason, end.prompt_tokens, end.sampled_tokens) == ("stop", len(PROMPT), first + 1)

    run(checkpoint, use)


def test_max_tokens_counts_what_is_sampled(checkpoint):
    async def use(engine):
        tokens, end = await collect(engine, PROMPT, max_tokens=7)
        assert (len(tokens), end.reason, end.sampled_tokens) == (7, "length", 7)
        assert not any(token.forced for token in tokens)
        tokens, end = await collect(engine, PROMPT, max_tokens=1)
        assert (len(tokens), end.reason) == (1, "length")

    run(checkpoint, use)


def test_a_full_context_ends_the_generation(checkpoint):
    async def use(engine):
        tokens, end = await collect(engine, PROMPT, max_tokens=None)
        assert (len(tokens), end.reason) == (engine.context_length - len(PROMPT), "context")
        for length in (engine.context_length, engine.context_length + 50):
            tokens, end = await collect(engine, prompt(0, length))
            assert (tokens, end) == ([], Finished("context", length, 0, 0))

    run(checkpoint, use, context_length=64)
    run(checkpoint, use)


def test_a_batch_samples_what_each_would_alone(checkpoint):
    prompts = [prompt(seed, 1 + 9 * seed) for seed in range(12)]

    async def use(engine):
        return await asyncio.gather(*(collect(engine, ids, 5 + len(ids) % 30) for ids in prompts))

    async def one_by_one(engine):
        return [await collect(engine, ids, 5 + len(ids) % 30) for ids in prompts]

    for batch in (12, 5):
        together = run(checkpoint, use, max_batch=batch)
        alone = run(checkpoint, one_by_one)
        for (tokens, end), (expected, expected_end) in zip(together, alone, strict=True):
            assert ids_of(tokens) == ids_of(expected)
            assert end.reason == expected_end.reason
            assert [t.logprob for t in tokens] == pytest.approx([t.logprob for t in expected], abs=1e-4)


def test_a_long_prompt_is_computed_in_chunks_beside_the_others(checkpoint):
    long = prompt(5, 640)
    assert len(long) > 2 * NumpyEngine.load(checkpoint)._decoder.chunk

    async def together(engine):
        return await asyncio.gather(collect(engine, PROMPT, 300), collect(engine, long, 5))

    async def alone(engine):
        return [await collect(engine, PROMPT, 300), await collect(engine, long, 5)]

    for (tokens, end), (expected, expected_end) in zip(
        run_long(checkpoint, together), run_long(checkpoint, alone), strict=True
    ):
        assert ids_of(tokens) == ids_of(expected)
        assert end == expected_end


def test_rollouts_of_one_prompt_share_it(checkpoint):
    ids = prompt(2, 60)

    async def use(engine):
        ends = [end for _, end in await asyncio.gather(*(collect(engine, ids, 12) for _ in range(8)))]
        assert sorted(end.cached_tokens for end in ends) == [0] + [59] * 7

    run(checkpoint, use)


def test_the_same_seed_gives_the_same_ids_and_another_does_not(checkpoint):
    async def use(engine):
        together = await asyncio.gather(
            *(collect(engine, PROMPT, 30, temperature=1.0, seed=seed) for seed in (1, 2, 1))
        )
        alone, _ = await collect(engine, PROMPT, 30, temperature=1.0, seed=1)
        first, other, same = (ids_of(tokens) for tokens, _ in together)
        assert first == same == ids_of(alone)
        assert first != other

    run(checkpoint, use)


def test_a_seed_of_its_own_where_none_is_given(checkpoint):
    async def use(engine):
        outcomes = await asyncio.gather(*(collect(engine, PROMPT, 30, temperature=1.0) for _ in range(3)))
        assert len({tuple(ids_of(tokens)) for tokens, _ in outcomes}) == 3

    run(checkpoint, use)


def test_many_conversations_finish_in_turn(checkpoint):
    async def use(engine):
        outcomes = await asyncio.gather(
            *(collect(engine, prompt(seed, 1 + seed % 40), 1 + seed % 17, temperature=1.0) for seed in range(120))
        )
        assert [end.sampled_tokens for _, end in outcomes] == [1 + seed % 17 for seed in range(120)]
        assert all(len(tokens) == end.sampled_tokens for tokens, end in outcomes)
        await until(lambda: engine.occupied == 0)

    run(checkpoint, use, max_batch=7)


def test_after_a_change_of_weights_ids_are_sampled_by_the_new_ones_alone(checkpoint):
    changed = random_tensors(SMALL, seed=1)
    ids = prompt(3, 30)

    async def use(engine):
        before = [await collect(engine, ids, 9), await collect(engine, ids, 9)]
        engine.weights_changed(changed)
        after = await collect(engine, ids, 9)
        engine.weights_changed()
        return [*before, after, await collect(engine, ids, 9)]

    async def afresh(engine):
        return (await collect(engine, ids, 9))[0]

    outcomes = run(checkpoint, use)
    fresh = run_with(NumpyEngine(read_config(checkpoint / "config.json"), changed), afresh)
    assert [end.cached_tokens for _, end in outcomes] == [0, 29, 0, 0]
    assert [tokens[-1].weights_version for tokens, _ in outcomes] == [0, 0, 1, 2]
    for tokens, _ in outcomes[2:]:
        assert ids_of(tokens) == ids_of(fresh) != ids_of(outcomes[0][0])
        assert [token.logprob for token in tokens] == [token.logprob for token in fresh]


def test_weights_of_another_shape_are_refused_and_the_engine_goes_on(checkpoint):
    async def use(engine):
        with pytest.raises(EngineError, match="has shape"):
            engine.weights_changed(random_tensors(SMALL | {"hidden_size": 32}))
        assert (await collect(engine, PROMPT, 3))[0][0].weights_version == 0

    run(checkpoint, use)


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda array: array.tolist(), None),
        (lambda array: array.astype(np.float64), None),
        (lambda array: array[:1], "has shape"),
        (lambda _: "x", "embed_tokens.weight is a str that numpy can't read as float32"),
        (lambda _: [[1.0], [1.0, 2.0]], "embed_tokens.weight is a list that numpy can't read as float32"),
    ],
)
def test_new_weights_are_what_numpy_reads_as_float32_or_refused_by_name(checkpoint, convert, message):
    changed = random_tensors(SMALL, seed=1)
    converted = {name: convert(array) for name, array in changed.items()}

    async def use(engine):
        if message is not None:
            with pytest.raises(EngineError, match=message):
                engine.weights_changed(converted)
            return
        engine.weights_changed(changed)
        expected = ids_of((await collect(engine, PROMPT, 5))[0])
        engine.weights_changed(converted)
        assert ids_of((await collect(engine, PROMPT, 5))[0]) == expected

    run(checkpoint, use)


def test_weights_that_are_changed_in_place_change_nothing_until_they_are_given_anew(checkpoint):
    tensors = random_tensors(SMALL, seed=1)

    async def use(engine):
        engine.weights_changed(tensors)
        expected = await collect(engine, PROMPT, 5)
        for tensor in tensors.values():
            tensor *= -2
        engine.weights_changed()
        assert ids_of((await collect(engine, PROMPT, 5))[0]) == ids_of(expected[0])

    run(checkpoint, use)


def test_tensors_of_torch_are_weights_if_numpy_can_read_them(checkpoint):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensors = {name: torch.tensor(array) for name, array in random_tensors(SMALL, seed=1).items()}
    unusable = [
        {name: tensor.bfloat16() for name, tensor in tensors.items()},
        {name: tensor.clone().requires_grad_(True) for name, tensor in tensors.items()},
    ]

    async def use(engine):
        engine.weights_changed(tensors)
        assert (await collect(engine, PROMPT, 3))[0][0].weights_version == 1
        for each in unusable:
            with pytest.raises(EngineError, match=r"embed_tokens\.weight is a Tensor that numpy can't read as float32"):
                engine.weights_changed(each)

    run(checkpoint, use)


def test_damaged_weights_reach_every_consumer_as_an_error(checkpoint):
    tensors = random_tensors(SMALL)
    tensors["model.layers.0.mlp.down_proj.weight"][:] = np.nan

    async def main():
        async with NumpyEngine(read_config(checkpoint / "config.json"), tensors, max_batch=2) as engine:
            outcomes = await asyncio.gather(
                *(collect(engine, [1, 2, seed]) for seed in range(4)), return_exceptions=True
            )
            assert [type(outcome) for outcome in outcomes] == [EngineError] * 4
            assert "not finite" in str(outcomes[0])

    asyncio.run(main())


@pytest.mark.parametrize(
    ("ids", "changes", "message"),
    [
        ([], {}, "ids: a prompt is"),
        ([1, 40], {}, "ids: 40 is outside the vocabulary of 40"),
        ([-1], {}, "ids: -1 is outside"),
        ([1.5], {}, "ids: a prompt is"),
        ([1], {"images": [ImageInput(Image(b"x"), 0, 1)]}, "images: "),
        ([1], {"constraint": JsonValue({"type": "object"})}, "constraint: "),
        ([1], {"sampling": Sampling(temperature=-1)}, "temperature: "),
        ([1], {"sampling": Sampling(temperature=float("nan"))}, "temperature: "),
        ([1], {"sampling": Sampling(top_k=0)}, "top_k: "),
        ([1], {"sampling": Sampling(top_p=0.0)}, "top_p: "),
        ([1], {"sampling": Sampling(seed=-3)}, "seed: "),
        ([1], {"sampling": Sampling(max_tokens=0)}, "max_tokens: "),
    ],
)
def test_what_can_not_be_honoured_is_refused_by_name(checkpoint, ids, changes, message):
    engine = NumpyEngine.load(checkpoint)
    with pytest.raises(EngineError, match=message):
        engine.generate(ids, **({"sampling": Sampling(), "stop_ids": ()} | changes))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_batch": 0}, r"^max_batch 0 is not 1 or more$"),
        ({"prefix_bytes": -1}, r"^prefix_bytes -1 is not 0 or more$"),
        ({"context_length": 257}, r"^context_length 257 is not between 1 and 256$"),
    ],
)
def test_impossible_settings_are_refused(checkpoint, settings, message):
    with pytest.raises(EngineError, match=message):
        NumpyEngine.load(checkpoint, **settings)


def test_importing_the_package_loads_no_numpy():
    code = "import sys, ferrule.engines, ferrule.engines.protocol as p; assert 'numpy' not in sys.modules; p.Sampling()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_python_exits_without_waiting_for_tokens(checkpoint):
    code = f"""
import asyncio
from ferrule.engines import NumpyEngine, Sampling
engine = NumpyEngine.load({str(checkpoint)!r})
generation = engine.generate([1, 2], sampling=Sampling(), stop_ids=())
loop = asyncio.new_event_loop()
loop.run_until_complete(anext(generation))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
