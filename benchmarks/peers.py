"""One tool call and an answer, and an import, against the frameworks that do the same.

    python -m venv PEERS
    PEERS/bin/pip install pydantic-ai-slim openai-agents langchain smolagents rigging llm
    python benchmarks/peers.py --python PEERS/bin/python [--json] [--rounds 3]

Each runs in a process of its own, they take turns, and of each the median over rounds counts: 360 runs a round, in
batches. What is run is in `peers_of/frameworks.py`: each framework with the model that it offers for tests, ours with
the scripted one; nobody writes a journal, logs or traces. Ours is run by this interpreter, the others by that of
`--python`; without it nothing is measured. CPU time; that of an import is over that of an interpreter that does
nothing. The goals are against the best of five: llm, a command-line tool before all, is measured beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

FRAMEWORKS = Path(__file__).parent / "peers_of" / "frameworks.py"
OURS, BESIDE = "ferrule", "llm"
# What a program of each begins with.
IMPORTS = {
    OURS: "from ferrule import model, tool",
    "pydantic-ai-slim": "from pydantic_ai import Agent",
    "openai-agents": "from agents import Agent, Runner, function_tool",
    "langchain": "from langchain.agents import create_agent; from langchain_core.tools import tool",
    "smolagents": "from smolagents import ToolCallingAgent, tool",
    "rigging": "from rigging import get_generator, tool",
    BESIDE: "import llm",
}
CHEAPER, LIGHTER = 10, 2
RUNS, IMPORTS_A_ROUND = 360, 3
Figure = TypeVar("Figure")


def run_of(python: str, *arguments: str) -> str:
    """What a Python process prints. Raises `SystemExit` where it fails."""
    # The packages of this environment are not for the other interpreter.
    kept = {name: value for name, value in os.environ.items() if python == sys.executable or name != "PYTHONPATH"}
    command = [python, *arguments]
    done = subprocess.run(command, env=kept, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{python} {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def import_milliseconds(python: str, code: str) -> float:
    """CPU of an import over that of nothing, in milliseconds; the best of several."""

    def cpu(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_of(python, "-c", code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    return min(cpu(code) for _ in range(IMPORTS_A_ROUND)) - min(cpu("pass") for _ in range(IMPORTS_A_ROUND))


def in_turns(rounds: int, python_of: Callable[[str], str], figure: Callable[[str, str], float]) -> dict[str, float]:
    """The median of a figure of each framework, which take turns."""
    found: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(rounds):
        for name, figures in found.items():
            figures.append(figure(name, python_of(name)))
    return {name: statistics.median(figures) for name, figures in found.items()}


def measure(python: str, rounds: int) -> dict[str, dict[str, float]]:
    """By framework: microseconds a run, and milliseconds of the import."""

    def python_of(name: str) -> str:
        return sys.executable if name == OURS else python

    def microseconds(name: str, python: str) -> float:
        (*_, last) = run_of(python, str(FRAMEWORKS), name, "--runs", str(RUNS)).splitlines()
        versions[name] = json.loads(last)["version"]
        return float(json.loads(last)["microseconds"])

    versions: dict[str, str] = {}
    runs = in_turns(rounds, python_of, microseconds)
    imports = in_turns(rounds, python_of, lambda name, python: import_milliseconds(python, IMPORTS[name]))
    return {
        f"{name} {versions[name]}": {"run_microseconds": runs[name], "import_milliseconds": imports[name]}
        for name in IMPORTS
    }


def times_of_the_best(found: dict[str, dict[str, float]], figure: str) -> float:
    """How many times ours the least of the others' is."""
    ours, *others = (each[figure] for name, each in found.items() if not name.startswith(f"{BESIDE} "))
    return min(others) / ours


def main() -> int:
    """Measure, print, and give 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", help="the interpreter of the environment that holds the peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.python is None:
        peers = " ".join(name for name in IMPORTS if name != OURS)
        print(f"nothing to compare with: python -m venv PEERS; PEERS/bin/pip install {peers};")
        print("then say --python PEERS/bin/python")
        return 0
    found = measure(options.python, options.rounds)
    cheaper, lighter = (times_of_the_best(found, figure) for figure in ("run_microseconds", "import_milliseconds"))
    if options.json:
        print(json.dumps({"frameworks": found, "cheaper": cheaper, "lighter": lighter, "goals": [CHEAPER, LIGHTER]}))
    else:
        for name, each in found.items():
            run, imported = each["run_microseconds"], each["import_milliseconds"]
            print(f"{name:26} {run:9,.0f} µs of CPU a run   {imported:6,.0f} ms an import")
        print(
            f"ferrule is {cheaper:.1f} times cheaper than the best (goal {CHEAPER}), {lighter:.1f} lighter ({LIGHTER})"
        )
    return int(cheaper < CHEAPER or lighter < LIGHTER)


if __name__ == "__main__":
    sys.exit(main())
