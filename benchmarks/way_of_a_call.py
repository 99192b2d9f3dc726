"""The way of the data: through how many files and functions of ferrule a question, a call and a command pass.

    python benchmarks/way_of_a_call.py [--json] [--list] [--source FOLDER]

Each is run in an empty folder and a process of its own, under a profiler that counts the functions which are entered,
in every thread, once the modules are imported: what runs while a module is loaded is not counted, nor are lambdas and
comprehensions.
`--source` measures the `src` of another checkout, for a comparison.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]

COUNTING = """
import asyncio, contextlib, json, sys, threading
entered = set()

def count(frame, event, argument):
    if event != "call" or "/ferrule/" not in frame.f_code.co_filename or frame.f_code.co_name.startswith("<"):
        return
    code, above = frame.f_code, frame.f_back
    while above is not None:
        if above.f_code.co_name == "<module>" and "/ferrule/" in above.f_code.co_filename:
            return
        above = above.f_back
    entered.add((code.co_filename.rpartition("/ferrule/")[2], code.co_qualname))

def follow(on):
    sys.setprofile(count if on else None)
    threading.setprofile(count if on else None)
"""

PROGRAMS = {
    "ferrule ask": """
sys.argv = ["ferrule", "ask", "What is 123456 * 789?"]
from ferrule.cli import main
with contextlib.suppress(SystemExit):
    follow(True)
    main()
""",
    "a warm call": """
from ferrule import CallScope, Executor, ToolCall, ToolRegistry, tool

@tool
async def add(left: int, right: int) -> int:
    "Add two numbers."
    return left + right

async def run():
    registry = ToolRegistry([add])
    async with registry.open() as bound:
        executor = Executor(bound)
        scope = CallScope()
        for number in range(3):
            follow(number == 2)
            await executor.run(ToolCall(f"call_{number}", "add", '{"left": 1, "right": 2}'), scope)
        follow(False)

asyncio.run(run())
""",
    "the first shell command": """
sys.argv = ["ferrule", "call", "--tools", "shell", "--yes", "shell", "--command", "echo hi"]
from ferrule.cli import main
with contextlib.suppress(SystemExit):
    follow(True)
    main()
""",
}
LIMITS = {"ferrule ask": (94, 445), "a warm call": (11, 27), "the first shell command": (68, 412)}
"""The most files, and functions outside the engines; the test suite checks both. Those of the shell are for its full
tier, in which a command has namespaces of its own."""


def find_way(name: str, source: Path) -> dict[str, list[str]]:
    """The `files` that a program passes through, and its `functions` outside the engines."""
    ending = "\nfollow(False)\nprint(json.dumps(sorted(entered)))"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", COUNTING + PROGRAMS[name] + ending]
    with TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=folder)
    entered = json.loads(done.stdout.splitlines()[-1])
    return {
        "files": sorted({file for file, _ in entered}),
        "functions": sorted(f"{file}: {function}" for file, function in entered if not file.startswith("engines/")),
    }


def is_within_limits(name: str, way: dict[str, list[str]]) -> bool:
    """Whether a way is as short as it must be."""
    most_files, most_functions = LIMITS[name]
    return len(way["files"]) <= most_files and len(way["functions"]) <= most_functions


def main() -> None:
    """Measure, print, and fail where a way is longer than it may be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--list", action="store_true", help="name the files and functions")
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="the folder that ferrule is imported from")
    options = parser.parse_args()
    ways = {name: find_way(name, options.source.resolve()) for name in PROGRAMS}
    if options.json:
        print(json.dumps(ways, indent=2))
    else:
        for name, way in ways.items():
            files, functions, (most_files, most_functions) = way["files"], way["functions"], LIMITS[name]
            print(
                f"{name}: {len(files)} files (at most {most_files}), "
                f"{len(functions)} functions outside engines/ (at most {most_functions})"
            )
            if options.list:
                print(*(f"    {each}" for each in functions), sep="\n")
    if not all(is_within_limits(name, way) for name, way in ways.items()):
        raise SystemExit("a way is longer than it may be")


if __name__ == "__main__":
    main()
