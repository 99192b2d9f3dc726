"""One tool call and an answer, everything included, against a loop written by hand with pydantic.

    python benchmarks/overhead.py [--json]

Both run in this process, in turns: a scripted model asks for one tool and answers from its result. Ours goes through
the registry, validation, the policy, the executor and a journal on disk; the loop by hand validates and calls.
CPU time, median over rounds. The test suite limits the function calls of a run, which don't depend on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import pstats
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ferrule.agent.pipeline import Pipeline, model
from ferrule.conversation import ToolCall
from ferrule.execution import FileJournal
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.decorator import tool

ROUNDS, RUNS = 30, 100
RATIO = 16.0
"""The most that a run with an async call may take, in runs of the loop by hand."""
CALLS = 165
"""The most function calls of such a run, those of built-in functions included."""


@tool
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
def double_in_thread(number: int) -> int:
    """Double a number."""
    return 2 * number


TOOLS = {"async": double, "sync": double_in_thread}


async def by_hand(runs: int) -> float:
    """CPU seconds of `runs` runs of a loop that validates with pydantic and calls."""
    arguments = TypeAdapter(dict[str, int])
    script = [{"tool": "double", "arguments": '{"number": 7}'}, {"text": "It is 14."}]
    start = time.process_time()
    for _ in range(runs):
        messages: list[dict[str, object]] = [{"role": "user", "content": "Double 7."}]
        for reply in script:
            messages.append({"role": "assistant", **reply})
            if "tool" not in reply:
                break
            result = await double.function(**arguments.validate_json(reply["arguments"]))
            messages.append({"role": "tool", "content": json.dumps(result)})
    return time.process_time() - start


def make_pipelines(kind: str, runs: int, journal: FileJournal) -> list[Pipeline[None]]:
    """A pipeline for each run, which asks for one call."""
    chosen = TOOLS[kind]
    call = ToolCall("call_1", chosen.name, '{"number": 7}')
    return [
        model(ScriptedModel(call, "It is 14.")).chat("Double 7.").using(chosen, journal=journal) for _ in range(runs)
    ]


async def by_ferrule(kind: str, runs: int, journal: FileJournal) -> float:
    """CPU seconds of `runs` runs of a pipeline."""
    pipelines = make_pipelines(kind, runs, journal)
    start = time.process_time()
    for pipeline in pipelines:
        await pipeline.run()
    return time.process_time() - start


async def count_calls(journal: FileJournal) -> int:
    """The function calls of one run with an async call, built-in functions included."""
    first, second = make_pipelines("async", 2, journal)
    await first.run()
    profile = cProfile.Profile()
    gc.collect()
    gc.disable()  # what a collection finalizes is none of the run's
    try:
        with profile:
            await second.run()
    finally:
        gc.enable()
    stats: Any = pstats.Stats(profile)
    return int(stats.total_calls)


async def measure() -> tuple[dict[str, float], int]:
    """Medians in microseconds of CPU a run, and the calls of one."""
    times: dict[str, list[float]] = {"by hand": [], "async": [], "sync": []}
    with tempfile.TemporaryDirectory() as folder:
        journal = FileJournal(Path(folder) / "journal.jsonl")
        for kind in TOOLS:
            await by_ferrule(kind, 5, journal)
        for _ in range(ROUNDS):
            times["by hand"].append(await by_hand(RUNS))
            for kind in TOOLS:
                times[kind].append(await by_ferrule(kind, RUNS, journal))
        calls = await count_calls(journal)
    return {name: statistics.median(found) / RUNS * 1e6 for name, found in times.items()}, calls


def main() -> None:
    """Measure and print; exit status 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    medians, calls = asyncio.run(measure())
    ratios = {kind: medians[kind] / medians["by hand"] for kind in TOOLS}
    if as_json:
        print(json.dumps({"microseconds": medians, "ratios": ratios, "ratio_limit": RATIO, "calls": calls}))
    else:
        print(f"loop by hand        {medians['by hand']:7.1f} µs of CPU a run")
        for kind, note in (("async", f"at most {RATIO:.0f}"), ("sync", "in a thread")):
            print(f"ferrule, {kind:5} tool {medians[kind]:8.1f} µs, {ratios[kind]:5.1f} times as much ({note})")
        print(f"function calls of a run with an async tool: {calls} (at most {CALLS})")
    sys.exit(ratios["async"] > RATIO or calls > CALLS)


if __name__ == "__main__":
    main()
