"""Empty folders in place of protected paths are removed also after the program that made them was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from ferrule.sandbox.shell import ShellSandbox

KILLED = """
import asyncio, os, signal, sys
from ferrule.sandbox.shell import ShellSandbox

async def run():
    async with ShellSandbox(sys.argv[1]) as shell:
        await shell.run("touch made")
        print("ran", flush=True)
        if sys.argv[2] == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.readline()

asyncio.run(run())
"""


def start(workspace: Path, way: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(workspace), way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ran\n"
    return process


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_those_of_a_killed_program_are_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    with start(tmp_path, "killed") as process:
        assert process.wait() == -signal.SIGKILL
    assert ".git" in list_names(tmp_path), "nothing shows that it was killed in time"
    (tmp_path / ".idea" / "own.xml").write_text("somebody's")
    async with ShellSandbox(tmp_path) as shell:
        await shell.run("true")
    # What was there before stays, and so does what was filled since.
    assert list_names(tmp_path) == [".idea", ".vscode", "made"]


async def test_those_of_a_program_that_runs_stay(tmp_path: Path) -> None:
    with start(tmp_path, "waits") as process:
        before = list_names(tmp_path)
        async with ShellSandbox(tmp_path) as shell:
            result = await shell.run("mkdir .git/hooks || ls -d .git")
        assert ".git" in result.output
        assert not os.path.lexists(tmp_path / ".git" / "hooks")
        assert list_names(tmp_path) == before
        process.communicate("\n")
    assert list_names(tmp_path) == ["made"]
