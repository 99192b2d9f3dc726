"""An edit of a 5 MB file by `edit_file`, called as a model calls it, against reading and writing the file.

    python benchmarks/coding_edit.py [--json]

The file was read by `read_file` before, as a model does. Both flush what they write to the disk: a write that isn't
flushed is shown too. The edit is judged by the policy, which sees its diff, finds out where the text is and that the
file is what was read, and says what has changed. Both run in turns, so that other programs of the machine make both
slower; the ratio is the median of those of 40 rounds, and that of the fastest is shown too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ferrule.coding.files.tools import FileTools
from ferrule.coding.workspace import Workspace
from ferrule.conversation import ToolCall, ToolResult
from ferrule.execution import Executor, Policy
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

ROUNDS = 40
LIMIT = 3.0
SIZE = 5_000_000


def make_text() -> str:
    """Five megabytes of lines, one of which is edited."""
    lines = [f"    value_{number} = compute({number * 7919 % 1000}, name='row {number}')\n" for number in range(95_000)]
    lines[len(lines) // 2] = make_lines(0)
    return "".join(lines)[:SIZE]


def make_lines(number: int) -> str:
    """The lines that are edited, as a model quotes them."""
    return f"def total(values):\n    here = {number}\n    return sum(values) + here\n"


def rewrite(path: Path, *, is_flushed: bool) -> None:
    """Read the file and write it again."""
    data = path.read_bytes()
    with path.open("wb") as file:
        file.write(data)
        if is_flushed:
            file.flush()
            os.fsync(file.fileno())


def measure(work: Callable[[], None]) -> float:
    """Milliseconds of one run."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


async def run(folder: Path) -> dict[str, float]:
    """The median of each, in milliseconds, and their ratio."""
    edited, other = folder / "edited.py", folder / "other.py"
    for path in (edited, other):
        path.write_text(make_text(), encoding="utf-8")
    tools = FileTools(Workspace(folder))
    edits: list[float] = []
    rewrites: list[float] = []
    unflushed: list[float] = []
    async with ToolRegistry(list(tools.tools)).open() as bound:
        executor = Executor(bound, policy=Policy(profile="all"))
        for number in range(ROUNDS + 1):
            await asyncio.sleep(0.05)  # so that the file was written before it is read, by its times
            await call(executor, "read_file", {"path": "edited.py", "limit": 10})
            replacement = {"old": make_lines(number), "new": make_lines(number + 1)}
            began = time.perf_counter()
            await call(executor, "edit_file", {"path": "edited.py", "edits": [replacement]})
            edits.append((time.perf_counter() - began) * 1000)
            rewrites.append(measure(lambda: rewrite(other, is_flushed=True)))
            unflushed.append(measure(lambda: rewrite(other, is_flushed=False)))
    # The first of all makes what is kept.
    ratios = [edit / other for edit, other in zip(edits[1:], rewrites[1:], strict=True)]
    return {
        "edit (ms)": round(statistics.median(edits[1:]), 2),
        "read, write and flush (ms)": round(statistics.median(rewrites[1:]), 2),
        "read and write (ms)": round(statistics.median(unflushed[1:]), 2),
        "ratio of the fastest": round(min(edits[1:]) / min(rewrites[1:]), 2),
        "ratio": round(statistics.median(ratios), 2),
    }


async def call(executor: Executor, name: str, arguments: dict[str, object]) -> None:
    """Run one call, as if a model had made it."""
    result = await executor.run(ToolCall("call", name, json.dumps(arguments)), CallScope())
    assert isinstance(result, ToolResult)
    assert not result.is_error, result.text


def main() -> int:
    """Measure and compare with the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(run(Path(folder)))
    if arguments.json:
        print(json.dumps(found | {"limit": LIMIT}))
    else:
        print("\n".join(f"{name:30} {value:8.2f}" for name, value in found.items()))
    return 0 if found["ratio"] <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
