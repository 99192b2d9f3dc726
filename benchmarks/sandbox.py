"""The Python sandbox against a fresh interpreter: what a run, eight at a time, hostile answers and a start cost.

    python benchmarks/sandbox.py [--json] [--rounds 60]

Everything is measured in this one process, the two sides of a row in turns, as wall clock from the call to its result;
figures are medians. "python -c" is this interpreter, started as a program would start it. Runs follow each other at
once. The sandbox is in the best tier of the machine; numpy and pandas are loaded but for the bare run.
"""

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "sandbox"))

from hostile_answers import ANSWERS

from ferrule.sandbox.python import PythonSandbox
from ferrule.sandbox.python.parent.answer import parse_answer
from ferrule.sandbox.python.wire.frames import WireError
from shared.rows import Row, print_rows

BARE = "None"
TABLE = """
import numpy as np, pandas as pd
float(pd.DataFrame({"a": np.arange(100), "b": 1.5}).groupby("b")["a"].sum().iloc[0])
"""
FLOOD = "import os\nfor _ in range(1600): os.write(1, b'x' * 65536)"
WORK = """
import time, pandas as pd
begin = time.process_time()
frame = pd.DataFrame({"a": range(2000), "b": [1, 2] * 1000})
while time.process_time() - begin < 0.05: frame.groupby("b").sum()
"""
LARGEST = 1024 * 1024


def fresh(code: str) -> float:
    """Seconds of a fresh interpreter with some code."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


async def warm(sandbox: PythonSandbox, code: str) -> float:
    """Seconds of one run, which has to go well."""
    begin = time.perf_counter()
    run = await sandbox.run(code)
    assert run.is_ok, run.error
    return time.perf_counter() - begin


async def against_fresh(sandbox: PythonSandbox, code: str, rounds: int) -> tuple[float, float]:
    """Medians of a fresh interpreter and of a warm run, in turns."""
    theirs, ours = [], []
    for turn in range(rounds):
        ours += [await warm(sandbox, code) for _ in range(3)]
        if turn % 3 == 0:
            theirs.append(fresh(code))
    return statistics.median(theirs), statistics.median(ours)


async def spread(sandbox: PythonSandbox, rounds: int) -> float:
    """The 95th percentile over the median, the best of three series."""
    series = [[await warm(sandbox, TABLE) for _ in range(3 * rounds)] for _ in range(3)]
    return min(statistics.quantiles(times, n=20)[-1] / statistics.median(times) for times in series)


async def at_a_time(sandbox: PythonSandbox) -> float:
    """Throughput of eight runs at a time over that of one at a time, of 50 ms of CPU each."""
    gains = []
    for _ in range(10):
        one = sum([await warm(sandbox, WORK) for _ in range(8)])
        begin = time.perf_counter()
        await asyncio.gather(*(warm(sandbox, WORK) for _ in range(8)))
        gains.append(one / (time.perf_counter() - begin))
    return statistics.median(gains)


async def flood(sandbox: PythonSandbox) -> tuple[float, float]:
    """Milliseconds until 100 MB of output are ended at the limit, and megabytes that the parent grew by."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        run = await sandbox.run(FLOOD)
        times.append(time.perf_counter() - begin)
        assert run.error is not None
        assert run.error.kind == "output"
        assert len(run.stdout) == LARGEST
    return statistics.median(times) * 1000, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def worst_answer() -> tuple[float, str]:
    """Milliseconds of processor time for reading the worst of the hostile answers, of a megabyte each, and its name."""
    times: dict[str, float] = {}
    for name, make in ANSWERS.items():
        head, data = make()
        tries = []
        for _ in range(5):
            begin = time.process_time()
            with suppress(WireError):
                parse_answer(head, data)
            tries.append(time.process_time() - begin)
        times[name] = statistics.median(tries) * 1000
    worst = max(times, key=lambda name: times[name])
    return times[worst], worst


async def first_use() -> tuple[float, float]:
    """Medians of importing pandas in a fresh interpreter, and of a sandbox until its first run is done."""
    importing, starting = [], []
    for _ in range(7):
        importing.append(fresh("import pandas"))
        begin = time.perf_counter()
        async with PythonSandbox() as sandbox:
            await warm(sandbox, BARE)
            starting.append(time.perf_counter() - begin)
    return statistics.median(importing), statistics.median(starting)


def compare(what: str, seconds: tuple[float, float], at_least: float) -> Row:
    """The row of a warm run's speed to that of a fresh interpreter; `seconds` are of the fresh and the warm one."""
    fresh, warm_run = seconds
    both = f"{warm_run * 1e3:.1f} ms, python -c {fresh * 1e3:.1f} ms"
    return Row(what, fresh / warm_run, "× faster", at_least, both, is_least=True)


async def measure(rounds: int) -> list[Row]:
    """The rows of the table."""
    importing, starting = await first_use()
    async with PythonSandbox(packages=()) as sandbox:
        bare = await against_fresh(sandbox, BARE, rounds)
    async with PythonSandbox() as sandbox:
        for _ in range(10):
            await warm(sandbox, TABLE)
        mb = await flood(sandbox)
        table = await against_fresh(sandbox, TABLE, rounds)
        p95, gain = await spread(sandbox, rounds), await at_a_time(sandbox)
    decoding, worst = worst_answer()
    return [
        compare("warm run, bare", bare, 2.5),
        compare("warm run, pandas", table, 25),
        Row("warm run, pandas", table[1] * 1e3, "ms", 10, "median"),
        Row("95th percentile", p95, "× its median", 2.5, "best of three series"),
        Row("8 at a time", gain, "× the throughput of 1", 1.6, "50 ms of pandas each", is_least=True),
        Row("100 MB of output", mb[0], "ms", 50, "until it is ended at the limit"),
        Row("100 MB of output", mb[1], "MB in the parent", 10, "nine times"),
        Row("hostile answer", decoding, "ms of CPU", 100, f"of a megabyte, the worst of {len(ANSWERS)}: {worst}"),
        Row("first use", starting / importing, "× importing pandas", 1.5, f"{starting:.2f} s, {importing:.2f} s"),
    ]


def main() -> None:
    """Measure and print; exit status 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    rows = asyncio.run(measure(options.rounds))
    print_rows(rows, as_json=options.json)


if __name__ == "__main__":
    main()
