"""What an engine over transformers samples is what one forward pass over the whole conversation gives."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import numpy as np
import pytest
from tool_turns import (
    TokenConversation,
    captured_logits,
    check_against_forward,
    check_greedy,
    check_resumed,
    draw_ids,
    hold,
    leave,
    make_scripts,
)

from ferrule.engines import Finished, Sampling
from ferrule.engines.transformers_engine import TransformersEngine
from ferrule.errors import EngineError
from tiny_checkpoints import FAMILIES, REFUSED, WITH_WINDOWS, make_tiny_model, shared_tiny_model

QUICK = ("qwen3", "gemma3", "lfm2")
ALL = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES]


def run(model, use, **settings):
    async def main():
        async with TransformersEngine(model, **settings) as engine:
            return await use(engine)

    return asyncio.run(main())


@pytest.mark.parametrize("family", ALL)
def test_a_conversation_with_pauses_has_the_logits_of_one_forward_pass(family):
    model = shared_tiny_model(family)
    scripts = make_scripts(seed=1, count=2)

    async def use(engine):
        return [await hold(engine, script) for script in scripts]

    with captured_logits(model) as get_rows:
        conversations = run(model, use)
        rows = get_rows()
    assert any(len(conversation.ends) > 2 for conversation in conversations)
    check_against_forward(model, conversations, rows)
    for conversation, script in zip(conversations, scripts, strict=True):
        check_resumed(conversation, script)


@pytest.mark.parametrize("family", ALL)
@pytest.mark.parametrize("max_batch", [pytest.param(16, id="16"), pytest.param(5, id="5", marks=pytest.mark.slow)])
def test_ragged_rows_together_have_the_logits_of_one_forward_pass_each(family, max_batch):
    """Beside prompts being computed, some of them shared, and conversations that are left."""
    model = shared_tiny_model(family)
    scripts = make_scripts(seed=2, count=16, calls=2, turn=12)
    left = np.random.default_rng(3)

    async def use(engine):
        leaving = [leave(engine, draw_ids(left, 10 + 40 * number), 1 + 3 * number) for number in range(4)]
        held = [hold(engine, script) for script in scripts]
        return (await asyncio.gather(*held, *leaving))[: len(scripts)]

    with captured_logits(model) as get_rows:
        conversations = run(model, use, max_batch=max_batch)
        rows = get_rows()
    check_against_forward(model, conversations, rows)


@pytest.mark.parametrize("family", ALL)
def test_without_tools_the_ids_are_those_of_generate(family):
    model = shared_tiny_model(family)
    generator = np.random.default_rng(4)
    prompts = [draw_ids(generator, length) for length in (3, 21, 50)]

    async def use(engine):
        return await asyncio.gather(*(sample(engine, prompt, 30) for prompt in prompts))

    for prompt, conversation in zip(prompts, run(model, use), strict=True):
        check_greedy(model, prompt, conversation.ids[len(prompt) :])


async def sample(engine, ids, count, **settings) -> TokenConversation:
    conversation = TokenConversation(list(ids))
    sampling = Sampling(max_tokens=count, **settings)
    async for item in engine.generate(ids, sampling=sampling, stop_ids=()):
        if isinstance(item, Finished):
            conversation.ends.append(item)
        else:
            conversation.add(item)
    return conversation


@pytest.mark.parametrize("family", [*WITH_WINDOWS, "lfm2", "qwen3-next", "qwen3"])
@pytest.mark.slow
def test_kept_prefixes_are_right_after_a_window_has_passed(family):
    """Branches before, within and after the window of what is kept, and what ran on meanwhile."""
    model = shared_tiny_model(family)
    generator = np.random.default_rng(5)
    prompt = draw_ids(generator, 120)

    async def use(engine):
        first = await sample(engine, prompt, 20)
        held = [first]
        for length in (139, 130, 119, 60, 10, 1, 139):
            ids = (*first.ids[:length], *draw_ids(generator, 6))
            held += await asyncio.gather(*(sample(engine, ids, 8, temperature=1.0, seed=seed) for seed in range(2)))
        again = await sample(engine, first.ids, 5)
        assert again.ends[0].cached_tokens >= len(first.ids) - 1
        return [*held, again]

    with captured_logits(model) as get_rows:
        conversations = run(model, use)
        rows = get_rows()
    check_against_forward(model, conversations, rows)


@pytest.mark.parametrize("family", REFUSED)
def test_families_whose_state_can_not_be_kept_are_refused_by_name(family):
    model = make_tiny_model(family)
    with pytest.raises(EngineError, match=rf"^{type(model).__name__} \({family}\) is not among the families"):
        TransformersEngine(model)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_prompts_of_several_chunks_are_computed_beside_the_others(family):
    model = make_tiny_model(family, max_position_embeddings=2048)
    generator = np.random.default_rng(8)
    prompts = [draw_ids(generator, length) for length in (1300, 40, 700, 5)]

    async def use(engine):
        first = asyncio.gather(*(sample(engine, ids, 40, temperature=1.0, seed=1) for ids in prompts))
        for _ in range(20):
            await asyncio.sleep(0)
        branch = (*prompts[0][:900], *draw_ids(generator, 30))
        return [*await first, await sample(engine, branch, 10), await sample(engine, branch[:800], 10)]

    with captured_logits(model) as get_rows:
        conversations = run(model, use)
        rows = get_rows()
    check_against_forward(model, conversations, rows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", FAMILIES)
def test_no_schedule_changes_what_is_sampled(family, seed):
    """Little memory, few places, conversations that are left or cancelled, prefixes that are forgotten meanwhile."""
    model = shared_tiny_model(family)
    draw = random.Random(seed)
    scripts = make_scripts(seed, count=10, longest=draw.choice([20, 60, 100]), turn=draw.choice([3, 12, 24]))

    async def cancel(engine, script):
        task = asyncio.create_task(hold(engine, script))
        await asyncio.sleep(0.1 * draw.random())
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def forget(engine):
        for _ in range(3):
            await asyncio.sleep(0.1 * draw.random())
            engine.weights_changed()

    async def use(engine):
        disturbing = [cancel(engine, script) for script in scripts[:3]]
        disturbing += [leave(engine, script.prompt, 5) for script in scripts[3:5]]
        held = [hold(engine, script) for script in scripts]
        return (await asyncio.gather(*held, *disturbing, forget(engine)))[: len(scripts)]

    with captured_logits(model) as get_rows:
        memory = draw.choice([400_000, 800_000, None])
        conversations = run(model, use, max_batch=draw.choice([1, 3, 16]), kv_memory=memory)
        rows = get_rows()
    check_against_forward(model, conversations, rows)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_eager_attention_gives_the_logits_of_its_forward_pass(family):
    model = make_tiny_model(family)
    model.set_attn_implementation("eager")

    async def use(engine):
        return await asyncio.gather(*(hold(engine, script) for script in make_scripts(seed=3, count=6)))

    with captured_logits(model) as get_rows:
        conversations = run(model, use)
        rows = get_rows()
    check_against_forward(model, conversations, rows)
