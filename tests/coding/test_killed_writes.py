"""A process killed in the middle of writing leaves every file whole: as it was, or as it should be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, os, random, signal, sys, time
from pathlib import Path

import pytest
from ferrule.coding.files.tools import FileTools
from ferrule.coding.workspace import Workspace

folder = Path(sys.argv[1])
tools = FileTools(Workspace(folder))
choose = random.Random(7)
CONTENTS = [letter * 300_000 + "\\n" for letter in "ab"]


async def write_for_ever():
    while True:
        for old, new in (CONTENTS, CONTENTS[::-1]):
            tools.read_file("one.txt", 1, 1)
            if tools._load("one.txt").text.raw == old:
                await tools.write_file("one.txt", new)
            lines = (f"*** Update File: {name}\\n@@\\n-{old}+{new}" for name in ("two.txt", "three.txt"))
            if tools._load("two.txt").text.raw == tools._load("three.txt").text.raw == old:
                await tools.apply_patch("*** Begin Patch\\n" + "".join(lines) + "*** End Patch")


tools.read_file("one.txt", 1, 1)
seen = set()
for _ in range(100):
    for name in ("two.txt", "three.txt"):
        (folder / name).write_text(CONTENTS[0])
    child = os.fork()
    if not child:
        try:
            asyncio.run(write_for_ever())
        finally:
            os._exit(3)
    time.sleep(choose.uniform(0.01, 0.15))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, "it ended by itself"
    for path in folder.iterdir():
        seen.add(path.read_text())
        assert seen <= set(CONTENTS), path
assert len(seen) == 2, "nothing was written"
print("whole")
"""


@pytest.mark.slow
def test_files_are_whole_however_often_the_writer_is_killed(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("a" * 300_000 + "\n")
    for name in ("two.txt", "three.txt"):
        (tmp_path / name).write_text("a" * 300_000 + "\n")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "whole\n", done.stderr
