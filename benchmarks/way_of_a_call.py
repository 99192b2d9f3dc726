"""The way of the data: how many files, functions and frames of ferrule a question, a call and a command pass through.

    python benchmarks/way_of_a_call.py [--json] [--list] [--source FOLDER]

Each is run in an empty folder and a process of its own under a profiler that counts the functions which are entered, in
every thread, once the modules are imported: what runs while a module is loaded is not counted, nor are lambdas,
comprehensions and the engines. The frames are those that stand on the stack when the loop of a run begins,
`AgentLoop.converse`, after those of the main thread if it waits for the thread of the loop.
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
entered, frames = set(), []

def name(code):
    return code.co_filename.rpartition("/ferrule/")[2], code.co_qualname

def count(frame, event, argument):
    if event != "call" or "/ferrule/" not in frame.f_code.co_filename or frame.f_code.co_name.startswith("<"):
        return
    stack = list_frames(frame.f_back)
    if any(code.co_name == "<module>" for code in stack):
        return
    entered.add(name(frame.f_code))
    if frame.f_code.co_qualname == "AgentLoop.converse" and not frames:
        main = threading.main_thread()
        waiting = [] if threading.current_thread() is main else list_frames(sys._current_frames()[main.ident])
        frames.extend(map(name, waiting + stack))

def list_frames(frame):
    found = []
    while frame is not None:
        if "/ferrule/" in frame.f_code.co_filename:
            found.insert(0, frame.f_code)
        frame = frame.f_back
    return found

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
    "Pipeline.run": """
from ferrule import calculator, model

async def run():
    pipeline = model("embedded").chat("What is 123456 * 789?").using(calculator)
    follow(True)
    await pipeline.run()
    follow(False)

asyncio.run(run())
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
LIMITS = {
    "ferrule ask": {"files": 72, "functions": 424, "frames": 9},
    "Pipeline.run": {"frames": 3},
    "a warm call": {"files": 11, "functions": 23},
    "the first shell command": {"files": 65, "functions": 408},
}
"""The most files, functions, and frames before the loop; the test suite checks them. Those of the shell are for its
full tier, in which a command has namespaces of its own. A few functions of the way of a question depend on which of two
threads is first."""


def find_way(name: str, source: Path) -> dict[str, list[str]]:
    """The `files` and `functions` that a program passes through, and the `frames` before the loop, the first first."""
    ending = "\nfollow(False)\nprint(json.dumps([sorted(entered), frames]))"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", COUNTING + PROGRAMS[name] + ending]
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, env=environment, cwd=folder
        )
    entered, frames = json.loads(done.stdout.splitlines()[-1])
    counted = [(file, function) for file, function in entered if not file.startswith("engines/")]
    return {
        "files": sorted({file for file, _ in counted}),
        "functions": [f"{file}: {function}" for file, function in counted],
        "frames": [f"{file}: {function}" for file, function in frames],
    }


def list_excesses(name: str, way: dict[str, list[str]]) -> list[str]:
    """What is longer than it may be, with its limit; empty for a way within its limits."""
    return [
        f"{name}: {len(way[what])} {what}, at most {most}"
        for what, most in LIMITS[name].items()
        if len(way[what]) > most
    ]


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
            limits = LIMITS[name].items()
            print(f"{name}:", ", ".join(f"{len(way[what])} {what} (at most {most})" for what, most in limits))
            for what, _ in limits if options.list else ():
                print(f"  {what}:", *way[what], sep="\n    ")
    excesses = [one for name, way in ways.items() for one in list_excesses(name, way)]
    if excesses:
        raise SystemExit("\n".join(excesses))


if __name__ == "__main__":
    main()
