"""What a sandbox survives: lost zygotes, cancellation, other loops, a parent that forks or ends. Nothing leaks."""

import asyncio
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.containment import RunLimits
from ferrule.sandbox.python import PythonSandbox
from ferrule.sandbox.python.parent.zygote_pool import ZygotePool, ZygoteSettings

SPIN = "while True: pass"


@pytest.fixture
def sandbox() -> Iterator[PythonSandbox]:
    sandbox = PythonSandbox(packages=())
    yield sandbox
    sandbox.close()


def zygote(sandbox: PythonSandbox) -> int:
    """The pid of the process that the sandbox started."""
    assert sandbox._pool is not None
    assert sandbox._pool._zygote is not None
    return sandbox._pool._zygote._process.pid


def descendants(of: int) -> set[int]:
    """Every process below one, by /proc."""
    children: dict[int, set[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), set()).add(int(status.parent.name))
    found, waiting = set(), [of]
    while waiting:
        below = children.get(waiting.pop(), set()) - found
        found |= below
        waiting += below
    return found


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def until(condition: object, seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come to be"
        await asyncio.sleep(0.01)


async def test_killing_the_zygote_loses_what_runs_and_nothing_else(sandbox: PythonSandbox) -> None:
    assert (await sandbox.run("1")).value == 1
    running = [asyncio.ensure_future(sandbox.run(SPIN)) for _ in range(4)]
    await asyncio.sleep(0.3)
    os.kill(zygote(sandbox), signal.SIGKILL)
    for run in await asyncio.gather(*running):
        assert run.error is not None
        assert (run.error.kind, "run it again" in run.error.message) == ("lost", True)
    assert (await sandbox.run("2")).value == 2


async def test_killing_the_inner_zygote_is_noticed(sandbox: PythonSandbox) -> None:
    assert (await sandbox.run("1")).value == 1
    running = asyncio.ensure_future(sandbox.run(SPIN))
    await asyncio.sleep(0.2)
    for pid in descendants(zygote(sandbox)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    run = await running
    assert run.error is not None
    assert run.error.kind in {"lost", "killed"}
    assert (await sandbox.run("2")).value == 2


async def test_killing_the_zygote_at_any_moment() -> None:
    """At random moments, under four users who start runs as fast as they can."""
    others = descendants(os.getpid())
    sandbox = PythonSandbox(packages=())
    await sandbox.run("1")
    await asyncio.sleep(0.5)
    before = descriptors()
    is_over = False
    kinds: Counter[str] = Counter()

    async def use() -> None:
        while not is_over:
            try:
                run = await sandbox.run("x = 6\nx * 7")
            except SandboxUnavailable:  # it was killed three times before the run could begin
                continue
            kind = run.error.kind if run.error else "fine"
            assert kind in {"fine", "lost"}, run.error
            assert run.value == (42 if kind == "fine" else None)
            kinds[kind] += 1

    async def kill() -> None:
        nonlocal is_over
        chosen = random.Random(5)
        for _ in range(20):
            await asyncio.sleep(chosen.uniform(0.0, 0.3))
            with suppress(ProcessLookupError):
                os.kill(zygote(sandbox), signal.SIGKILL)
        fine = kinds["fine"]
        await until(lambda: kinds["fine"] > fine + 4)
        is_over = True

    await asyncio.gather(use(), use(), use(), use(), kill())
    assert (await sandbox.run("2")).value == 2
    await until(lambda: descriptors() <= before)
    await sandbox.aclose()
    assert descendants(os.getpid()) <= others


async def test_a_zygote_that_hangs_is_replaced(sandbox: PythonSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.sandbox.python.parent.child_process.START_SECONDS", 0.5)
    assert (await sandbox.run("1")).value == 1
    await asyncio.sleep(0.2)
    for pid in descendants(zygote(sandbox)) | {zygote(sandbox)}:
        os.kill(pid, signal.SIGSTOP)
    first = await sandbox.run("1", timeout=0.3)
    assert first.error is None or first.error.kind in {"lost", "timeout"}
    assert (await sandbox.run("2")).value == 2
    assert (await sandbox.run("3")).value == 3


async def test_cancelling_a_run_kills_its_process(sandbox: PythonSandbox) -> None:
    await sandbox.run("1")
    await asyncio.sleep(0.3)
    before, processes = descriptors(), len(descendants(os.getpid()))
    for delay in (0.0, 0.001, 0.01, 0.05, 0.2):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sandbox.run(SPIN, timeout=60), delay)
    await until(lambda: len(descendants(os.getpid())) <= processes)
    await until(lambda: descriptors() <= before)
    assert (await sandbox.run("2")).value == 2


async def test_cancelling_while_it_starts(sandbox: PythonSandbox) -> None:
    for delay in (0.0, 0.005, 0.05):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sandbox.run("1"), delay)
    assert (await sandbox.run("2")).value == 2


async def test_timeouts_land_on_time_while_the_loop_is_blocked(sandbox: PythonSandbox) -> None:
    await sandbox.run("1")
    running = asyncio.ensure_future(sandbox.run(SPIN, timeout=0.3))
    await asyncio.sleep(0.05)
    time.sleep(1.0)
    run = await running
    assert run.error is not None
    assert (run.error.kind, run.usage.wall < 0.6) == ("timeout", True)


async def test_the_loop_goes_on_while_it_runs(sandbox: PythonSandbox) -> None:
    await sandbox.run("1")
    running = asyncio.ensure_future(sandbox.run("[list(range(2000)) for _ in range(40)]"))
    longest, last = 0.0, time.monotonic()
    while not running.done():
        await asyncio.sleep(0.001)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert len((await running).value) == 40
    assert longest < 0.5


def test_loops_of_its_users_come_and_go(sandbox: PythonSandbox) -> None:
    assert [asyncio.run(sandbox.run(f"{number}")).value for number in range(3)] == [0, 1, 2]
    assert sandbox.run_sync("3").value == 3
    loop = asyncio.new_event_loop()
    left = loop.create_task(sandbox.run(SPIN, timeout=0.3))
    loop.run_until_complete(asyncio.sleep(0.1))
    left.cancel()
    loop.run_until_complete(asyncio.gather(left, return_exceptions=True))
    loop.close()
    assert sandbox.run_sync("4").value == 4


def test_threads_with_loops_of_their_own(sandbox: PythonSandbox) -> None:
    values: list[int] = []

    def use(number: int) -> None:
        values.extend(asyncio.run(sandbox.run(f"{number} * {turn}")).value for turn in range(5))

    threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(values) == sorted(number * turn for number in range(6) for turn in range(5))


async def test_a_hundred_at_once(sandbox: PythonSandbox) -> None:
    runs = await asyncio.gather(*(sandbox.run(f"{number} + 1") for number in range(100)))
    assert [run.value for run in runs] == list(range(1, 101))


def python(code: str, *, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds, check=False)


BEGIN = """
import asyncio, os, signal, sys, time
from ferrule.sandbox.python import PythonSandbox
sandbox = PythonSandbox(packages=())
assert sandbox.run_sync("1").value == 1
pid = sandbox._pool._zygote._process.pid
"""


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "pass"])
async def test_a_zygote_ends_with_its_parent(end: str) -> None:
    spin = (
        "import threading\nthreading.Thread(target=lambda: sandbox.run_sync('while True: pass'), daemon=True).start()\n"
    )
    done = python(BEGIN + spin + "time.sleep(0.3)\nprint(pid, flush=True)\n" + end)
    pid = int(done.stdout)
    assert done.stderr == ""
    await until(lambda: not Path(f"/proc/{pid}").exists())


async def test_a_sandbox_can_be_closed_at_exit() -> None:
    code = "import atexit\natexit.register(sandbox.close)\n"
    code += "atexit.register(lambda: print(pid, sandbox.run_sync('2').value))"
    done = python(BEGIN + code)
    pid, value = done.stdout.split()
    assert (value, done.stderr) == ("2", "")
    assert not Path(f"/proc/{pid}").exists()


async def test_a_forked_parent_leaves_the_sandbox_alone() -> None:
    code = """
import warnings
from ferrule.errors import SandboxUnavailable
# Python warns, from 3.12 on, of a fork run_in_thread threads: the background loop is one.
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
if child == 0:
    try:
        sandbox.run_sync("1")
    except SandboxUnavailable as error:
        print("refused:", "another" in str(error), flush=True)
    sandbox.close()
    other = PythonSandbox(packages=())
    print("own:", other.run_sync("2").value, flush=True)
    other.close()
    os._exit(0)
os.waitpid(child, 0)
print("parent:", sandbox.run_sync("3").value, flush=True)
# A copy that goes on must not keep the zygote alive make_once the parent has ended.
if os.fork() == 0:
    os.close(1), os.close(2)
    time.sleep(5)
    os._exit(0)
print(pid, flush=True)
os._exit(0)
"""
    done = python(BEGIN + code)
    *lines, pid = done.stdout.split("\n")[:-1]
    assert (lines, done.stderr) == (["refused: True", "own: 2", "parent: 3"], "")
    await until(lambda: not Path(f"/proc/{pid}").exists(), 3)


async def test_a_sandbox_that_is_forgotten_is_ended() -> None:
    sandbox = PythonSandbox(packages=())
    await sandbox.run("1")
    pid = zygote(sandbox)
    del sandbox
    gc.collect()
    await until(lambda: not Path(f"/proc/{pid}").exists())


async def test_a_flood_stays_small_in_the_parent(sandbox: PythonSandbox) -> None:
    code = "import os\nfor _ in range(1600): os.write(1, b'x' * 65536)"
    await sandbox.run(code)
    before = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    for _ in range(20):
        run = await sandbox.run(code)
        assert run.error is not None
        assert (run.error.kind, len(run.stdout)) == ("output", 1024 * 1024)
    del run
    assert int(Path("/proc/self/statm").read_text().split()[1]) * 4096 - before < 10_000_000


async def stress(sandbox: PythonSandbox, runs: int) -> None:
    """Runs of every kind, some hostile, four users at a time."""
    kinds = {
        "6 * 7": None,
        "print('x' * 1000)": None,
        "1 / 0": "exception",
        "import os; os._exit(1)": "killed",
        "import ctypes; ctypes.string_at(0)": "killed",
        "import os; os.closerange(0, 100)": "killed",
        "while True: print('x' * 10000)": "output",
        "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'x' * 99)\n    except OSError: pass": "protocol",
        "import threading\nfor _ in range(20): threading.Thread(target=input, daemon=True).start()": None,
        "x = bytearray(10**10)": "memory",
        "import os\nos.makedirs('/'.join('abcdefgh'))\nopen('f', 'wb').write(bytes(100_000))": None,
    }
    left = iter(range(runs))

    async def use(user: int) -> None:
        chosen = random.Random(user)
        for number in left:
            if number % 25 == 0:
                run, kind = await sandbox.run(SPIN, timeout=0.1), "timeout"
            elif number % 40 == 1:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(sandbox.run(SPIN), chosen.uniform(0, 0.02))
                continue
            else:
                code, kind = chosen.choice(list(kinds.items()))
                run = await sandbox.run(code, timeout=20)
            assert (run.error.kind if run.error else None) == kind, run.error

    await asyncio.gather(*(use(user) for user in range(4)))


async def test_a_child_that_is_ready_as_its_run_is_cancelled_is_closed() -> None:
    limits = RunLimits(memory=1 << 28, cpu=60)
    pool = ZygotePool(ZygoteSettings((), (), None, 1 << 20), limits)
    try:
        (await pool.acquire_child(limits)).close()
        ahead = pool._spare
        assert ahead is not None
        # First of those that are told of it: the run is cancelled between the child's coming and its own going on.
        ahead.add_done_callback(lambda _: waiting.cancel())
        waiting = asyncio.create_task(pool.acquire_child(limits))
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(ahead.result().ended, 10)
    finally:
        await pool.aclose()


@pytest.mark.parametrize("runs", [100, pytest.param(4000, marks=pytest.mark.slow)])
async def test_nothing_is_left_behind(runs: int) -> None:
    others = descendants(os.getpid())
    async with PythonSandbox(packages=()) as sandbox:
        await stress(sandbox, 50)
        # A run that was cancelled leaves none made ahead; one that ends does.
        await sandbox.run("1")
        await asyncio.sleep(0.5)
        gc.collect()
        before = descriptors(), len(descendants(os.getpid())), len(asyncio.all_tasks())
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
        await stress(sandbox, runs)
        await until(lambda: (descriptors(), len(descendants(os.getpid()))) <= before[:2])
        gc.collect()
        assert len(asyncio.all_tasks()) <= before[2]
        assert int(Path("/proc/self/statm").read_text().split()[1]) * 4096 - memory < 20_000_000
    await until(lambda: descendants(os.getpid()) <= others)
