"""What a command costs around its own work, as counts: functions of the sandbox, and looks at files."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ferrule._util.background import submit_to_background
from ferrule.sandbox import own_files
from ferrule.sandbox.hidden_paths import list_home_folders
from ferrule.sandbox.shell import ShellSandbox, placeholders

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

FOLDERS = 100
MOST_CALLS = 360
"""Calls of the sandbox's own functions for one command, without those of home folders."""
MOST_CALLS_PER_HOME = 40
MOST_LOOKS = 120
"""Calls of `stat` and the like for one command, without those of its folders, for each of which there are two: before
the command, and after it for what it has left. More for each home folder, in which secrets are hidden."""
MOST_LOOKS_PER_HOME = 30


async def count_calls(work: Coroutine[Any, Any, object]) -> Counter[str]:
    """The calls that the loop of the sandboxes makes: of their own functions, and of the system's for files."""
    found: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and "/ferrule/sandbox/" in frame.f_code.co_filename:
            found["calls"] += 1
        elif event == "c_call" and getattr(argument, "__module__", None) == "posix":
            found[argument.__name__] += 1

    async def follow(*, on: bool) -> None:
        sys.setprofile(count if on else None)

    await asyncio.wrap_future(submit_to_background(follow(on=True)))
    await work
    await asyncio.wrap_future(submit_to_background(follow(on=False)))
    return found


@pytest.mark.parametrize("tier", ["full", "container"])
async def test_a_warm_command_looks_at_each_folder_twice_and_reads_none(
    tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placeholders, "LINGER_SECONDS", 600.0)  # however slow the machine is
    # Each file that an earlier test had hidden from commands would be looked for.
    for registered in ("_hidden", "_protected"):
        monkeypatch.setattr(own_files, registered, {})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for number in range(FOLDERS):
        (tmp_path / f"source/package_{number}").mkdir(parents=True)
    (tmp_path / ".env").write_text("TOKEN=x\n")
    subprocess.run(["git", "-C", str(tmp_path), "add", "-f", ".env"], check=True)
    async with ShellSandbox(tmp_path, tier=tier) as shell:
        # Until the placeholders are there, and nothing has changed within a step of the clock for files.
        for _ in range(3):
            await shell.run("sleep 0.05")
        found = min([await count_calls(shell.run("true")) for _ in range(3)], key=Counter.total)
    assert found["scandir"] == 0
    homes = len(list_home_folders())
    assert found["calls"] <= MOST_CALLS + MOST_CALLS_PER_HOME * homes, found
    looks = sum(found[name] for name in ("stat", "lstat", "readlink", "listdir", "access"))
    assert looks - 2 * FOLDERS <= MOST_LOOKS + MOST_LOOKS_PER_HOME * homes, found
