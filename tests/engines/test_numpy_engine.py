"""The engine as its callers see it: many conversations, each on its own."""

from __future__ import annotations

import asyncio
import gc
import random
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from engine_checkpoints import SMALL, random_tensors

from ferrule.engines import Engine, Finished, NumpyEngine, Sampled, Sampling, scheduler
from ferrule.engines.config import read_config
from ferrule.engines.scheduler import CHUNK
from ferrule.errors import EngineError

PROMPT = [3, 14, 15, 9, 26, 5]


def prompt(seed: int, length: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, SMALL["vocab_size"], length).tolist()


async def collect(engine: Engine, ids, max_tokens=20, stop_ids=(), **changes):
    """The sampled tokens and the end of one generation."""
    tokens: list[Sampled] = []
    sampling = Sampling(max_tokens=max_tokens, **changes)
    async for item in engine.generate(ids, sampling=sampling, stop_ids=stop_ids):
        if isinstance(item, Finished):
            return tokens, item
        tokens += item
    raise AssertionError("no Finished")


def ids_of(tokens: list[Sampled]) -> list[int]:
    return [token.id for token in tokens]


async def until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def long_engine(checkpoint, **settings) -> NumpyEngine:
    """One whose context is so long that nothing ends by itself while a test looks."""
    config = replace(read_config(checkpoint / "config.json"), context_length=500_000)
    return NumpyEngine(config, random_tensors(SMALL), **settings)


def run_with(engine, use):
    async def main():
        async with engine:
            return await use(engine)

    return asyncio.run(main())


def run(checkpoint, use, **settings):
    return run_with(NumpyEngine.load(checkpoint, **settings), use)


def run_long(checkpoint, use, **settings):
    return run_with(long_engine(checkpoint, **settings), use)


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
    assert len(long) > 2 * CHUNK

    async def together(engine):
        return await asyncio.gather(collect(engine, PROMPT, 300), collect(engine, long, 5))

    async def alone(engine):
        return [await collect(engine, PROMPT, 300), await collect(engine, long, 5)]

    for (tokens, end), (expected, expected_end) in zip(
        run_long(checkpoint, together), run_long(checkpoint, alone), strict=True
    ):
        assert ids_of(tokens) == ids_of(expected)
        assert end == expected_end


def test_the_next_turn_costs_its_new_ids_only(checkpoint):
    async def use(engine):
        tokens, first = await collect(engine, PROMPT, 10)
        assert first.cached_tokens == 0
        longer = [*PROMPT, *ids_of(tokens), 7, 8, 9]
        again, second = await collect(engine, longer, 10)
        # The last sampled id was never fed.
        assert second.cached_tokens == len(PROMPT) + 9
        assert second.prompt_tokens == len(longer)
        repeated, third = await collect(engine, longer, 10)
        assert third.cached_tokens == len(longer) - 1
        assert ids_of(repeated) == ids_of(again)
        branched, fourth = await collect(engine, [*PROMPT, 39, 38], 10)
        assert len(PROMPT) <= fourth.cached_tokens < len(PROMPT) + 2
        return ids_of(again), ids_of(branched), longer

    again, branched, longer = run(checkpoint, use)

    async def afresh(engine):
        assert ids_of((await collect(engine, longer, 10))[0]) == again
        assert ids_of((await collect(engine, [*PROMPT, 39, 38], 10))[0]) == branched

    run(checkpoint, afresh, prefix_bytes=0)


async def sampled_after(engine, ids, max_tokens=10) -> tuple[list[int], int]:
    """The sampled ids, and how many ids of the prompt were not computed again."""
    tokens, end = await collect(engine, ids, max_tokens)
    return ids_of(tokens), end.cached_tokens


def sampled_afresh(checkpoint, prompts, max_tokens=10) -> list[list[int]]:
    """What is sampled after each prompt by an engine that keeps nothing."""

    async def use(engine):
        return [(await sampled_after(engine, ids, max_tokens))[0] for ids in prompts]

    return run_long(checkpoint, use, prefix_bytes=0)


def test_one_prefix_continued_twice_at_once(checkpoint):
    first = prompt(1, 50)
    turns = [first + prompt(seed, 10 + seed) for seed in (2, 3, 4)]

    async def use(engine):
        await collect(engine, first, 1)
        await until(lambda: engine.occupied == 0)
        return await asyncio.gather(*(sampled_after(engine, ids) for ids in turns))

    outcomes = run(checkpoint, use)
    assert [sampled for sampled, _ in outcomes] == sampled_afresh(checkpoint, turns)
    assert [cached for _, cached in outcomes] == [50, 50, 50]


def test_a_prefix_continued_differently_can_be_continued_again(checkpoint):
    """Whichever was continued last, both branches and their trunk are still known."""
    trunk = prompt(1, 50)
    left, right = trunk + prompt(2, 20), trunk[:30] + prompt(3, 20)
    turns = [trunk, left, right, [*left, 7], [*right, 7], [*trunk, 7], [*left, 7, 8]]

    async def use(engine):
        return [await sampled_after(engine, ids, 1) for ids in turns]

    outcomes = run(checkpoint, use)
    assert [sampled for sampled, _ in outcomes] == sampled_afresh(checkpoint, turns, 1)
    assert [cached for _, cached in outcomes] == [0, 50, 30, 70, 50, 50, 71]


@pytest.mark.parametrize("is_resting", [True, False], ids=["in its place", "from the store"])
def test_a_prefix_that_is_forgotten_while_it_is_continued(checkpoint, is_resting):
    first, others = prompt(1, 60), [prompt(seed, 60) for seed in range(2, 6)]
    longer = first + prompt(9, 10)

    async def use(engine):
        await collect(engine, first, 1)
        await until(lambda: engine.occupied == 0)
        if not is_resting:
            await collect(engine, others[0], 1)  # takes the place
            await until(lambda: engine.occupied == 0)
        running = asyncio.create_task(sampled_after(engine, longer, 300))
        await until(lambda: engine.occupied == 1)
        for ids in others:
            await collect(engine, ids, 1)
        assert [(await running)[0]] == expected
        assert (await running)[1] == 60
        await until(lambda: engine.occupied == 0)
        assert (await sampled_after(engine, first, 1))[1] < 60

    expected = sampled_afresh(checkpoint, [longer], 300)
    room_for_three = 3 * 75 * (2 * 4 * 8 * 4 + 8)  # a quarter in reserve; layers, heads, head_dim, bytes; an id
    run_long(checkpoint, use, prefix_bytes=room_for_three)


def test_a_next_turn_goes_on_where_the_last_one_ended(checkpoint, monkeypatch):
    """One conversation's turns are not copied: nothing is put into the store until another needs the place."""
    monkeypatch.setattr(scheduler, "PAUSE", 60)

    async def use(engine):
        store, ids = engine._scheduler._prefixes, PROMPT
        for turn in range(4):
            sampled, cached = await sampled_after(engine, ids)
            assert cached == (len(ids) - 3 if turn else 0)
            assert len(store) == 0
            ids = [*ids, *sampled, 7, 8]
        await collect(engine, [1, 2], 1)
        assert len(store) == 1
        assert (await sampled_after(engine, ids))[1] == len(ids) - 3

    run(checkpoint, use)


def test_a_pause_is_used_to_keep_the_last_turn(checkpoint):
    """What was kept meanwhile, in whole or in part, is neither lost nor kept twice by the turns that follow."""
    turns = [PROMPT, [*PROMPT, 7, 8], [*PROMPT, 7, 9], [1, 2], [*PROMPT, 7, 8, 9], [*PROMPT, 7, 9, 9]]

    async def use(engine):
        outcomes = []
        for ids in turns:
            outcomes.append(await sampled_after(engine, ids, 1))
            await until(lambda: engine._scheduler._is_resting_kept)
        assert len(engine._scheduler._prefixes) == 3
        return outcomes

    outcomes = run(checkpoint, use)
    assert [sampled for sampled, _ in outcomes] == sampled_afresh(checkpoint, turns, 1)
    assert [cached for _, cached in outcomes] == [0, 6, 7, 0, 8, 8]


def test_a_conversation_that_is_cancelled_in_its_prompt_leaves_what_it_knew(checkpoint):
    first = prompt(1, 50)
    longer = first + prompt(2, 2000)

    async def use(engine):
        await collect(engine, first, 1)
        await until(lambda: engine.occupied == 0)
        generation = engine.generate(longer, sampling=Sampling(), stop_ids=())
        reader = asyncio.create_task(anext(generation))
        await until(lambda: engine.occupied == 1)
        reader.cancel()
        await until(lambda: engine.occupied == 0)
        sampled, cached = await sampled_after(engine, [*first, 7])
        assert cached >= 50
        return sampled

    assert [run_long(checkpoint, use)] == sampled_afresh(checkpoint, [[*first, 7]])


def test_of_any_turns_the_longest_known_prefix_is_found(checkpoint):
    """Turns that extend, repeat, shorten and branch off earlier ones, one by one."""
    chance = random.Random(0)
    turns: list[list[int]] = []
    for _ in range(60):
        trunk = chance.choice(turns) if turns and chance.random() < 0.8 else []
        new = [chance.randrange(3) for _ in range(chance.randrange(1, 12))]
        turns.append(trunk[: chance.randrange(len(trunk) + 1)] + new)

    async def use(engine):
        return [await sampled_after(engine, ids, 3) for ids in turns]

    outcomes, afresh = run(checkpoint, use), sampled_afresh(checkpoint, turns, 3)
    known: list[list[int]] = [[]]
    for ids, (sampled, cached), expected in zip(turns, outcomes, afresh, strict=True):
        assert sampled == expected
        assert cached == max(shared(ids[:-1], each) for each in known)
        known.append([*ids, *sampled[:-1]])


def shared(one: list[int], other: list[int]) -> int:
    """How many ids two lists begin with alike."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_nothing_is_kept_without_room(checkpoint):
    async def use(engine):
        await collect(engine, PROMPT)
        assert (await collect(engine, PROMPT))[1].cached_tokens == 0

    run(checkpoint, use, prefix_bytes=0)


def test_appending_a_chunk_is_appending_each_id(checkpoint):
    """A result appended at once, or an id at a time with the prefix cache carrying each, samples the same."""
    result = prompt(3, 40)

    async def at_once(engine):
        await collect(engine, PROMPT, 1)
        return ids_of((await collect(engine, PROMPT + result, 15))[0])

    async def one_by_one(engine):
        for length in range(len(result)):
            await collect(engine, PROMPT + result[:length], 1)
        tokens, end = await collect(engine, PROMPT + result, 15)
        assert end.cached_tokens == len(PROMPT) + len(result) - 1
        return ids_of(tokens)

    assert run(checkpoint, at_once) == run(checkpoint, one_by_one)


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


@pytest.mark.parametrize("way", ["break", "aclose", "cancel", "drop"])
def test_who_stops_reading_gives_the_place_up(checkpoint, way):
    async def use(engine):
        generation = engine.generate(PROMPT, sampling=Sampling(), stop_ids=())
        if way == "cancel":
            task = asyncio.create_task(collect(engine, PROMPT, None))
            await until(lambda: engine.occupied == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        elif way == "break":
            async for _ in engine.generate(PROMPT, sampling=Sampling(), stop_ids=()):
                break
        else:
            await anext(generation)
            assert engine.occupied == 1
        if way == "aclose":
            await generation.aclose()
            with pytest.raises(StopAsyncIteration):
                await anext(generation)
        del generation
        gc.collect()
        await until(lambda: engine.occupied == 0)
        # With one place only, this would never come in if the other kept it.
        _, end = await asyncio.wait_for(collect(engine, [1, 2], 3), 10)
        assert end.reason == "length"

    run_long(checkpoint, use, max_batch=1)


def test_cancelling_one_that_waits_in_line(checkpoint):
    async def use(engine):
        running = engine.generate(PROMPT, sampling=Sampling(), stop_ids=())
        await anext(running)
        waiting = asyncio.create_task(collect(engine, [1, 2], 3))
        third = asyncio.create_task(collect(engine, [3, 4], 3))
        await until(lambda: engine.occupied >= 2)
        waiting.cancel()
        await running.aclose()
        assert (await third)[1].reason == "length"
        await until(lambda: engine.occupied == 0)

    run(checkpoint, use, max_batch=1)


def test_coming_and_going_at_random_leaves_each_to_itself(checkpoint):
    """Conversations that start, end and are cancelled at any moment, prompts of several chunks among them."""
    chance = random.Random(0)
    prompts = [prompt(seed, chance.choice([1, 5, 40, 300, 600])) for seed in range(24)]

    async def one(engine, ids, gives_up):
        await asyncio.sleep(chance.random() * 0.1)
        generation = engine.generate(ids, sampling=Sampling(max_tokens=25), stop_ids=())
        sampled = []
        async for item in generation:
            if isinstance(item, Finished):
                return sampled
            sampled += ids_of(item)
            if gives_up and len(sampled) > 5:
                break
        return sampled

    async def together(engine):
        return await asyncio.gather(*(one(engine, ids, number % 3 == 0) for number, ids in enumerate(prompts * 2)))

    async def alone(engine):
        return [ids_of((await collect(engine, ids, 25))[0]) for ids in prompts]

    expected = run_long(checkpoint, alone, prefix_bytes=0)
    for outcome, whole in zip(run_long(checkpoint, together, max_batch=5), expected * 2, strict=True):
        assert outcome == whole[: len(outcome)]
        assert len(outcome) > 5


def test_closing_one_that_another_task_reads_ends_it_there(checkpoint):
    async def use(engine):
        blocker = engine.generate(PROMPT, sampling=Sampling(), stop_ids=())
        await anext(blocker)
        generation = engine.generate([1, 2], sampling=Sampling(max_tokens=3), stop_ids=())

        async def read():
            return [item async for item in generation]

        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        with pytest.raises(EngineError, match="another task"):
            await anext(generation)
        await generation.aclose()
        assert await asyncio.wait_for(reader, 10) == []

    run_long(checkpoint, use, max_batch=1)


def test_what_a_slow_reader_has_not_fetched_comes_in_one_list(checkpoint):
    async def use(engine):
        generation = engine.generate(PROMPT, sampling=Sampling(max_tokens=50), stop_ids=())
        first = await anext(generation)
        await until(lambda: engine.occupied == 0)
        await asyncio.sleep(0.05)
        rest = await anext(generation)
        assert len(first) + len(rest) == 50
        assert (await anext(generation)).reason == "length"
        with pytest.raises(StopAsyncIteration):
            await anext(generation)

    run(checkpoint, use)


def test_closing_the_engine_cancels_what_runs_and_refuses_what_comes(checkpoint):
    async def main():
        engine = NumpyEngine.load(checkpoint, max_batch=1)
        running = asyncio.create_task(collect(engine, PROMPT, None))
        waiting = asyncio.create_task(collect(engine, [1], None))
        await until(lambda: engine.occupied == 2)
        await engine.aclose()
        tokens, end = await running
        assert end.reason in ("cancelled", "context")
        assert end.sampled_tokens == len(tokens)
        assert (await waiting)[1].reason in ("cancelled", "context")
        assert not any(thread.name == "ferrule-engine" for thread in threading.enumerate())
        with pytest.raises(EngineError, match="closed"):
            await collect(engine, PROMPT)
        await engine.aclose()

    asyncio.run(main())


def test_an_engine_that_was_never_used_closes(checkpoint):
    asyncio.run(NumpyEngine.load(checkpoint).aclose())


def test_an_engine_that_is_dropped_ends_its_thread(checkpoint):
    async def main():
        engine = NumpyEngine.load(checkpoint)
        await collect(engine, PROMPT)

    asyncio.run(main())
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "ferrule-engine":
            thread.join(5)
            assert not thread.is_alive()


def test_one_engine_serves_several_event_loops(checkpoint):
    engine = NumpyEngine.load(checkpoint)
    outcomes = []

    def serve():
        outcomes.append(ids_of(asyncio.run(collect(engine, PROMPT, 40))[0]))

    threads = [threading.Thread(target=serve) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 3
    assert outcomes[0] == outcomes[1] == outcomes[2]
    asyncio.run(engine.aclose())


def test_a_loop_that_was_closed_unread_does_not_hold_its_place(checkpoint):

    engine = long_engine(checkpoint, max_batch=1)
    loop = asyncio.new_event_loop()
    generation = engine.generate(PROMPT, sampling=Sampling(), stop_ids=())
    loop.run_until_complete(anext(generation))
    loop.close()
    asyncio.run(asyncio.wait_for(collect(engine, [1, 2], 3), 10))
    assert generation is not None
    asyncio.run(engine.aclose())


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
        ([1], {"images": [b"x"]}, "images: "),
        ([1], {"constraint": object()}, "constraint: "),
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


@pytest.mark.parametrize("settings", [{"max_batch": 0}, {"prefix_bytes": -1}, {"context_length": 257}])
def test_impossible_settings_are_refused(checkpoint, settings):
    with pytest.raises(EngineError, match=next(iter(settings))):
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
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
