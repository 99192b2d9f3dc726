"""What an engine keeps of one turn for the next."""

from __future__ import annotations

import asyncio
import random

import pytest
from generating import PROMPT, collect, ids_of, prompt, run, run_long, until

from ferrule.engines import Sampling, scheduler


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
        store, ids = engine._scheduler._batch.prefixes, PROMPT
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
            await until(lambda: engine._scheduler._batch.is_resting_kept)
        assert len(engine._scheduler._batch.prefixes) == 3
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
