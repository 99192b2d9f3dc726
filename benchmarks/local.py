"""Times the engine over transformers' models against transformers itself: the same random Qwen 3, in turns.

    python benchmarks/local.py [--rounds 3] [--json]

Needs the `local` extra. The model has width 512, 8 layers (8 query heads, 4 of keys and values, of 64; inner width
1,536), a vocabulary of 32,768 and a context of 4,096; float32, one thread, greedy, without stop ids. The engine's
figures hold all that a caller pays for: scheduler, sampling, log-probabilities, delivery to asyncio. Each figure is the
median over the rounds, in which the two sides take turns: by the clock where somebody waits for a tool, else in CPU
seconds, with the clock's beside it. Constraints are measured without a model, with made vocabularies: logits that
prefer the ids of a whole call, and what the engine does with them.
"""

# ruff: noqa: E402 - the libraries read their thread counts when they are imported
import argparse
import asyncio
import inspect
import itertools
import json
import logging
import os
import statistics
import time
import warnings
from collections.abc import Sequence
from typing import Any

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np
import torch
import transformers

from ferrule.conversation import ToolCall
from ferrule.dialects import get_dialect
from ferrule.dialects.grammar import LiteralText
from ferrule.dialects.value_grammar.schema_values import lower_values
from ferrule.engines import Finished, Sampling
from ferrule.engines.constraint_compiler import ConstraintCompiler
from ferrule.engines.sampling import TokenSampler
from ferrule.engines.torch_sampling import sample_ids
from ferrule.engines.transformers_engine import TransformersEngine
from ferrule.toolspec import ToolSpec
from shared.made_vocabulary import MadeVocabulary
from shared.rows import Row, print_rows

VOCABULARY = 32_768
CONTEXT, RESULT = 2_000, 60
BATCH, PROMPT, NEW = 16, 64, 256
CALL, TOOL = 12, 0.5
STEPS, STEPS_CONTEXT = 64, 256
MOST_MORE = {272: 20, 151_936: 300}
"""By size of vocabulary: microseconds that a constraint may add to a step."""
TEXT = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "array", "items": TEXT}, "text": TEXT, "urgent": {"type": "boolean"}},
    "required": ["to", "text"],
}
ARGUMENTS = {
    "to": ["ann@example.org", "bo@example.org"],
    "text": "The meeting is moved to Thursday, half past ten, in the small room next to the library.",
    "urgent": False,
}
Seconds = tuple[float, float]
"""CPU and clock."""
Pair = tuple[Seconds, Seconds]
"""Ours and theirs, of one round."""


class Timer:
    """CPU and clock seconds of what runs inside `with`."""

    def __enter__(self) -> "Timer":
        self._start = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds: Seconds = (time.process_time() - self._start[0], time.perf_counter() - self._start[1])


def make_model() -> Any:
    """A random Qwen 3, the same in each run."""
    config = transformers.Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=512,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=64,
        intermediate_size=1536,
        max_position_embeddings=4096,
        eos_token_id=None,
    )
    torch.manual_seed(0)
    model = transformers.Qwen3ForCausalLM(config).to(torch.float32).eval().requires_grad_(False)
    model.generation_config.eos_token_id = None
    return model


def draw_prompts(generator: np.random.Generator, count: int, length: int) -> list[list[int]]:
    """Random ids, which share no prefix."""
    return generator.integers(0, VOCABULARY, (count, length)).tolist()


async def sample(engine: TransformersEngine, ids: Sequence[int], tokens: int) -> list[int]:
    """Run one generation to its end; returns the prompt and what was sampled."""
    made = list(ids)
    async for item in engine.generate(ids, sampling=Sampling(max_tokens=tokens), stop_ids=()):
        if not isinstance(item, Finished):
            made += [token.id for token in item]
    assert len(made) == len(ids) + tokens
    return made


async def settle(engine: TransformersEngine) -> None:
    """Let the engine put away what the last turn left: a turn doesn't follow at once on a conversation's end."""
    await asyncio.sleep(0.05)
    while engine.occupied:
        await asyncio.sleep(0.001)


async def measure_resume(model: Any, rounds: int) -> list[Pair]:
    """The first token after a result, and after a prompt of the same ids of which nothing is kept."""
    generator = np.random.default_rng(1)
    pairs = []
    async with TransformersEngine(model) as engine:
        for _ in range(rounds + 1):
            before, other = draw_prompts(generator, 2, CONTEXT - 1)
            result = draw_prompts(generator, 1, RESULT)[0]
            resumed = [*await sample(engine, before, 1), *result]
            await settle(engine)
            with Timer() as ours:
                await sample(engine, resumed, 1)
            await settle(engine)
            with Timer() as theirs:
                await sample(engine, [*other, 0, *result], 1)
            await settle(engine)
            pairs.append((ours.seconds, theirs.seconds))
    return pairs[1:]


async def measure_tools(model: Any, rounds: int) -> list[Pair]:
    """Conversations at once that each call a tool, and the same without, plus the tool's time."""

    async def hold(ids: list[int], wait: float) -> None:
        called = await sample(engine, ids, CALL)
        await asyncio.sleep(wait)
        await sample(engine, called + ids[:RESULT], CALL)

    generator = np.random.default_rng(2)
    pairs = []
    async with TransformersEngine(model) as engine:
        for _ in range(rounds + 1):
            taken = []
            for wait in (TOOL, 0.0):
                prompts = draw_prompts(generator, BATCH, PROMPT)
                with Timer() as timer:
                    await asyncio.gather(*(hold(ids, wait) for ids in prompts))
                taken.append(timer.seconds)
                await settle(engine)
            with_tools, without = taken
            pairs.append((with_tools, (without[0], without[1] + TOOL)))
    return pairs[1:]


async def measure_throughput(model: Any, rounds: int) -> list[Pair]:
    """A batch by the engine and by `generate`."""
    generator = np.random.default_rng(3)
    pairs = []
    async with TransformersEngine(model) as engine:
        for new in (8, *[NEW] * rounds):
            prompts = draw_prompts(generator, BATCH, PROMPT)
            with Timer() as ours:
                made = await asyncio.gather(*(sample(engine, ids, new) for ids in prompts))
            await settle(engine)
            tensor = torch.tensor(prompts)
            with Timer() as theirs, torch.inference_mode():
                output = model.generate(
                    tensor, attention_mask=torch.ones_like(tensor), max_new_tokens=new, do_sample=False, pad_token_id=0
                )
            alike = sum(row == output[at].tolist() for at, row in enumerate(made))
            assert alike >= BATCH // 2, f"only {alike} of {BATCH} rows are the same"
            pairs.append((ours.seconds, theirs.seconds))
    return pairs[1:]


def measure_generate_batch(model: Any) -> Seconds | None:
    """The same by transformers' own continuous batching, which is made for a GPU; None where it doesn't run."""
    prompts = draw_prompts(np.random.default_rng(3), BATCH, PROMPT)
    settings = transformers.GenerationConfig(max_new_tokens=NEW, do_sample=False, eos_token_id=-1, pad_token_id=0)
    implementation = model.config._attn_implementation
    try:
        with Timer() as timer:
            made = model.generate_batch(inputs=prompts, generation_config=settings, progress_bar=False)
    except Exception:  # noqa: BLE001 - it is measured where it runs
        return None
    finally:
        model.set_attn_implementation(implementation)
    is_whole = len(made) == BATCH and all(len(each.generated_tokens) == NEW for each in made.values())
    return timer.seconds if is_whole else None


async def measure_step(model: Any, rounds: int) -> list[Pair]:
    """One conversation, a token after the other, by a coroutine; and forward passes with a cache on the same ids."""
    generator = np.random.default_rng(4)
    pairs = []
    async with TransformersEngine(model) as engine:
        for _ in range(rounds + 1):
            prompt = draw_prompts(generator, 1, STEPS_CONTEXT)[0]
            generation = engine.generate(prompt, sampling=Sampling(max_tokens=STEPS + 1), stop_ids=())
            sampled: list[int] = []
            first = await anext(generation)
            assert not isinstance(first, Finished)
            sampled += [token.id for token in first]
            with Timer() as ours:
                async for item in generation:
                    if not isinstance(item, Finished):
                        sampled += [token.id for token in item]
            await settle(engine)
            pairs.append((ours.seconds, time_forward(model, prompt, sampled[:-1])))
    return pairs[1:]


def time_forward(model: Any, prompt: list[int], sampled: list[int]) -> Seconds:
    """Forward passes of one id each, after the prompt."""
    with torch.inference_mode():
        name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
        settings = {name: transformers.DynamicCache(config=model.config), "use_cache": True, "logits_to_keep": 1}
        model(input_ids=torch.tensor([prompt]), **settings)
        with Timer() as timer:
            for token in sampled:
                model(input_ids=torch.tensor([[token]]), **settings)
    return timer.seconds


def measure_constrained(size: int, rounds: int) -> tuple[float, float, float]:
    """Milliseconds of CPU: a step of a forced call, the same unconstrained, and the first mask with its grammar.

    A step is what the engine does after its model: the mask, the choice among the legal ids, going on.
    """
    vocabulary, hermes = MadeVocabulary(size), get_dialect("hermes")
    spec = ToolSpec("send_message", "", SCHEMA)
    call = hermes.call(ToolCall("call_1", spec.name, json.dumps(ARGUMENTS)))
    stop = vocabulary.control["<|im_end|>"]
    ids = [*vocabulary.encode(call), stop]
    compiler = ConstraintCompiler(vocabulary)
    compiler.compile(LiteralText("a"), (stop,), 4096).mask()  # builds the index
    noise = torch.from_numpy(np.random.default_rng(0).normal(0, 1, (1, size)).astype(np.float32))
    firsts, steps, free = [], [], []
    for _ in range(5 * rounds):
        offered = hermes.grammar((spec,), spec.name, opens="<|im_start|>assistant\n")
        assert offered is not None
        with Timer() as timer:
            constraint = compiler.compile(lower_values(offered)[0], (stop,), len(ids) + 256)
            constraint.mask()
        firsts.append(timer.seconds[0])
        steps.append(time_choices(noise, ids, TokenSampler(Sampling(), constraint)))
        free.append(time_choices(noise, ids, TokenSampler(Sampling())))
    step, unconstrained, first = (1000 * statistics.median(each) for each in (steps, free, firsts))
    return step, unconstrained, first


def time_choices(noise: torch.Tensor, ids: list[int], sampler: TokenSampler) -> float:
    """Seconds of CPU a step, the mean over a call, by logits that prefer its ids."""
    taken = 0.0
    for token in ids:
        logits = noise.clone()
        logits[0, token] = 50
        with torch.inference_mode(), Timer() as timer:
            (chosen,), _ = sample_ids(logits, [sampler], logits.shape[1])
        taken += timer.seconds[0]
        assert sampler.failure is None
        assert chosen == token
    return taken / len(ids)


def compare(pairs: Sequence[Pair], clock: int, is_speed: bool) -> tuple[float, str]:
    """The median over the rounds of ours / theirs, or of theirs / ours if it is of speeds; and the other clock's."""

    def ratio(which: int) -> float:
        ratios = [ours[which] / theirs[which] for ours, theirs in pairs]
        return statistics.median(1 / each if is_speed else each for each in ratios)

    ours, theirs = (1000 * statistics.median(pair[side][clock] for pair in pairs) for side in (0, 1))
    name, other = ("CPU", "clock") if clock == 0 else ("clock", "CPU")
    return ratio(clock), f"{ours:.1f} ms, {theirs:.1f} ms by the {name}; {other} {ratio(1 - clock):.2f}"


def measure(rounds: int) -> list[Row]:
    """The table's rows."""
    model = make_model()
    resume = compare(asyncio.run(measure_resume(model, rounds)), 0, is_speed=True)
    tools = compare(asyncio.run(measure_tools(model, rounds)), 1, is_speed=False)
    pairs = asyncio.run(measure_throughput(model, rounds))
    speed = compare(pairs, 0, is_speed=True)
    batched = measure_generate_batch(model)
    beside = "generate_batch doesn't run here"
    if batched is not None:
        beside = f"generate_batch {statistics.median(theirs[0] for _, theirs in pairs) / batched[0]:.2f}"
    step = compare(asyncio.run(measure_step(model, rounds)), 0, is_speed=False)
    return [
        Row(
            f"a result of {RESULT} ids at context {CONTEXT}, of the prefill of all", resume[0], "x", 10, resume[1], True
        ),
        Row(f"{BATCH} conversations with a {TOOL} s tool, of those without + {TOOL} s", tools[0], "x", 1.25, tools[1]),
        Row(f"tokens/s at batch {BATCH}, of generate", speed[0], "x", 0.9, f"{speed[1]}; {beside}", True),
        Row("a token at batch 1, of a forward pass with a cache", step[0], "x", 1.1, f"{step[1]}, {STEPS} tokens"),
        *itertools.chain.from_iterable(describe_constrained(size, limit, rounds) for size, limit in MOST_MORE.items()),
    ]


def describe_constrained(size: int, limit: float, rounds: int) -> list[Row]:
    """What a constraint costs with a vocabulary of `size`: a step at most `limit` microseconds more."""
    step, free, first = measure_constrained(size, rounds)
    return [
        Row(
            f"what a constraint adds to a step, {size:,} ids",
            1000 * (step - free),
            "µs",
            limit,
            f"free {1000 * free:.0f} µs",
        ),
        Row(f"a grammar and its first mask, {size:,} ids", first, "ms", 20, "the index is built"),
    ]


def main() -> None:
    """Print the table; exit status 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description="Times the engine over transformers' models.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    print_rows(measure(arguments.rounds), as_json=arguments.json)


if __name__ == "__main__":
    main()
