"""Three tools of 0.1, 0.2 and 0.3 seconds that are called together, against the longest of them.

    python benchmarks/parallel_tools.py [--json]

A scripted model asks for the three in one message and answers from their results. Once with async tools, once with
sync ones, which block a thread each. By the clock, for the whole run, the two in turns: the median over rounds, of
what the run takes over what its longest tool took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time

from ferrule.agent.pipeline import model
from ferrule.conversation import ToolCall
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.decorator import Tool, tool

ROUNDS, SECONDS, LIMIT = 15, (0.1, 0.2, 0.3), 10.0
took: list[float] = []


@tool
async def sleep(seconds: float) -> str:
    """Wait on the event loop."""
    start = time.perf_counter()
    await asyncio.sleep(seconds)
    took.append(time.perf_counter() - start)
    return f"{seconds} s"


@tool
def block(seconds: float) -> str:
    """Block a thread."""
    start = time.perf_counter()
    time.sleep(seconds)
    took.append(time.perf_counter() - start)
    return f"{seconds} s"


TOOLS = {"async": sleep, "sync": block}


async def milliseconds_over(chosen: Tool) -> float:
    """What a run takes over its longest tool, in milliseconds. Raises `SystemExit` for results in another order."""
    calls = [
        ToolCall(f"call_{number}", chosen.name, json.dumps({"seconds": each})) for number, each in enumerate(SECONDS)
    ]
    pipeline = model(ScriptedModel(calls, "Done.")).chat("Wait.").using(chosen)
    took.clear()
    start = time.perf_counter()
    run = await pipeline.run()
    over = time.perf_counter() - start - max(took)
    results = [message.result.text for message in run.conversation.messages if message.role == "tool"]
    if results != [f"{each} s" for each in SECONDS]:
        raise SystemExit(f"the results are {results}")
    return over * 1000


async def measure() -> dict[str, dict[str, float]]:
    """Of both kinds, the median and the worst."""
    found: dict[str, list[float]] = {kind: [] for kind in TOOLS}
    for _ in range(ROUNDS):
        for kind, figures in found.items():
            figures.append(await milliseconds_over(TOOLS[kind]))
    return {kind: {"median": statistics.median(each), "worst": max(each)} for kind, each in found.items()}


def main() -> int:
    """Measure, print, and give 1 where the limit is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    found = asyncio.run(measure())
    if as_json:
        print(json.dumps({"milliseconds_over": found, "limit": LIMIT}))
    else:
        for kind, over in found.items():
            median, worst = over["median"], over["worst"]
            print(f"{kind:5} tools  {median:5.2f} ms over the longest (at most {LIMIT:.0f}), {worst:.2f} at worst")
    return int(any(over["median"] > LIMIT for over in found.values()))


if __name__ == "__main__":
    sys.exit(main())
