"""Commands from start to end: output, limits, timeouts, background jobs, cancellation, bad input."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from absent_path import NOWHERE
from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.shell import ShellSandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

MB = 1024 * 1024
# Seconds, and a mark that no other run of these tests has.
LONG = f"98770.{os.getpid()}"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture(params=["full", "container"])
async def shell(workspace: Path, request: pytest.FixtureRequest) -> AsyncIterator[ShellSandbox]:
    async with ShellSandbox(workspace, tier=request.param, grace=0.3, environment={"LONG": LONG}) as sandbox:
        yield sandbox


async def test_output_status_and_folder(shell: ShellSandbox, workspace: Path) -> None:
    done = await shell.run("pwd; echo to-errors >&2; exit 3")
    assert (done.output, done.exit_code, done.ended) == (f"{workspace}\nto-errors\n", 3, "exit")


async def test_errors_apart(shell: ShellSandbox) -> None:
    done = await shell.run("echo out; echo err >&2", separate=True)
    assert (done.output, done.errors) == ("out\n", "err\n")


async def test_input(shell: ShellSandbox) -> None:
    assert (await shell.run("cat", input="given")).output == "given"
    assert (await shell.run("cat")).output == ""


async def test_a_signal_is_told_from_an_exit(shell: ShellSandbox) -> None:
    done = await shell.run("kill -SEGV $$")
    assert (done.ended, done.signal) == ("signal", signal.SIGSEGV)


async def test_a_pipe_that_nobody_reads_ends_its_writer(shell: ShellSandbox) -> None:
    done = await shell.run("{ yes; echo $? >&2; } | head -n 1")
    assert done.output.split() in (["y", "141"], ["141", "y"])


async def test_timeout_keeps_what_was_written(shell: ShellSandbox) -> None:
    done = await shell.run("echo before; sleep 60; echo after", timeout=0.5)
    assert (done.output, done.ended) == ("before\n", "timeout")


async def test_timeout_asks_before_it_kills(shell: ShellSandbox) -> None:
    done = await shell.run("trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.01; done", timeout=0.5)
    assert (done.output.split()[-1], done.ended, done.exit_code) == ("asked", "timeout", 0)


async def test_timeout_kills_what_does_not_listen(shell: ShellSandbox) -> None:
    begun = time.monotonic()
    done = await shell.run(
        "trap '' TERM INT HUP; setsid -f sh -c 'trap \"\" TERM; sleep $LONG'; sleep $LONG", timeout=0.5
    )
    assert (done.ended, done.signal) == ("timeout", signal.SIGKILL)
    assert time.monotonic() - begun < 10
    assert not running()


async def test_who_holds_the_output_does_not_hold_the_run(shell: ShellSandbox) -> None:
    begun = time.monotonic()
    done = await shell.run("sleep $LONG & setsid -f sleep $LONG; echo done")
    assert (done.output, done.ended) == ("done\n", "exit")
    assert time.monotonic() - begun < 20
    assert not running()


async def test_cancelling_ends_it_at_once(shell: ShellSandbox) -> None:
    task = asyncio.create_task(shell.run("trap '' TERM; sleep $LONG"))
    while not running():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not running()


async def test_cancelling_at_any_moment_leaves_nothing(shell: ShellSandbox) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for step in range(40):
        # In the text, so that any process would be found that waits to become the command.
        task = asyncio.create_task(shell.run(f"sleep {LONG}"))
        await asyncio.sleep(step * 0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not running()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 4


async def test_long_output_is_cut_in_the_middle_and_spilled(workspace: Path) -> None:
    async with ShellSandbox(workspace, max_output=1000, tier="container") as shell:
        done = await shell.run("echo first; seq 1 100000; echo last")
        assert done.output.startswith("first\n1\n")
        assert done.output.endswith("last\n")
        assert "bytes left out" in done.output
        assert len(done.output) < 1100
        assert done.is_cut
        assert done.spilled is not None
        assert done.spilled.read_text().splitlines() == ["first", *map(str, range(1, 100001)), "last"]
        assert done.spilled.stat().st_mode & 0o077 == 0 or done.spilled.parent.parent.stat().st_mode & 0o077 == 0
    assert not done.spilled.exists()


async def test_output_without_end_is_ended(workspace: Path) -> None:
    async with ShellSandbox(workspace, max_output=MB, max_spill=8 * MB) as shell:
        done = await shell.run("yes", timeout=60)
        assert done.ended == "output"
        assert done.spilled is not None
        assert done.spilled.stat().st_size == 8 * MB


async def test_bytes_that_are_no_text(shell: ShellSandbox) -> None:
    assert (await shell.run(r"printf 'a\377b\000c'")).output == "a\ufffdb\0c"


async def test_a_job_is_read_as_it_goes_and_stopped(shell: ShellSandbox) -> None:
    job = await shell.start("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; sleep $LONG")
    text = ""
    while "one\n" not in text:
        text += await job.read()
        await asyncio.sleep(0.01)
    assert (job.status, job.done) == ("running", None)
    assert await job.wait(0.01) is None
    await shell.run("touch go")
    while "two\n" not in text:
        text += await job.read()
        await asyncio.sleep(0.01)
    assert text == "one\ntwo\n"
    done = await job.stop()
    assert (done.ended, job.status, done.output) == ("killed", "killed", "one\ntwo\n")
    assert await job.stop() == done
    assert not running()


async def test_a_job_s_death_is_reported_as_what_it_was(shell: ShellSandbox) -> None:
    ended = [await (await shell.start(command)).wait() for command in ("exit 7", "kill -9 $$", "true")]
    assert [(each.ended, each.signal) for each in ended if each] == [("exit", None), ("signal", 9), ("exit", None)]
    job = await shell.start("sleep 60", timeout=0.2)
    done = await job.wait()
    assert done is not None
    assert (done.ended, job.status) == ("timeout", "timeout")


async def test_closing_ends_jobs_and_leaves_no_file(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shell = ShellSandbox(workspace, environment={"LONG": LONG})
    job = await shell.start("echo x >/tmp/left; mkdir -p /tmp/$(printf 'd/%.0s' $(seq 500)); sleep $LONG")
    while not running():
        await asyncio.sleep(0.02)
    await shell.aclose()
    await shell.aclose()
    assert job.status == "killed"
    assert not running()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["workspace"]
    assert list(workspace.iterdir()) == []


async def test_tmp_is_kept_between_commands(shell: ShellSandbox) -> None:
    await shell.run("echo kept >$TMPDIR/file")
    assert (await shell.run("cat $TMPDIR/file")).output == "kept\n"
    assert not Path("/tmp/file").exists()


async def test_many_at_a_time(shell: ShellSandbox) -> None:
    found = await asyncio.gather(*(shell.run(f"echo {number}") for number in range(12)))
    assert [done.output for done in found] == [f"{number}\n" for number in range(12)]


def test_without_an_event_loop(workspace: Path) -> None:
    shell = ShellSandbox(workspace)
    assert shell.run_sync("echo here").output == "here\n"
    shell.close()


@pytest.mark.parametrize("command", ["", "  ", "a\0b", "x" * 200_000, "\ud800", 7], ids=range(6))
async def test_commands_that_are_none(shell: ShellSandbox, command: str) -> None:
    with pytest.raises(SandboxInputError, match="command"):
        await shell.run(command)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "5"])
async def test_timeouts_that_are_none(shell: ShellSandbox, timeout: float) -> None:
    with pytest.raises(SandboxInputError, match="timeout"):
        await shell.run("true", timeout=timeout)


async def test_folders(shell: ShellSandbox, workspace: Path) -> None:
    (workspace / "inner").mkdir()
    assert (await shell.run("pwd", folder="inner")).output == f"{workspace}/inner\n"
    (workspace / "out").symlink_to("/etc")
    for folder in ("..", "/", "out", "missing"):
        with pytest.raises(SandboxInputError, match="folder"):
            await shell.run("pwd", folder=folder)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "some"},
        {"tier": "some"},
        {"network": "packages.example"},
        {"network": ["a b"]},
        {"workspace": NOWHERE},
    ],
)
def test_settings_that_are_none(workspace: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(SandboxInputError):
        ShellSandbox(**{"workspace": workspace, **wrong})


async def test_a_shell_that_is_not_there(workspace: Path) -> None:
    for tier in ("full", "container"):
        with pytest.raises(SandboxUnavailable):
            await ShellSandbox(workspace, tier=tier, shell=f"{NOWHERE}/sh").run("true")


async def test_killing_the_launcher_loses_nothing_to_come(workspace: Path) -> None:
    async with ShellSandbox(workspace, tier="container", environment={"LONG": LONG}) as shell:
        job = await shell.start("sleep $LONG")
        while not running():
            await asyncio.sleep(0.02)
        launcher = [pid for pid in processes("launcher.py") if parent(pid) == os.getpid()]
        keepers = [pid for pid in processes("launcher.py") if parent(pid) in launcher]
        for pid in launcher + keepers:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(SandboxUnavailable, match="ended before it"):
            await job.wait(20)
        assert job.status == "failed"
        assert (await shell.run("echo again")).output == "again\n"
        # Nobody was left to end it.
        for pid in running():
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("tier", ["full", "container"])
async def test_everything_ends_with_a_killed_parent(workspace: Path, tier: str) -> None:
    program = (
        "from ferrule.sandbox.shell import ShellSandbox\n"
        f"ShellSandbox({str(workspace)!r}, tier={tier!r}).run_sync('setsid -f sleep {LONG}; sleep {LONG}')"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stderr=asyncio.subprocess.PIPE)
    try:
        while len([pid for pid in running() if name(pid) == "sleep"]) < 2:
            assert process.stderr is not None
            if process.returncode is not None:
                raise SandboxUnavailable((await process.stderr.read()).decode())
            await asyncio.sleep(0.02)
        process.kill()
        await process.wait()
        while running():
            await asyncio.sleep(0.02)
    finally:
        for pid in running():
            os.kill(pid, signal.SIGKILL)


async def test_limits_of_a_command(workspace: Path) -> None:
    shown = "prlimit --nproc --fsize --core --output RESOURCE,SOFT,HARD --noheadings"
    for tier in ("full", "container"):
        async with ShellSandbox(workspace, tier=tier, processes=77, file_size=MB) as shell:
            words = (await shell.run(shown)).output.split()
            # Without a user namespace those of the user that were there before are counted too.
            number = 77 if tier == "full" or os.getuid() == 0 else max(78, int(words[1]))
            assert words == ["NPROC", str(number), str(number), "FSIZE", str(MB), str(MB), "CORE", "0", "0"]
            assert (await shell.run("head -c 2000000 /dev/zero >file")).exit_code != 0
            assert (workspace / "file").stat().st_size == MB


@pytest.mark.parametrize("tier", ["full", "container"])
async def test_what_else_the_user_runs_takes_nothing_from_the_limit(workspace: Path, tier: str) -> None:
    """Root isn't limited at all, so this tells of an ordinary user alone."""
    over = threading.Event()
    others = [threading.Thread(target=over.wait) for _ in range(40)]
    for each in others:
        each.start()
    try:
        async with ShellSandbox(workspace, tier=tier, processes=32) as shell:
            assert (await shell.run("true & wait; echo ran")).output == "ran\n"
    finally:
        over.set()
        for each in others:
            each.join()


def running() -> list[int]:
    """What sleeps on from a command of these tests."""
    return processes(LONG)


def processes(argument: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and any(
                word.endswith(argument) for word in (entry / "cmdline").read_text(errors="replace").split("\0")[1:]
            ):
                found.append(int(entry.name))
    return found


def name(pid: int) -> str:
    """Of another one's program, which may have ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def parent(pid: int) -> int:
    """Of another one's process, which may have ended meanwhile: 0."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
