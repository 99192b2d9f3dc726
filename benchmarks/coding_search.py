"""`search` over a generated tree of 50,000 files, against ripgrep itself with the same options, interleaved.

python benchmarks/coding_search.py [--files 50000] [--rounds 15]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from ferrule.coding.search.ripgrep import find_ripgrep
from ferrule.coding.search.tools import make_search_tools
from ferrule.coding.workspace import Workspace
from ferrule.conversation import ToolCall
from ferrule.execution import Executor
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope

PATTERNS = {"rare": r"needle_\d+", "in one of 100 files": "haystack_of_module", "none": "not to be found"}
LINES = "".join(f"def function_{number}(argument):\n    return argument + {number}\n" for number in range(20))


def make_tree(folder: Path, files: int) -> None:
    """Make a repository with `files` files in 500 folders, and a tenth as many that .gitignore excludes."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / ".gitignore").write_text("ignored/\n*.log\n")
    for number in range(files):
        path = folder / f"package_{number % 25}" / f"part_{number // 25 % 20}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = LINES + ("haystack_of_module\n" if number % 100 == 0 else "")
        path.write_text(text + (f"needle_{number}\n" if number % 10_000 == 0 else ""))
    (folder / "ignored").mkdir()
    for number in range(files // 10):
        (folder / "ignored" / f"{number}.py").write_text(f"needle_{number}\n")


async def main() -> None:
    """Print the median seconds of both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    program = find_ripgrep()
    assert program is not None, "there is no ripgrep"
    with tempfile.TemporaryDirectory() as folder:
        make_tree(Path(folder), options.files)
        async with ToolRegistry(make_search_tools(Workspace(folder))).open() as bound:
            executor = Executor(bound)
            for name, pattern in PATTERNS.items():
                ours, own = [], []
                for _ in range(options.rounds + 1):
                    began = time.perf_counter()
                    command = [
                        program,
                        "--no-config",
                        "--hidden",
                        "--glob=!.git",
                        "--json",
                        "-e",
                        pattern,
                        "--",
                        folder,
                    ]
                    subprocess.run(command, capture_output=True, check=False)
                    own.append(time.perf_counter() - began)
                    began = time.perf_counter()
                    call = ToolCall("call_1", "search", json.dumps({"pattern": pattern}))
                    await executor.run(call, CallScope())
                    ours.append(time.perf_counter() - began)
                mine, theirs = statistics.median(ours[1:]), statistics.median(own[1:])
                print(f"{name}: search {mine * 1000:.0f} ms, ripgrep {theirs * 1000:.0f} ms, {mine / theirs:.2f}x")


if __name__ == "__main__":
    asyncio.run(main())
