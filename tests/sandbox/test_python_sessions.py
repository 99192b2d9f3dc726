"""Sessions: what is kept between runs, what a fork and a rollback are, and what ends."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.python import PythonSandbox, SandboxSession
from ferrule.sandbox.python.parent import session_process
from ferrule.sandbox.python.parent.process_handle import list_children, read_cpu_seconds, read_parent


@pytest.fixture(scope="module")
def sandbox() -> Iterator[PythonSandbox]:
    sandbox = PythonSandbox(packages=("numpy",))
    yield sandbox
    sandbox.close()


async def value(session: SandboxSession, code: str) -> Any:
    run = await session.run(code)
    assert run.error is None, run.error
    return run.value


async def test_variables_files_and_functions_are_kept(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        await value(session, "x = 1\ndef f():\n    return 1 / x\nopen('a.txt', 'w').write('a')")
        assert await value(session, "x += 1\nf(), open('a.txt').read()") == (0.5, "a")
        run = await session.run("y * x", {"y": [3]})
        assert run.value == [3, 3]
        failed = await session.run("x = 0\nf()")
        assert failed.error is not None
        assert 'File "<run 4>", line 2' in failed.error.traceback
        assert "return 1 / x" in failed.error.traceback
        assert await value(session, "x") == 0


async def test_each_run_gives_its_own_output_files_and_usage(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        first = await session.run("print('one')\nopen('one.txt', 'w').write('1')")
        second = await session.run("print('two')\nopen('two.txt', 'w').write('2')\nsum(range(3_000_000))")
        assert (first.stdout, first.files) == ("one\n", {"one.txt": b"1"})
        assert (second.stdout, second.files) == ("two\n", {"two.txt": b"2"})
        assert 0.005 < second.usage.cpu < 5
        assert second.usage.peak_memory > 1_000_000


async def test_sessions_and_runs_know_nothing_of_each_other(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as one, await sandbox.session() as other:
        await value(one, "x = 1\nopen('x.txt', 'w').close()")
        assert await value(other, "import os\n('x' in globals(), os.listdir('.'))") == (False, [".private"])
        assert (await sandbox.run("'x' in globals()")).value is False


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("x = 2\nwhile True: pass", "timeout"),
        ("x = 2\nimport os\nos._exit(3)", "killed"),
        ("x = 2\nimport ctypes\nctypes.string_at(0)", "killed"),
        ("x = 2\nwhile True: print('x' * 1000)", "output"),
        (
            "x = 2\nimport os\nfor fd in range(3, 64):\n    try: os.write(fd, b'junk' * 9)\n    except OSError: pass",
            "protocol",
        ),
    ],
)
async def test_a_run_that_is_ended_costs_the_session_that_run_only(
    sandbox: PythonSandbox, code: str, kind: str
) -> None:
    async with await sandbox.session() as session:
        await value(session, "x = 1\nopen('a.txt', 'w').write('before')")
        run = await session.run("open('a.txt', 'w').write('after')\n" + code, timeout=0.5)
        assert run.error is not None
        assert run.error.kind == kind
        assert "as it was before this run" in run.error.message
        assert await value(session, "x, open('a.txt').read()") == (1, "before")
        assert await value(session, "x = 5\nx") == 5


async def test_rolling_back(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        with pytest.raises(SandboxInputError, match="no run to roll back to"):
            await session.rollback()
        await value(session, "x = 1\nopen('a.txt', 'w').write('one')")
        checkpoint = await session.checkpoint()
        await value(session, "x = 2\nopen('b.txt', 'w').close()")
        await value(session, "x = 3\nopen('a.txt', 'w').write('three')")
        await session.rollback()
        assert await value(session, "import os\nx, open('a.txt').read(), os.path.exists('b.txt')") == (2, "one", True)
        for _ in range(2):
            await session.rollback(checkpoint)
            assert await value(session, "import os\nx, open('a.txt').read(), os.path.exists('b.txt')") == (
                1,
                "one",
                False,
            )
            await value(session, "x = 9\nimport os\nos.unlink('a.txt')")
        await session.rollback()
        with pytest.raises(SandboxInputError, match="no run to roll back to"):
            await session.rollback()


async def test_checkpoints_are_few(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        for _ in range(16):
            await session.checkpoint()
        with pytest.raises(SandboxInputError, match="at most 16"):
            await session.checkpoint()
        assert await value(session, "1") == 1


async def test_a_fork_goes_its_own_way(sandbox: PythonSandbox) -> None:
    session = await sandbox.session()
    await value(session, "import random\nx = [1]\nopen('a.txt', 'w').write('a')")
    twin = await session.fork()
    await value(twin, "x.append('twin')\nopen('a.txt', 'w').write('twin')")
    await value(session, "x.append('first')")
    assert await value(session, "x, open('a.txt').read()") == ([1, "first"], "a")
    assert await value(twin, "x, open('a.txt').read()") == ([1, "twin"], "twin")
    assert await value(session, "random.random()") != await value(twin, "random.random()")
    both = await asyncio.gather(session.run("print('s')\n1"), twin.run("print('t')\n2"))
    assert [(run.value, run.stdout) for run in both] == [(1, "s\n"), (2, "t\n")]
    await session.aclose()
    assert await value(twin, "x") == [1, "twin"]
    third = await twin.fork()
    await twin.aclose()
    assert await value(third, "x") == [1, "twin"]
    await third.aclose()
    with pytest.raises(SandboxUnavailable, match="closed"):
        await third.run("1")


async def test_no_process_is_made_that_nobody_asked_for(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        for code in ("import os\nos.fork()", "import subprocess\nsubprocess.run(['true'])"):
            error = (await session.run(code)).error
            assert error is not None
            assert "PermissionError" in error.message
        await session.rollback()
        await (await session.fork()).aclose()
        error = (await session.run("import os\nos.fork()")).error
        assert error is not None


async def test_nothing_runs_between_runs(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        code = "import threading\ndef spin():\n    while True: pass\n"
        await value(session, code + "threading.Thread(target=spin, daemon=True).start()")
        member = session._process.current
        assert member is not None
        await asyncio.sleep(0.05)
        before = read_cpu_seconds(member.pid)
        await asyncio.sleep(0.3)
        assert read_cpu_seconds(member.pid) - before < 0.02


async def test_a_session_ends_with_its_sandbox() -> None:
    sandbox = PythonSandbox(packages=())
    session = await sandbox.session()
    assert await value(session, "1") == 1
    running = asyncio.ensure_future(session.run("while True: pass"))
    await asyncio.sleep(0.2)
    await sandbox.aclose()
    run = await running
    assert run.error is not None
    assert run.error.kind in {"lost", "killed"}
    with pytest.raises(SandboxUnavailable):
        await session.run("1")
    await session.aclose()


async def test_cancelling_a_run_of_a_session_ends_that_run_only(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        await value(session, "x = 1")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.run("x = 2\nwhile True: pass"), 0.2)
        assert await value(session, "x") == 1


async def test_cancelling_at_any_moment_leaves_a_session_that_goes_on(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        await value(session, "x = 0")
        for milliseconds in range(25):
            with suppress(TimeoutError):
                await asyncio.wait_for(session.run("x += 1"), milliseconds / 1000)
            assert 0 <= await value(session, "x") <= milliseconds + 1


async def test_a_run_that_waits_for_its_place_can_be_cancelled() -> None:
    async with PythonSandbox(packages=(), parallel=1) as sandbox, await sandbox.session() as session:
        busy = asyncio.create_task(sandbox.run("import time\ntime.sleep(1)"))
        await asyncio.sleep(0.2)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.run("x = 1"), 0.2)
        assert (await busy).error is None
        assert await value(session, "'x' in globals()") is False


async def test_a_fork_beside_threads_is_no_warning_of_the_code(sandbox: PythonSandbox) -> None:
    code = "import threading, time, warnings\nwarnings.simplefilter('always')\n"
    code += "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    async with await sandbox.session() as session:
        await value(session, code)
        assert [(await session.run("1")).stderr for _ in range(20)] == [""] * 20


async def test_a_checkpoint_that_is_gone_is_no_wait(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        checkpoint = await session.checkpoint()
        session._process.checkpoints[checkpoint.number].kill()
        with pytest.raises(SandboxUnavailable, match="doesn't wake"):
            await session.rollback(checkpoint)


async def test_without_namespaces_a_session_is_kept_but_not_forked() -> None:
    async with PythonSandbox(packages=(), tier="container") as sandbox, await sandbox.session() as session:
        await value(session, "x = 1\nopen('a.txt', 'w').write('a')")
        assert await value(session, "x + 1, open('a.txt').read()") == (2, "a")
        for work in (session.fork, session.checkpoint, session.rollback):
            with pytest.raises(SandboxUnavailable, match="only in the full tier"):
                await work()
        ended = await session.run("while True: pass", timeout=0.2)
        assert ended.error is not None
        assert "the session is over" in ended.error.message
        with pytest.raises(SandboxUnavailable, match="has ended"):
            await session.run("1")


THREAD_THAT_FORKS = """
import os, threading
made = []
def fork():
    while True:
        try:
            pid = os.fork()
        except OSError:
            continue
        if pid == 0:
            while True: pass
        made.append(pid)
threading.Thread(target=fork, daemon=True).start()
x = 1
"""


async def test_the_last_value_is_kept_by_an_underscore(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        await value(session, "6 * 7")
        await value(session, "x = 1")
        assert await value(session, "_") == 42


async def test_without_checkpoints_an_ended_run_ends_the_session_but_not_its_source(sandbox: PythonSandbox) -> None:
    async with await sandbox.session(checkpoints=False) as session:
        await value(session, "x = 1")
        assert session.can_fork
        fork = await session.fork()
        ended = await fork.run("while True: pass", timeout=0.1)
        assert ended.error is not None
        assert ended.error.kind == "timeout"
        with pytest.raises(SandboxUnavailable, match="start another session"):
            await fork.run("x")
        assert await value(session, "x") == 1
        with pytest.raises(SandboxInputError, match="no run to roll back to"):
            await session.rollback()


async def test_the_files_of_closed_forks_make_room(sandbox: PythonSandbox) -> None:
    async with await sandbox.session(checkpoints=False) as session:
        for _ in range(4):
            async with await session.fork() as fork:
                assert await value(fork, "open('large', 'wb').write(bytes(12_000_000))") == 12_000_000


async def test_a_thread_takes_no_fork_that_is_meant_for_a_checkpoint(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        await value(session, THREAD_THAT_FORKS)
        for _ in range(5):
            assert await value(session, "x, made") == (1, [])
        checkpoint = await session.checkpoint()
        async with await session.fork() as twin:
            assert await value(twin, "x, made") == (1, [])
        await value(session, "x = 2")
        await session.rollback(checkpoint)
        assert await value(session, "x, made, threading.active_count()") == (1, [], 1)


FORGED_GREETING = """
import os
from ferrule.sandbox.python.child import runner as child
from ferrule.sandbox.python.child import session_runner as session_child
from ferrule.sandbox.python.wire.frames import pack_frame
def forge(channel, tree):
    if os.fork() == 0:
        while True: pass
    child.write(channel, pack_frame({"forked": tree["number"]}, []))
session_child._fork = forge
x = 2
"""


async def test_a_process_that_greets_in_place_of_its_fork_costs_the_last_run(sandbox: PythonSandbox) -> None:
    async with await sandbox.session() as session:
        await value(session, "x = 1")
        await value(session, FORGED_GREETING)
        undone = await session.run("x = 3")
        assert undone.error is not None
        assert undone.error.kind == "killed"
        assert "as it was before the last one" in undone.error.message
        assert await value(session, "x") == 1
        assert await value(session, "x + 1") == 2
        # What it forked has ended too: the session's processes are those that are known.
        process = session._process
        assert process.current is not None
        assert process.before_run is not None
        known = {process.current.pid, process.before_run.pid}
        keeper = read_parent(process.current.pid)
        while set(list_children(keeper)) - known:
            await asyncio.sleep(0.01)


THREAD_THAT_READS = """
import os, threading
def read():
    while True:
        for descriptor in range(3, 16):
            try: os.read(descriptor, 1 << 20)
            except OSError: pass
threading.Thread(target=read, daemon=True).start()
"""


async def test_a_thread_that_reads_what_is_said_to_the_process_costs_runs_only(
    sandbox: PythonSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whether it is the code or the word to fork that the thread takes, nobody answers: the wait is all that is shorter.
    monkeypatch.setattr(session_process, "START_SECONDS", 2.0)
    async with await sandbox.session() as session:
        await value(session, "x = 1")
        run = await session.run(THREAD_THAT_READS, timeout=1)
        if run.error is None:
            run = await session.run("1", timeout=1)
        while run.error is not None:
            run = await session.run("x", timeout=1)
        assert run.value == 1


TIMER_THAT_CONTINUES = """
import ctypes, signal, threading
signal.signal(signal.SIGCONT, lambda *_: None)
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
libc, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
event, often = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0), (ctypes.c_long * 4)(0, 5_000_000, 0, 5_000_000)
made = libc.timer_create(1, event, ctypes.byref(timer))
libc.timer_settime(timer, 0, often, None) if made == 0 else None
made
"""


@pytest.mark.parametrize("tier", ["full", "container"])
async def test_no_timer_wakes_a_session_between_runs(tier: str) -> None:
    async with PythonSandbox(packages=(), tier=tier) as sandbox, await sandbox.session() as session:
        assert await value(session, TIMER_THAT_CONTINUES) == -1
        member = session._process.current
        assert member is not None
        await asyncio.sleep(0.05)
        before = read_cpu_seconds(member.pid)
        await asyncio.sleep(0.3)
        assert read_cpu_seconds(member.pid) - before < 0.02
