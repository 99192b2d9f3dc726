"""How long `ferrule code` takes to its prompt, against a process that only imports what such a program needs.

    python benchmarks/coding_start.py [--json] [--runs 15]

Both run on a terminal of their own and take turns; a time is wall time from the start of the process to its first
prompt, which the other process prints after its imports. The model is loaded behind the prompt, and isn't counted.
"""

import argparse
import json
import os
import pty
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 1.5
PROMPT = "›".encode()
IMPORTS = "import asyncio, prompt_toolkit, pydantic, rich.markdown, typer; print('\\u203a', flush=True)"
PROGRAMS = {
    "imports": [sys.executable, "-c", IMPORTS],
    "ferrule code": [sys.executable, "-m", "ferrule", "code", "--model", "echo"],
}


def time_to_prompt(command: list[str], folder: str) -> float:
    """Seconds until a process has shown its prompt."""
    master, slave = pty.openpty()
    home = dict.fromkeys(("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"), folder)
    environment = {**os.environ, **home, "TERM": "xterm-256color"}
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment, start_new_session=True
    )
    os.close(slave)
    shown = b""
    try:
        while PROMPT not in shown:
            if not select.select([master], [], [], 30)[0]:
                raise SystemExit(f"{command}: no prompt came: {shown!r}")
            shown += os.read(master, 65536)
        return time.perf_counter() - started
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(master)


def measure(runs: int) -> dict[str, float]:
    """The median of each program, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        for run in range(runs + 1):
            for name, command in PROGRAMS.items():
                taken = time_to_prompt(command, str(Path(folder).resolve()))
                if run:  # the first writes the compiled files that all later ones read
                    times[name].append(taken)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How long `ferrule code` takes to its prompt.")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--runs", type=int, default=15, help="how many runs the medians are taken of")
    arguments = parser.parse_args()
    medians = measure(arguments.runs)
    ratio = medians["ferrule code"] / medians["imports"]
    if arguments.json:
        print(json.dumps({"seconds": medians, "ratio": ratio, "limit": LIMIT}, indent=2))
        return
    for name, seconds in medians.items():
        print(f"{name:14} {1000 * seconds:6.0f} ms to the prompt")
    print(f"{'ratio':14} {ratio:6.2f} (limit {LIMIT})")


if __name__ == "__main__":
    main()
