"""How often a question in plain words finds a right function, and what the function repository costs.

    python benchmarks/function_search.py [--json] [--runs 5] [--only open|held_out]

100 questions with the paths that answer them (`tests/analysis/function_questions_*.json`) were written by somebody who
had seen neither the repository nor docstrings. One half was open while the repository was made, the other was held out.
A hit@5 is a question of which an accepted path is among the first five found. "curated" counts the questions that have
an accepted path among the curated functions, and searches those alone; "everything" counts all and searches all.

Building starts a sandbox in which every package is imported; "CPU" is that of its two runs, of one after the other, and
of the rest. Opening is measured with numpy imported; "first" is a fresh interpreter with its imports.
"""

import argparse
import asyncio
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ferrule.analysis.functions import FunctionRepository, child
from ferrule.analysis.functions.document import load_curated_functions
from ferrule.analysis.functions.introspection import BATCHES, make_sandbox

ROOT = Path(__file__).parents[1]
HALVES = ("open", "held_out")
BOUNDS = {"build, median": 5.0, "open the cache, median": 0.05, "query, median": 0.001}
"""Seconds at most."""
SHARES = {"curated": 0.8, "everything": 0.6}
"""The least hit@5 of the held-out half."""
FIRST = "import asyncio, pathlib, sys\nfrom ferrule.analysis.functions import FunctionRepository\n"
FIRST += "asyncio.run(FunctionRepository.open(folder=pathlib.Path(sys.argv[1])))"


def find_interval(hits: int, total: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share."""
    z, share = 1.96, hits / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return middle - half, middle + half


def count_hits(repository: FunctionRepository, questions: list[dict[str, Any]], curated_only: bool) -> dict[str, Any]:
    """Hits among the first and the first five, with intervals."""
    ranks = []
    for each in questions:
        found = [one.path for one in repository.search(each["question"], 5, curated_only=curated_only)]
        ranks.append(next((number for number, path in enumerate(found) if path in each["accepted"]), None))
    counts = {"1": sum(rank == 0 for rank in ranks), "5": sum(rank is not None for rank in ranks)}
    return {
        "questions": len(questions),
        **{f"hit@{k}": {"hits": hits, "interval": find_interval(hits, len(questions))} for k, hits in counts.items()},
    }


def measure_search(repository: FunctionRepository, halves: list[str]) -> dict[str, Any]:
    """Hits of each half, among the curated functions and over everything."""
    curated = {one.path for one in load_curated_functions()}
    figures = {}
    for half in halves:
        file = ROOT / "tests" / "analysis" / f"function_questions_{half}.json"
        questions = json.loads(file.read_text(encoding="utf-8"))
        met = [each for each in questions if not curated.isdisjoint(each["accepted"])]
        figures[half] = {
            "curated": count_hits(repository, met, curated_only=True),
            "everything": count_hits(repository, questions, curated_only=False),
        }
    return figures


def measure_cpu() -> float:
    """Seconds of CPU that this process has taken so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measure_introspection() -> float:
    """Seconds of CPU that the runs in the sandbox take."""
    code = Path(child.__file__).read_text(encoding="utf-8") + "\n\ndescribe_all(modules, owners, [])"
    seconds = 0.0
    async with make_sandbox() as sandbox:
        for batch in BATCHES:
            inputs = {"modules": batch.modules.split(), "owners": batch.owners.split()}
            seconds += (await sandbox.run(code, inputs, timeout=120)).usage.cpu
    return seconds


async def measure_times(folder: Path, runs: int) -> tuple[FunctionRepository, dict[str, float]]:
    """Seconds of building, of opening the cache, and of a query: the least of several runs, and medians."""
    building, opening, cpu = [], [], []
    for _ in range(runs):
        for file in folder.glob("*.npz"):
            file.unlink()
        before = measure_cpu()
        start = time.perf_counter()
        repository = await FunctionRepository.open(folder=folder)
        building.append(time.perf_counter() - start)
        cpu.append(measure_cpu() - before + await measure_introspection())
    for _ in range(10 * runs):
        start = time.perf_counter()
        repository = await FunctionRepository.open(folder=folder)
        opening.append(time.perf_counter() - start)
    queries = []
    for number in range(1000):
        start = time.perf_counter()
        repository.search(f"does the average of group {number} differ from that of the others")
        queries.append(time.perf_counter() - start)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST, str(folder)], check=True)
    first = time.perf_counter() - start
    return repository, {
        "build, least": min(building),
        "build, median": statistics.median(building),
        "build, CPU": statistics.median(cpu),
        "open the cache, least": min(opening),
        "open the cache, median": statistics.median(opening),
        "first, with all imports": first,
        "query, median": statistics.median(queries),
        "query, 99th percentile": statistics.quantiles(queries, n=100)[98],
    }


def list_missed(times: dict[str, float], hits: dict[str, Any]) -> list[str]:
    """What isn't as promised."""
    missed = [
        f"{name}: {times[name]:.3g} s, at most {bound} s" for name, bound in BOUNDS.items() if times[name] > bound
    ]
    for scope, figures in hits.get("held_out", {}).items():
        share = figures["hit@5"]["hits"] / figures["questions"]
        if share < SHARES[scope]:
            missed.append(f"hit@5, {scope}: {share:.0%}, at least {SHARES[scope]:.0%}")
    return missed


async def main() -> None:
    """Measure, print, and end with status 1 if a bound isn't kept."""
    parser = argparse.ArgumentParser(description="How often questions find functions, and what that costs.")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--runs", type=int, default=5, help="how often the index is built")
    parser.add_argument("--only", choices=HALVES, help="measure one half of the questions")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repository, times = await measure_times(Path(folder), arguments.runs)
    hits = measure_search(repository, [arguments.only] if arguments.only else list(HALVES))
    if arguments.json:
        print(json.dumps({"functions": len(repository.paths), "seconds": times, "hits": hits}, indent=2))
    else:
        print_figures(len(repository.paths), times, hits)
    if missed := list_missed(times, hits):
        sys.exit(f"not as promised: {'; '.join(missed)}")


def print_figures(functions: int, times: dict[str, float], hits: dict[str, Any]) -> None:
    """Print the figures for people."""
    print(f"{functions:,} functions")
    for name, seconds in times.items():
        print(f"{name:26} {1000 * seconds:9.2f} ms")
    for half, scopes in hits.items():
        for scope, figures in scopes.items():
            for k in ("hit@1", "hit@5"):
                low, high = figures[k]["interval"]
                share = figures[k]["hits"] / figures["questions"]
                of = f"{figures[k]['hits']} of {figures['questions']}"
                print(f"{half:9} {scope:11} {k}  {of:9} {share:4.0%}  (95%: {low:.0%} to {high:.0%})")


if __name__ == "__main__":
    asyncio.run(main())
