"""The engine over models of transformers: memory, changed weights and failures; what it keeps, and what it refuses."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from generating import collect, ids_of, prompt, run_with, until  # noqa: E402

from ferrule.engines import Sampling, TransformersEngine  # noqa: E402
from ferrule.errors import EngineError  # noqa: E402
from tiny_checkpoints import make_tiny_model, shared_tiny_model  # noqa: E402

FAMILIES = ["qwen3", "gemma3", "lfm2"]  # attention to all positions, to the last ones, and states


def run(model, use, **settings):
    return run_with(TransformersEngine(model, **settings), use)


def compute_logprobs(model, ids, tokens) -> list[float]:
    """The log-probabilities of sampled tokens in one forward pass over the whole."""
    whole = torch.tensor([[*ids, *ids_of(tokens)]])
    with torch.no_grad():
        logprobs = torch.log_softmax(model(input_ids=whole).logits[0].float(), dim=-1)
    return [float(logprobs[len(ids) + at - 1, token.id]) for at, token in enumerate(tokens)]


def check(model, ids, tokens) -> None:
    expected = compute_logprobs(model, ids, tokens)
    assert [token.logprob for token in tokens] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_turns_of_ragged_conversations_cost_their_new_ids_and_have_the_logits_of_one_pass(family):
    model = shared_tiny_model(family)
    prompts = [prompt(seed, 1 + 23 * seed) for seed in range(5)]

    async def use(engine):
        first = await asyncio.gather(*(collect(engine, ids, 4 + len(ids) % 7) for ids in prompts))
        turns = [[*ids, *ids_of(tokens), 7, 8, 9] for ids, (tokens, _) in zip(prompts, first, strict=True)]
        second = await asyncio.gather(*(collect(engine, ids, 6, temperature=1.0) for ids in turns))
        return [*zip(prompts, first, strict=True), *zip(turns, second, strict=True)]

    outcomes = run(model, use)
    for ids, (tokens, _) in outcomes:
        check(model, ids, tokens)
    # The last sampled id was never fed.
    assert [end.cached_tokens for _, (_, end) in outcomes[5:]] == [len(ids) - 4 for ids, _ in outcomes[5:]]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_prefix_is_used_again_by_rollouts_and_branches(family):
    model, ids = shared_tiny_model(family), prompt(1, 60)

    async def use(engine):
        rollouts = await asyncio.gather(*(collect(engine, ids, 5, temperature=1.0, seed=seed) for seed in range(3)))
        assert sorted(end.cached_tokens for _, end in rollouts) == [0, 59, 59]
        branched, end = await collect(engine, [*ids[:40], 7, 7], 5)
        # A state can't be cropped to a place where nothing ended.
        assert end.cached_tokens == (0 if family == "lfm2" else 40)
        check(model, [*ids[:40], 7, 7], branched)
        again, end = await collect(engine, [*ids, 7], 5)
        assert end.cached_tokens >= 59
        check(model, [*ids, 7], again)

    run(model, use)


def test_a_long_prompt_is_computed_in_chunks_beside_the_others():
    model, long = make_tiny_model("gemma3", max_position_embeddings=2048), prompt(2, 1200)

    async def use(engine):
        assert len(long) > 2 * engine._decoder.chunk
        return await asyncio.gather(collect(engine, [1, 2], 40), collect(engine, long, 5))

    for ids, (tokens, _) in zip(([1, 2], long), run(model, use), strict=True):
        check(model, ids, tokens)


def shrink_weights(model) -> None:
    for parameter in model.parameters():
        parameter.data *= 0.8


@pytest.mark.parametrize("family", FAMILIES)
def test_after_a_change_of_weights_ids_are_sampled_by_the_new_ones_alone(family):
    model, ids = make_tiny_model(family), prompt(3, 30)

    async def use(engine):
        before, _ = await collect(engine, ids, 5)
        check(model, ids, before)
        shrink_weights(model)
        engine.weights_changed()
        after, end = await collect(engine, ids, 5)
        assert end.cached_tokens == 0
        check(model, ids, after)
        assert [token.weights_version for token in (*before, *after)] == [0] * 5 + [1] * 5

    run(model, use)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_runs_while_weights_change_is_computed_anew(family):
    model, ids = make_tiny_model(family), prompt(4, 30)
    at_once = [ids, prompt(5, 12)]

    async def use(engine):
        def change_at_a_position(_module, _arguments, inputs) -> None:
            nonlocal is_changed
            if "position_ids" in inputs and (inputs["position_ids"] == len(ids) + 10).any() and not is_changed:
                is_changed = True
                trainer.start()
                while not engine._scheduler._weight_changes:
                    time.sleep(0.001)

        trainer = threading.Thread(target=engine.weights_changed, args=(lambda: shrink_weights(model),))
        model.register_forward_pre_hook(change_at_a_position, with_kwargs=True)
        outcomes = await asyncio.gather(*(collect(engine, each, 40) for each in at_once))
        trainer.join()
        return outcomes

    is_changed = False
    for each, (tokens, end) in zip(at_once, run(model, use), strict=True):
        assert (len(tokens), end.reason) == (40, "length")
        changed = [token.weights_version for token in tokens].index(1)
        check(model, each + ids_of(tokens[:changed]), tokens[changed:])
    assert 0 < changed < 40


@pytest.mark.parametrize("is_used", [False, True])
def test_a_failing_change_of_weights_is_raised_where_it_was_asked_for(is_used):
    model, ids = make_tiny_model("qwen3"), prompt(7, 20)

    def fail() -> None:
        shrink_weights(model)
        raise ValueError("boom")

    async def use(engine):
        if is_used:
            await collect(engine, ids, 3)
        with pytest.raises(ValueError, match=r"^boom$"):
            engine.weights_changed(fail)
        tokens, end = await collect(engine, ids, 3)
        check(model, ids, tokens)
        assert (end.cached_tokens, tokens[0].weights_version) == (0, 1)

    run(model, use)


def test_a_failing_change_of_weights_ends_no_generation_and_no_other_change():
    model, ids, outcomes, seen = make_tiny_model("qwen3"), prompt(8, 20), [], set()

    def fail() -> None:
        raise SystemExit("boom")

    def change(engine, how) -> None:
        try:
            outcomes.append(engine.weights_changed(how))
        except SystemExit as error:
            outcomes.append(str(error))

    async def use(engine):
        def change_thrice(_module, _arguments, inputs) -> None:
            if "position_ids" in inputs and (inputs["position_ids"] == len(ids) + 5).any() and not seen:
                for queued, trainer in enumerate(trainers, 1):
                    trainer.start()
                    while len(engine._scheduler._weight_changes) < queued:
                        time.sleep(0.001)
                seen.add("changed")

        changes = (fail, lambda: shrink_weights(model), lambda: seen.add("last"))
        trainers = [threading.Thread(target=change, args=(engine, each)) for each in changes]
        model.register_forward_pre_hook(change_thrice, with_kwargs=True)
        tokens, end = await collect(engine, ids, 20)
        for trainer in trainers:
            trainer.join()
        assert (len(tokens), end.reason, sorted(outcomes, key=str)) == (20, "length", [None, None, "boom"])
        versions = [token.weights_version for token in tokens]
        assert seen == {"changed", "last"}
        assert set(versions) == {0, 3}
        changed = versions.index(3)
        check(model, [*ids, *ids_of(tokens[:changed])], tokens[changed:])

    run(model, use)


def test_a_change_of_weights_that_can_not_be_waited_for_is_refused():
    model = make_tiny_model("qwen3")

    async def use(engine):
        with pytest.raises(EngineError, match="own thread"):
            engine.weights_changed(lambda: engine.weights_changed(lambda: shrink_weights(model)))
        await engine.aclose()
        with pytest.raises(EngineError, match="closed"):
            engine.weights_changed(lambda: shrink_weights(model))

    run(model, use)


POSITION = 4 * 2 * 2 * 12 * 4  # bytes: layers, keys and values, heads, width, float32


class MemoryWatch:
    """Notes what places and kept prefixes take at each pass, the first of which waits until all requests are there."""

    def __init__(self, model, engine) -> None:
        self.engine = engine
        self.taken: list[int] = []
        self.may_start = threading.Event()
        model.register_forward_pre_hook(self.note)

    def note(self, *_) -> None:
        assert self.may_start.wait(60)
        decoder = self.engine._decoder
        places = sum(layer.keys.nbytes + layer.values.nbytes for layer in decoder._cache.layers)
        assert places == decoder.allocated
        self.taken.append(places + self.engine._scheduler._batch.prefixes.size)


def test_memory_is_filled_and_never_exceeded():
    """More conversations than there is room for wait, or give up their places and are computed anew."""
    model, memory = make_tiny_model("qwen3"), 160 * POSITION
    prompts = [prompt(seed, 5 + 9 * (seed % 4)) for seed in range(12)]

    async def use(engine):
        watch = MemoryWatch(model, engine)
        waiting = [asyncio.create_task(collect(engine, ids, 70 + 5 * (len(ids) % 5))) for ids in prompts]
        await until(lambda: engine.occupied == len(prompts))
        watch.may_start.set()
        outcomes = await asyncio.gather(*waiting)
        batch = engine._scheduler._batch
        assert batch._admissions > len(prompts), "no conversation had to give up its place"
        assert memory // 2 < max(watch.taken) <= memory
        for seed in range(20, 23):
            await collect(engine, prompt(seed, 10), 5)
        assert len(batch.prefixes) == 2, "places didn't give back what they needed before"
        assert max(watch.taken) <= memory
        return outcomes

    for ids, (tokens, _) in zip(prompts, run(model, use, kv_memory=memory), strict=True):
        assert len(tokens) == 70 + 5 * (len(ids) % 5)
        check(shared_tiny_model("qwen3"), ids, tokens)


def test_a_state_takes_memory_too():
    model = make_tiny_model("lfm2")

    async def use(engine):
        outcomes = await asyncio.gather(*(collect(engine, prompt(seed, 30), 30) for seed in range(6)))
        for seed, (tokens, _) in enumerate(outcomes):
            check(model, prompt(seed, 30), tokens)
        batch = engine._scheduler._batch
        assert 0 < batch.prefixes.size + engine._decoder.allocated <= memory

    memory = TransformersEngine(model)._decoder.measure([70] * 3)
    run(model, use, kv_memory=memory)


def test_what_never_fits_is_refused_with_both_numbers_and_what_may_end_is_cut():
    async def use(engine):
        with pytest.raises(EngineError, match=f"kv_memory: 101 ids need {101 * POSITION:,} .* {100 * POSITION:,}$"):
            await collect(engine, prompt(1, 51), 50)
        assert (await collect(engine, prompt(1, 50), 50))[1].reason == "length"
        tokens, end = await collect(engine, prompt(1, 50), None)
        assert (end.reason, len(tokens) > 40) == ("context", True)

    run(shared_tiny_model("qwen3"), use, kv_memory=100 * POSITION)


class Failing:
    """Makes the model fail where an id occurs in what it is fed."""

    def __init__(self, model, token: int, fail) -> None:
        self.token, self.fail = token, fail
        model.register_forward_hook(self.hook, with_kwargs=True)

    def hook(self, _module, _arguments, inputs, output):
        if (inputs["input_ids"] == self.token).any():
            output.logits = self.fail(output.logits)
        return output


def run_out_of_memory(logits):
    raise torch.OutOfMemoryError("tried to allocate 7 GiB\nmore")


FAILURES = {
    "not finite": (lambda logits: logits * float("nan"), "logits are not finite"),
    "memory": (run_out_of_memory, r"out of memory on cpu: .*kv_memory or max_batch \(tried to allocate 7 GiB\)$"),
    "machine": (lambda logits: torch.empty(2**60), "out of memory on cpu"),
    "exit": (lambda logits: sys.exit("gone"), "the engine failed: gone"),
    "any": (lambda logits: logits.reshape(7, 7, 7), "the engine failed: shape"),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_consumer_gets_a_failure_and_the_next_request_an_answer(name, temperature):
    model = make_tiny_model("qwen3")
    fail, message = FAILURES[name]
    Failing(model, 301, fail)

    async def use(engine):
        failing = (collect(engine, [*prompt(seed, 9), 301], 5, temperature=temperature) for seed in range(3))
        for outcome in await asyncio.gather(*failing, return_exceptions=True):
            with pytest.raises(EngineError, match=message):
                raise outcome
        tokens, _ = await collect(engine, prompt(1, 9), 5)
        check(model, prompt(1, 9), tokens)

    run(model, use, max_batch=2)


def test_a_model_in_training_mode_is_refused():
    model = make_tiny_model("qwen3").train()

    async def use(engine):
        assert len((await collect(engine, [1, 2], 3))[0]) == 3
        model.train()
        with pytest.raises(EngineError, match="training mode"):
            await collect(engine, [1, 2], 3)

    run(model, use)


@pytest.mark.parametrize("family", ["mamba", "bamba"])
def test_other_families_are_refused_by_name(family):
    model = make_tiny_model(family)
    with pytest.raises(EngineError, match=f"{type(model).__name__} .* is not among the families"):
        TransformersEngine(model)


@pytest.mark.parametrize("make", [lambda: None, lambda: torch.nn.Linear(2, 2), lambda: make_tiny_model("qwen3").model])
def test_what_is_no_language_model_is_refused(make):
    with pytest.raises(EngineError, match="is not a causal language model of transformers"):
        TransformersEngine(make())


def test_a_model_without_weights_is_refused():
    with pytest.raises(EngineError, match=r"Qwen3ForCausalLM \(qwen3\) has no weights"):
        TransformersEngine(make_tiny_model("qwen3").to("meta"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "rope_type 'dynamic'"),
        ({"layer_types": ["chunked_attention"] * 4, "attention_chunk_size": 16}, "one token: KeyError.*chunked"),
        ({"attn_implementation": "flex_attention"}, "flex_attention attention is not run: .*'sdpa'"),
    ],
)
def test_what_a_model_computes_otherwise_is_refused_by_name(changes, message):
    with pytest.raises(EngineError, match=f"Qwen3ForCausalLM .*{message}"):
        TransformersEngine(make_tiny_model("qwen3", **changes))


@pytest.mark.parametrize("settings", [{"context_length": 1025}, {"max_batch": 0}, {"kv_memory": -1}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(EngineError, match=next(iter(settings))):
        TransformersEngine(shared_tiny_model("qwen3"), **settings)


def test_a_cancelled_generation_releases_its_place():
    async def use(engine):
        generation = engine.generate(prompt(1, 30), sampling=Sampling(), stop_ids=())
        await anext(generation)
        assert engine.occupied == 1
        await generation.aclose()
        await until(lambda: engine.occupied == 0)

    run(shared_tiny_model("qwen3"), use)
