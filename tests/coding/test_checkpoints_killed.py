"""The program is killed at random moments: no file is half-written, and undo gives the state before the turn."""

import hashlib
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkpoint_trees import read_tree

from ferrule.coding.checkpoints import Checkpoints

SCRIPT = Path(__file__).with_name("killed_session.py")
STEPS = Path(__file__).with_name("killed_at_each_step.py")


def run_and_kill(action: str, top: Path, seed: int, seconds: float) -> None:
    """Start the program, and kill it with everything that it has started."""
    command = [sys.executable, str(SCRIPT), action, *(str(top / name) for name in ("workspace", "store", "log"))]
    reader, writer = os.pipe()
    program = subprocess.Popen([*command, str(seed)], stdin=writer, stdout=subprocess.PIPE, start_new_session=True)
    os.close(writer)
    with program, os.fdopen(reader, "rb") as ended:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        time.sleep(seconds)
        os.killpg(program.pid, signal.SIGKILL)
        # A killed process still ends its system call. Commands inherit the pipe, and close it as they end.
        ended.read()


def check_whole(workspace: Path) -> None:
    """Check that each file that a tool wrote has the content that its first line promises."""
    for path in workspace.rglob("tool-*.txt"):
        digest, _, body = path.read_bytes().partition(b"\n")
        assert hashlib.sha256(body).hexdigest().encode() == digest, path


async def kill_and_undo(top: Path, seed: int) -> None:
    """One program that is killed as it works, perhaps one that is killed as it undoes, then undo and redo."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    workspace, store, log = (top / name for name in ("workspace", "store", "log"))
    run_and_kill("work", top, seed, chance.uniform(0, 0.5))
    check_whole(workspace)
    found = read_tree(workspace)
    states = [
        pickle.loads((log / f"{number}.pickle").read_bytes()) for number in range(len(list(log.glob("*.pickle"))))
    ]
    is_undo_killed = chance.random() < 0.4
    if is_undo_killed:
        run_and_kill("undo", top, seed, chance.uniform(0, 0.06))
        check_whole(workspace)
    checkpoints = Checkpoints(workspace, store)
    standing = [turn for turn in await checkpoints.list_turns() if turn.status != "undone"]
    was_undone = any(turn.status == "undone" for turn in await checkpoints.list_turns())
    if not was_undone:
        report = await checkpoints.undo()
        if report.turn is None:
            assert states == [] or found == states[-1], str(report)
        else:
            assert report.is_complete, str(report)
            assert read_tree(workspace) == states[int(report.turn.label)], str(report)
            assert report.turn.label == str(len(states) - 1) or found == states[-1], str(report)
    elif standing:
        assert read_tree(workspace) == states[int(standing[-1].label) + 1]
    report = await checkpoints.redo()
    assert report.turn is None or report.is_complete, str(report)
    assert read_tree(workspace) == found, str(report)
    await checkpoints.aclose()
    assert checkpoints.take_announcements() == []


async def repeat(top: Path, times: int) -> None:
    """Kill programs in one workspace again and again: each finds what the one before has left."""
    (top / "workspace").mkdir()
    (top / "workspace" / "old.txt").write_bytes(b"one\r\ntwo")
    (top / "log").mkdir()
    first = random.SystemRandom().randrange(2**32)
    for number in range(times):
        await kill_and_undo(top, first + number)


async def test_undo_after_kill(tmp_path: Path) -> None:
    await repeat(tmp_path, 5)


@pytest.mark.slow
async def test_undo_after_a_hundred_kills(tmp_path: Path) -> None:
    await repeat(tmp_path, 100)


def test_undo_and_redo_finish_what_a_killed_one_began(tmp_path: Path) -> None:
    """Wherever it is killed, the next one takes what that has left for its own, not for later changes of the user."""
    done = subprocess.run([sys.executable, str(STEPS), str(tmp_path)], capture_output=True, text=True)
    assert re.fullmatch(r"\d\d steps\n", done.stdout), done.stdout + done.stderr
