"""Times the numpy engine against transformers' `generate`, and against itself without its caches.

    python benchmarks/engine.py [--model FOLDER] [--rounds 5] [--json]

Needs the `local` extra. Without `--model` it takes the embedded model, or, where there is none, random weights of its
shape. Both sides run in this process, in turns, on one thread, float32, greedy, without stop ids; the engine's figures
hold everything that a caller pays for: scheduler, sampling, log-probabilities, delivery to asyncio. A figure is the
median over the rounds, in CPU seconds and, because the engine has a thread of its own, in seconds by the clock.
"""

# ruff: noqa: E402 - the libraries read their thread counts when they are imported
import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np
import torch
import transformers

import ferrule
from ferrule.engines import Finished, NumpyEngine, Sampling
from ferrule.engines.config import read_config
from ferrule.engines.decoder import TransformerDecoder
from ferrule.engines.kv_cache import KeyValueCache
from ferrule.engines.weights import fold_weights, read_safetensors

EMBEDDED = Path(ferrule.__file__).parent / "embedded"
PROMPT, NEW = 60, 128
CONTEXT, RESULT = 500, 200
TARGETS: dict[str, float] = {
    "tokens/s, batch 1, against transformers": 3.0,
    "tokens/s, batch 16, against transformers": 1.5,
    "a 200-token result at context 500, against a token at a time": 4.0,
    "second turn of 40 ids, time to first token, of the prefill of all": 0.15,
    "second turn of 60 ids, time to first token, of the prefill of all": 0.15,
}


class Timer:
    """CPU and clock seconds of what runs inside `with`."""

    def __enter__(self) -> "Timer":
        self._start = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.process_time() - self._start[0], time.perf_counter() - self._start[1]


def copy_with_long_context(folder: Path) -> Path:
    """The embedded model, whose context is shorter than what is measured here; what it writes doesn't matter."""
    copied = folder / "model"
    shutil.copytree(EMBEDDED, copied, ignore=shutil.ignore_patterns("*.py", "phrasings", "__pycache__"))
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 2048}))
    return copied


def prompts(generator: np.random.Generator, count: int, length: int) -> list[list[int]]:
    """Random ids that mean nothing and share no prefix."""
    return generator.integers(0, 256, (count, length)).tolist()


async def sample(engine: NumpyEngine, ids: Sequence[int], tokens: int) -> None:
    """Run one generation to its end."""
    async for item in engine.generate(ids, sampling=Sampling(max_tokens=tokens), stop_ids=()):
        assert not isinstance(item, Finished) or item.sampled_tokens == tokens


async def first_token(engine: NumpyEngine, ids: Sequence[int], cached: int) -> Timer:
    """The time from asking to the first token, of a prompt of which `cached` ids are kept."""
    await asyncio.sleep(0.005)  # the engine puts the last turn's keys and values away: turns don't follow at once
    with Timer() as timer:
        generation = engine.generate(ids, sampling=Sampling(max_tokens=1), stop_ids=())
        await anext(generation)
    end = await anext(generation)
    assert isinstance(end, Finished)
    assert end.cached_tokens == cached
    return timer


async def throughput(folder: Path, batch: int, rounds: int) -> tuple[list[Timer], list[Timer]]:
    """Rounds of (engine, transformers) on the same prompts."""
    model = transformers.Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    generator = np.random.default_rng(batch)
    ours, theirs = [], []
    async with NumpyEngine.load(folder, prefix_bytes=0) as engine:
        for round_number in range(rounds + 1):
            ids = prompts(generator, batch, PROMPT)
            with Timer() as timer:
                await asyncio.gather(*(sample(engine, row, NEW) for row in ids))
            ours.append(timer)
            with Timer() as timer, torch.inference_mode():
                tensor = torch.tensor(ids)
                output = model.generate(
                    tensor,
                    attention_mask=torch.ones_like(tensor),
                    max_new_tokens=NEW,
                    do_sample=False,
                    pad_token_id=0,
                )
            assert output.shape[1] == PROMPT + NEW, round_number
            theirs.append(timer)
    return ours[1:], theirs[1:]  # the first round warms both up


async def appended_result(folder: Path, rounds: int) -> tuple[list[Timer], list[Timer]]:
    """A result fed by the engine as one chunk, and by the bare decoder, without an engine's costs, id by id."""
    config = read_config(folder / "config.json")
    decoder = TransformerDecoder(config, fold_weights(config, read_safetensors(folder / "model.safetensors")))
    cache = KeyValueCache(config)
    cache.reserve(1, CONTEXT + RESULT, [])
    generator = np.random.default_rng(0)
    chunks, steps = [], []
    async with NumpyEngine.load(folder) as engine:
        for ids in prompts(generator, rounds + 1, CONTEXT + RESULT):
            await sample(engine, ids[:CONTEXT], 1)
            chunks.append(await first_token(engine, ids, CONTEXT))
            decoder.extend(cache, 0, ids[:CONTEXT], 0, logits=False)
            with Timer() as timer:
                for position in range(CONTEXT, CONTEXT + RESULT):
                    decoder.decode(cache, [ids[position]], [position])
            steps.append(timer)
    return chunks[1:], steps[1:]


async def second_turn(folder: Path, turn: int, rounds: int) -> tuple[list[Timer], list[Timer]]:
    """Time to the first token of a conversation of which all but the last turn is kept, and with nothing kept."""
    generator = np.random.default_rng(0)
    kept, afresh = [], []
    async with NumpyEngine.load(folder) as engine, NumpyEngine.load(folder, prefix_bytes=0) as forgetful:
        for ids in prompts(generator, 3 * rounds + 1, CONTEXT + turn):
            await sample(engine, ids[:CONTEXT], 1)
            kept.append(await first_token(engine, ids, CONTEXT))
            afresh.append(await first_token(forgetful, ids, 0))
    return kept[1:], afresh[1:]


def ratio(ours: list[Timer], theirs: list[Timer], clock: int) -> float:
    """The median over the rounds of theirs / ours; clock 0 is CPU time, 1 the wall's."""
    return statistics.median(b.seconds[clock] / a.seconds[clock] for a, b in zip(ours, theirs, strict=True))


def measure(folder: Path, rounds: int) -> list[dict[str, object]]:
    """The table's rows."""
    runs: list[Callable[[], tuple[list[Timer], list[Timer]]]] = [
        lambda: asyncio.run(throughput(folder, 1, rounds)),
        lambda: asyncio.run(throughput(folder, 16, rounds)),
        lambda: asyncio.run(appended_result(folder, rounds)),
        lambda: asyncio.run(second_turn(folder, 40, rounds)),
        lambda: asyncio.run(second_turn(folder, 60, rounds)),
    ]
    rows = []
    for (name, target), run in zip(TARGETS.items(), runs, strict=True):
        ours, theirs = run()
        ratios = [ratio(ours, theirs, clock) for clock in (0, 1)]
        is_fraction = target < 1
        if is_fraction:
            ratios = [1 / value for value in ratios]
        rows.append(
            {
                "what": name,
                "cpu_ratio": round(ratios[0], 3),
                "clock_ratio": round(ratios[1], 3),
                "target": target,
                "reached": ratios[0] <= target if is_fraction else ratios[0] >= target,
                "ours_ms": round(statistics.median(timer.seconds[0] for timer in ours) * 1000, 2),
                "theirs_ms": round(statistics.median(timer.seconds[0] for timer in theirs) * 1000, 2),
            }
        )
    return rows


def main() -> int:
    """Print the table; exit status 1 where a target is missed."""
    parser = argparse.ArgumentParser(description="Times the numpy engine.")
    parser.add_argument("--model", type=Path, help="a folder with config.json and model.safetensors")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as temporary:
        rows = measure(arguments.model or copy_with_long_context(Path(temporary)), arguments.rounds)
    name = str(arguments.model or "embedded")
    if arguments.json:
        print(json.dumps({"model": name, "rows": rows}, indent=2))
    else:
        print(f"model: {name}, {arguments.rounds} rounds, medians\n")
        print(f"{'what':66} {'CPU':>7} {'clock':>7} {'target':>7} {'ours ms':>9} {'other ms':>9}")
        for row in rows:
            mark = "" if row["reached"] else "  missed"
            print(
                f"{row['what']:66} {row['cpu_ratio']:7.3f} {row['clock_ratio']:7.3f} {row['target']:>7} "
                f"{row['ours_ms']:9.1f} {row['theirs_ms']:9.1f}{mark}"
            )
        print(f"\nbatch 1 and 16: {PROMPT} prompt ids and {NEW} sampled ones each; ratios in one run.")
    return 0 if all(row["reached"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
