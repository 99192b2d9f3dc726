"""Data of an analysis: reading and profile against `pandas.read_csv`.

    python benchmarks/analysis_data.py [--json] [--megabytes 100]

The profile is that of `read_tables`: encoding, types, missing values, ranges, approximate distinct values, quantiles of
a seeded sample, and the copy as Parquet, as CPU time of the sandbox's processes and this one; pandas is a fresh process
that reads the same file. The profile alone is the same pass without a copy and without a sandbox, in a fresh process.
What a task costs besides its own computation is in `analysis_python.py`.
"""

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ferrule.analysis.data import DataSource, read_tables
from ferrule.sandbox.python import SandboxSession
from shared.rows import Row, print_rows

MB = 1024 * 1024
MEMORY = 512 * MB
MEASURED = """
import resource, sys
{imports}
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
path = sys.argv[1]
begin = cpu()
{code}
print(cpu() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
PANDAS = MEASURED.format(imports="import pandas", code="pandas.read_csv(path)")
PROFILE = MEASURED.format(
    imports="""
import os
import pyarrow as pa
from ferrule.analysis.data.child.conversion import connect
from ferrule.analysis.data.child.detection import inspect_file
from ferrule.analysis.data.child.plain_csv import PARSED, inspect_plain, read_batches
from ferrule.analysis.data.child.profiling import profile_batches
""",
    code=f"""
inspect_file(path, "sales.csv")
lines, types, _ = inspect_plain(connect({MEMORY}), path)
assert profile_batches(pa.schema(types), read_batches(lines, types), os.path.getsize(path) / PARSED, {MEMORY}, 1)
""",
)


def write_csv(path: Path, megabytes: int) -> None:
    """Write a table of sales with numbers, dates, categories and texts."""
    random = np.random.default_rng(1)
    count, size, first = 200_000, 0, 0
    with path.open("w") as file:
        while size < megabytes * 1_000_000:
            days = np.datetime64("2022-01-01") + random.integers(0, 1000, count).astype("timedelta64[D]")
            frame = pd.DataFrame({"id": np.arange(first, first + count), "day": days})
            frame["region"] = random.choice(["North", "South", "East", "West"], count)
            frame["customer"] = [f"c{number:06d}" for number in random.integers(0, 200_000, count)]
            frame["amount"] = random.gamma(2, 50, count).round(2)
            frame["units"] = random.integers(1, 100, count)
            frame["discount"] = np.where(random.random(count) < 0.1, np.nan, random.random(count).round(4))
            frame["note"] = random.choice(["ok", "late, but paid", "returned", ""], count)
            size += file.write(frame.to_csv(index=False, header=first == 0))
            first += count


def run_measured(script: str, path: Path) -> tuple[float, float]:
    """Seconds of CPU and megabytes of what a script does with the file, in a fresh process."""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


async def read(path: Path, folder: Path) -> tuple[float, float]:
    """Seconds of CPU of `read_tables`, and megabytes of the largest process."""
    seconds, peak = 0.0, 0.0
    run = SandboxSession.run

    async def counted(session: SandboxSession, *arguments: Any, **named: Any) -> Any:
        nonlocal seconds, peak
        done = await run(session, *arguments, **named)
        seconds, peak = seconds + done.usage.cpu, max(peak, done.usage.peak_memory / MB)
        return done

    SandboxSession.run = counted  # type: ignore[assignment, method-assign]
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        await read_tables([DataSource(path)], folder, memory=MEMORY)
    finally:
        SandboxSession.run = run  # type: ignore[method-assign]
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, peak


async def measure(megabytes: int) -> list[Row]:
    """The rows of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "sales.csv"
        write_csv(path, megabytes)
        theirs, own, profiles = [], [], []
        for _ in range(3):
            theirs.append(run_measured(PANDAS, path))
            own.append(await read(path, folder))
            profiles.append(run_measured(PROFILE, path))
        (pandas_seconds, pandas_memory), (seconds, memory), (alone, _) = min(theirs), min(own), min(profiles)
    detail = f"{seconds:.2f} s of CPU, pandas {pandas_seconds:.2f} s and {pandas_memory:.0f} MB"
    unit = "× pandas.read_csv"
    return [
        Row(f"reading and profile of {megabytes} MB of CSV", seconds / pandas_seconds, unit, 0.7, detail),
        Row("its profile alone, without a copy", alone / pandas_seconds, unit, 0.7, f"{alone:.2f} s of CPU"),
        Row("both", memory, "MB", 300, "the largest process"),
    ]


def main() -> None:
    """Measure and print; exit status 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--megabytes", type=int, default=100)
    options = parser.parse_args()
    rows = asyncio.run(measure(options.megabytes))
    print_rows(rows, as_json=options.json)


if __name__ == "__main__":
    main()
