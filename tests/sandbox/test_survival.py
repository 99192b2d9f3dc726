"""The parent survives anything: thousands of runs, one in five of them hostile, four at a time, and nothing leaks.

What is left is read from /proc: processes below this one, their memory, this one's descriptors and threads, and the
files in the temporary folder.
"""

import asyncio
import os
import random
import tempfile
import time
from pathlib import Path

import pytest
from escaping.census import descendants, memory_of
from escaping.circumstances import TIERS
from escaping.hostile import HOSTILE

from ferrule._util.background import submit_to_background
from ferrule.sandbox.python import PythonSandbox

AT_ONCE = 4
HOSTILE_SECONDS = 0.1
MB = 1024 * 1024
# What the parent and the zygote may have grown by, each, after thousands of runs; a leak of a descriptor's worth of
# memory a run would be more.
GROWTH = 24 * MB


async def honest_run(sandbox, number):
    run = await sandbox.run(f"print({number})\n{number} * 2")
    assert (run.value, run.stdout, run.error) == (number * 2, f"{number}\n", None)


async def hostile_run(sandbox, code):
    begin = time.monotonic()
    await sandbox.run(code, timeout=HOSTILE_SECONDS, memory=64 * MB)
    assert time.monotonic() - begin < 5, code


async def many_runs(sandbox, count, seed):
    chosen = random.Random(seed)
    places = asyncio.Semaphore(AT_ONCE)

    async def one(number):
        async with places:
            if number % 5 == 0:
                await hostile_run(sandbox, chosen.choice(HOSTILE))
            else:
                await honest_run(sandbox, number)

    await asyncio.gather(*(one(number) for number in range(count)))


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def entries(folder):
    """What files and folders there are, while some of them are being deleted."""
    return [Path(inner, name) for inner, folders, files in os.walk(folder) for name in (*folders, *files)]


def own_memory():
    return memory_of("self")


async def settled(measure, most, seconds=5.0):
    """The measure once it is at most that, or what it is after waiting: what was ended takes a moment to go."""
    end = time.monotonic() + seconds
    while (value := measure()) > most and time.monotonic() < end:
        await asyncio.sleep(0.05)
    return value


async def survive(tier, runs, warm, folder):
    """Run and measure: what the first `warm` runs take is not a leak, what more the others take is."""
    async with PythonSandbox(tier=tier) as sandbox:
        await many_runs(sandbox, warm, 1)
        await asyncio.sleep(0.2)
        open_before, own_before = descriptors(), own_memory()
        below = sorted(descendants())
        zygotes = {pid: memory_of(pid) for pid in below}
        await many_runs(sandbox, runs, 2)
        assert await settled(lambda: len(descendants()), len(below) + AT_ONCE) <= len(below) + AT_ONCE
        assert await settled(descriptors, open_before + AT_ONCE) <= open_before + AT_ONCE
        assert own_memory() - own_before < GROWTH
        grown = {pid: memory_of(pid) - before for pid, before in zygotes.items() if pid in descendants()}
        assert all(size < GROWTH for size in grown.values()), grown
        assert grown, "the zygote was replaced"
        assert await settled(lambda: len(entries(folder)), 50) <= 50
    await settled(lambda: len(entries(folder)), 0)
    assert entries(folder) == []


async def survive_from_nothing(tier, runs, warm, folder):
    """The same, and with the sandbox gone nothing is left at all."""
    submit_to_background(asyncio.sleep(0)).result()  # the loop in the background is started once, and stays
    before = descriptors(), len(descendants())
    await survive(tier, runs, warm, folder)
    assert await settled(lambda: len(descendants()), before[1]) == before[1]
    assert await settled(descriptors, before[0]) <= before[0]


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """A temporary folder of this test's own, which the sandbox makes its folders in."""
    tmp_path.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_five_hundred_runs_leave_nothing(tier, temporary):
    await survive_from_nothing(tier, 400, 100, temporary)


@pytest.mark.slow
@pytest.mark.parametrize(("tier", "runs"), [("full", 9_500), ("container", 2_500)])
async def test_thousands_of_runs_leave_nothing(tier, runs, temporary):
    await survive_from_nothing(tier, runs, 500, temporary)
