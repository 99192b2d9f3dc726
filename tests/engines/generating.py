"""Using an engine in a test: prompts, what is sampled from them, and a loop to do it in."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
from engine_checkpoints import SMALL, random_tensors

from ferrule.engines import Engine, Finished, NumpyEngine, Sampled, Sampling
from ferrule.engines.config import read_config

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
