"""An edit of a 5 MB file by `edit_file`, against reading and writing the file.

    python benchmarks/coding_edit.py [--json]

The file was read by `read_file` before, as a model does. Both flush what they write to the disk: a write that isn't
flushed is shown too. The edit also finds out where the text is, that the file is what was read, and what has changed.
Both run in turns; the fastest of 40 rounds, since other
programs of the machine make both slower, and never faster.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ferrule.coding.files.tools import FileTools
from ferrule.coding.workspace import Workspace

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


def run(folder: Path) -> dict[str, float]:
    """The fastest of all, in milliseconds, and their ratio."""
    edited, other = folder / "edited.py", folder / "other.py"
    for path in (edited, other):
        path.write_text(make_text(), encoding="utf-8")
    tools = FileTools(Workspace(folder))
    times: dict[str, list[float]] = {"edit (ms)": [], "read, write and flush (ms)": [], "read and write (ms)": []}
    with asyncio.Runner() as runner:
        for number in range(ROUNDS + 1):
            time.sleep(0.05)  # so that the file was written before it is read, by its times
            tools.read_file("edited.py", 1, 10)
            edits = [{"old": make_lines(number), "new": make_lines(number + 1)}]
            works: dict[str, Callable[[], None]] = {
                "edit (ms)": lambda edits=edits: runner.run(tools.edit_file("edited.py", edits)),  # type: ignore[misc]
                "read, write and flush (ms)": lambda: rewrite(other, is_flushed=True),
                "read and write (ms)": lambda: rewrite(other, is_flushed=False),
            }
            for name, work in works.items():
                taken = measure(work)
                if number:  # the first makes what is kept
                    times[name].append(taken)
    fastest = {name: round(min(each), 2) for name, each in times.items()}
    return fastest | {"ratio": round(fastest["edit (ms)"] / fastest["read, write and flush (ms)"], 2)}


def main() -> int:
    """Measure and compare with the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder))
    if arguments.json:
        print(json.dumps(found | {"limit": LIMIT}))
    else:
        print("\n".join(f"{name:30} {value:8.2f}" for name, value in found.items()))
    return 0 if found["ratio"] <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
