"""Who reads from an engine: stopping, leaving, being slow, on one event loop or several."""

from __future__ import annotations

import asyncio
import gc
import random
import threading

import pytest
from generating import PROMPT, collect, ids_of, long_engine, prompt, run, run_long, until

from ferrule.engines import Finished, NumpyEngine, Sampling
from ferrule.errors import EngineError


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
        finished = item = await anext(generation)
        if isinstance(item, list):  # it may have been slow enough for all to come with the first
            finished = await anext(generation)
            first = [*first, *item]
        assert len(first) == 50
        assert finished.reason == "length"
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
