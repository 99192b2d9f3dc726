"""One tool call and an answer, everything included, against a loop written by hand with pydantic.

    python benchmarks/overhead.py [--json]

Both run in this process, in turns: a scripted model asks for one tool and answers from its result. Ours goes through
the registry, validation, the policy, the executor and a journal on disk; the loop by hand validates and calls.
CPU time, median over rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from pydantic import TypeAdapter

from ferrule.agent.pipeline import model
from ferrule.conversation import ToolCall
from ferrule.execution import FileJournal
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.decorator import tool

ROUNDS, RUNS = 30, 100
LIMITS = {"async": 100.0, "sync": 250.0}


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


async def by_ferrule(kind: str, runs: int, journal: FileJournal) -> float:
    """CPU seconds of `runs` runs of a pipeline."""
    chosen = TOOLS[kind]
    call = ToolCall("call_1", chosen.name, '{"number": 7}')
    pipelines = [
        model(ScriptedModel(call, "It is 14.")).chat("Double 7.").using(chosen, journal=journal) for _ in range(runs)
    ]
    start = time.process_time()
    for pipeline in pipelines:
        await pipeline.run()
    return time.process_time() - start


async def measure() -> dict[str, float]:
    """Medians in microseconds of CPU a run."""
    times: dict[str, list[float]] = {"by hand": [], "async": [], "sync": []}
    with tempfile.TemporaryDirectory() as folder:
        journal = FileJournal(Path(folder) / "journal.jsonl")
        for kind in TOOLS:
            await by_ferrule(kind, 5, journal)
        for _ in range(ROUNDS):
            times["by hand"].append(await by_hand(RUNS))
            for kind in TOOLS:
                times[kind].append(await by_ferrule(kind, RUNS, journal))
    return {name: statistics.median(found) / RUNS * 1e6 for name, found in times.items()}


def main() -> None:
    """Measure and print; exit status 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    medians = asyncio.run(measure())
    over = {kind: medians[kind] - medians["by hand"] for kind in TOOLS}
    if as_json:
        print(json.dumps({"microseconds": medians, "over": over, "limits": LIMITS}))
    else:
        print(f"loop by hand        {medians['by hand']:7.1f} µs of CPU a run")
        for kind, limit in LIMITS.items():
            print(f"ferrule, {kind:5} tool  {medians[kind]:7.1f} µs, {over[kind]:6.1f} over it (at most {limit:.0f})")
    sys.exit(any(over[kind] > limit for kind, limit in LIMITS.items()))


if __name__ == "__main__":
    main()
