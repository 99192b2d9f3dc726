"""A contained shell command against a plain `sh -c`, and a command that writes 100 MB.

    python benchmarks/sandbox_shell.py [--json]

Both start a command that does nothing, in turns, and read its output: ours in workspace-write, plain with asyncio's own
subprocess. Then a command writes without end, and is ended after 100 MB, which lie in a file by then: the time from the
start, and what the parent's memory grew by. Wall clock, medians.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from ferrule.sandbox.shell import ShellSandbox

ROUNDS, FLOODS = 100, 7
MB = 1024 * 1024
LIMITS = {"over": 8.0, "flood": 200.0, "memory": 10.0}


async def plain(folder: Path) -> None:
    """What there would be without a sandbox."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", "true", cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    await process.communicate()


async def timed(work: object) -> float:
    """Milliseconds that a coroutine takes."""
    start = time.perf_counter()
    await work  # type: ignore[misc]
    return (time.perf_counter() - start) * 1e3


def peak() -> float:
    """The most memory that this process has had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def small(folder: Path) -> dict[str, float]:
    """Medians in milliseconds of a command that does nothing."""
    times: dict[str, list[float]] = {"plain": [], "full": [], "container": []}
    async with ShellSandbox(folder) as full, ShellSandbox(folder, tier="container") as container:
        for _ in range(ROUNDS):
            times["plain"].append(await timed(plain(folder)))
            times["full"].append(await timed(full.run("true")))
            times["container"].append(await timed(container.run("true")))
    return {name: statistics.median(found) for name, found in times.items()}


async def flood(folder: Path) -> dict[str, float]:
    """Milliseconds until a command that never stops writing was ended, and MB that its parent grew by."""
    async with ShellSandbox(folder, max_spill=100 * MB) as shell:
        await shell.run("head -c 2000000 /dev/zero")
        before, times = peak(), []
        for _ in range(FLOODS):
            start = time.perf_counter()
            done = await shell.run("cat /dev/zero")
            times.append((time.perf_counter() - start) * 1e3)
            if done.ended != "output" or done.spilled is None or done.spilled.stat().st_size != 100 * MB:
                raise SystemExit(f"the flood was not ended at its limit: {done.ended}")
            done.spilled.unlink()
        return {"flood": statistics.median(times), "memory": peak() - before}


async def measure() -> dict[str, float]:
    """Everything, in a repository as commands have one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / ".git").mkdir()
        for number in range(100):
            (folder / f"source/package_{number}").mkdir(parents=True)
        found = await small(folder) | await flood(folder)
    return found | {"over": found["full"] - found["plain"]}


def main() -> None:
    """Measure and print; exit status 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    found = asyncio.run(measure())
    if as_json:
        print(json.dumps({"measured": found, "limits": LIMITS}))
    else:
        print(f"plain sh -c                        {found['plain']:7.1f} ms")
        print(f"full tier, workspace-write         {found['full']:7.1f} ms, {found['over']:.1f} over it (at most 8)")
        print(f"Landlock alone (container tier)    {found['container']:7.1f} ms")
        print(f"100 MB of output, ended and kept   {found['flood']:7.1f} ms (at most 200)")
        print(f"what the parent grew by            {found['memory']:7.1f} MB (at most 10)")
    sys.exit(any(found[name] > limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    main()
