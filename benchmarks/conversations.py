"""Eight conversations that all call a tool of half a second, against one of them alone.

    python benchmarks/conversations.py [--model FOLDER] [--json]

The embedded model writes every token; its calculator takes half a second more than it needs. By the clock, the
median over rounds, the two in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Annotated

from ferrule.agent.pipeline import model
from ferrule.arithmetic.evaluate import calculate
from ferrule.embedded import load_embedded_model
from ferrule.models.checkpoints.loading import load_local_model
from ferrule.models.local import LocalModel
from ferrule.tools.decorator import tool

ROUNDS, TOGETHER, SECONDS, LIMIT = 5, 8, 0.5, 1.15


@tool
async def calculator(expression: Annotated[str, "What to compute"]) -> str:
    """Compute, slowly."""
    await asyncio.sleep(SECONDS)
    return calculate(expression)


async def seconds_for(local: LocalModel, questions: list[str]) -> float:
    """Seconds by the clock until all of them are answered."""
    start = time.perf_counter()
    pipelines = [model(local).chat(question).using(calculator).with_(max_tokens=80) for question in questions]
    runs = await asyncio.gather(*(pipeline.run() for pipeline in pipelines))
    called = [any(message.role == "tool" for message in run.conversation.messages) for run in runs]
    if not all(called):
        raise SystemExit(f"{called.count(False)} of {len(called)} conversations did not call the tool")
    return time.perf_counter() - start


async def measure(folder: Path | None) -> dict[str, float]:
    """Median seconds of one and of eight, and their ratio."""
    async with load_local_model(folder) if folder else load_embedded_model() as local:
        questions = [f"What is {1200 + 37 * number} * {89 + number}?" for number in range(TOGETHER)]
        await seconds_for(local, questions)
        alone, together = [], []
        for _ in range(ROUNDS):
            alone.append(await seconds_for(local, questions[:1]))
            together.append(await seconds_for(local, questions))
    one, eight = statistics.median(alone), statistics.median(together)
    return {"one": one, "eight": eight, "ratio": eight / one}


def main() -> None:
    """Measure and print; exit status 1 where the limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments.model))
    if arguments.json:
        print(json.dumps({**found, "limit": LIMIT}))
    else:
        print(f"one conversation     {found['one']:.3f} s")
        print(f"eight at once        {found['eight']:.3f} s, {found['ratio']:.2f} times one (at most {LIMIT})")
    sys.exit(found["ratio"] > LIMIT)


if __name__ == "__main__":
    main()
