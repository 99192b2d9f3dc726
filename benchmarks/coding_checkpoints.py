"""Checkpoints of the coding agent: before writing 20 known files, and before a command in a tree of 50,000.

    python benchmarks/coding_checkpoints.py [--files 50000] [--json]

The tree is a git repository. Before each measurement a few files change, as they do between two turns; `git stash
create` and a checkpoint then run in turns, over the same tree. The first checkpoint of a workspace reads every file;
that runs when a session starts, and is shown without a limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ferrule.coding.checkpoints import Checkpoints
from ferrule.sandbox.file_access import FileAccess

ROUNDS = 15
LIMITS = {"twenty files (ms)": 30.0, "command (× git stash create)": 1.5}


def make_tree(folder: Path, count: int) -> list[Path]:
    """A repository of `count` small files, 20 a folder."""
    chance = random.Random(1)
    lines = [f"line {number} of some source text with words\n" for number in range(500)]
    paths = []
    for number in range(count):
        path = folder / f"p{number // 1000}" / f"m{number // 20 % 50}" / f"f{number % 20}.py"
        if number % 20 == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" + "".join(chance.choices(lines, k=chance.randrange(5, 100))), encoding="utf-8")
        paths.append(path)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all")
    return paths


def git(folder: Path, *arguments: str) -> None:
    """Run git with a name, and no settings of the user's."""
    names = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "gc.auto=0")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", *names, *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def change(paths: list[Path], turn: int) -> None:
    """Change three files, as a turn does."""
    for path in random.Random(turn).sample(paths, 3):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"# {turn}\n")


async def measure(count: int) -> dict[str, float]:
    """Medians, in milliseconds."""
    with tempfile.TemporaryDirectory() as top:
        workspace, store = Path(top, "workspace"), Path(top, "store")
        workspace.mkdir()
        paths = make_tree(workspace, count)
        change(paths, -1)
        checkpoints = Checkpoints(workspace, store, FileAccess(workspace))
        start = time.perf_counter()
        await checkpoints.prepare()
        first = time.perf_counter() - start
        times: dict[str, list[float]] = {"stash": [], "command": [], "files": [], "end": []}
        for turn in range(ROUNDS):
            change(paths, turn)
            start = time.perf_counter()
            await asyncio.to_thread(git, workspace, "stash", "create")
            times["stash"].append(time.perf_counter() - start)
            checkpoints.begin_turn(f"turn {turn}")
            start = time.perf_counter()
            await checkpoints.before_command()
            times["command"].append(time.perf_counter() - start)
            change(paths, 1000 + turn)
            start = time.perf_counter()
            await checkpoints.end_turn()
            times["end"].append(time.perf_counter() - start)
            known = random.Random(turn).sample(paths, 20)
            checkpoints.begin_turn(f"files {turn}")
            start = time.perf_counter()
            await checkpoints.before_write(known)
            times["files"].append(time.perf_counter() - start)
            await checkpoints.end_turn()
        await checkpoints.aclose()
        assert checkpoints.take_announcements() == []
    return {"first": first * 1000, **{name: statistics.median(found) * 1000 for name, found in times.items()}}


def main() -> None:
    """Measure and print; exit status 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measure(options.files))
    reached = {
        "twenty files (ms)": found["files"],
        "command (× git stash create)": found["command"] / found["stash"],
    }
    if options.json:
        print(json.dumps({"milliseconds": found, "reached": reached, "limits": LIMITS}))
    else:
        print(f"first checkpoint of {options.files:,} files  {found['first']:8.0f} ms")
        print(f"git stash create                    {found['stash']:8.0f} ms")
        print(f"checkpoint before a command         {found['command']:8.0f} ms")
        print(f"end of its turn                     {found['end']:8.0f} ms")
        print(f"checkpoint before 20 known files    {found['files']:8.1f} ms")
        for name, limit in LIMITS.items():
            print(f"{name}: {reached[name]:.2f} (at most {limit:g})")
    sys.exit(any(reached[name] > limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    main()
