"""Runs the coverage-guided fuzzer on each notation, one after the other, from the corpus beside this file.

    python fuzz/run.py [--seconds 60 | --runs N] [--seed N] [--notation NAME] [--json]

With `--seed` the same inputs are drawn each time, as long as the readers are the same: where such a run fails and has
not before, it is the change that broke it. That takes a system on which `setarch` can fix the addresses of objects,
as Docker's default profile doesn't let it; elsewhere runs part after some thousand inputs. `--runs` counts inputs
rather than seconds.
Exit status 1 where a reader raised or broke a promise; the input is then in `fuzz/found/`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LONGEST = 1_024
_FIGURES = {"inputs": r"stat::number_of_executed_units:\s*(\d+)", "edges": r"cov: (\d+)"}


def fuzz(notation: str) -> None:
    """The fuzzer itself, in a process of its own: it ends the process when its time is over."""
    import atheris

    with atheris.instrument_imports(include=["ferrule.dialects"]):
        from target import check, notations
    known = notations()[notation]
    atheris.Setup([sys.argv[0], *sys.argv[3:]], lambda data: check(known, data))
    atheris.Fuzz()


def _at_fixed_addresses() -> list[str]:
    """What to put before a command so that its objects get the same addresses, and so hashes, each time."""
    prefix = ["setarch", "--addr-no-randomize"]
    try:
        return prefix if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0 else []
    except OSError:
        return []


def run(notation: str, limit: str, seed: int | None) -> dict[str, object]:
    """Fuzz one notation in a process of its own, up to `limit`, a flag of libFuzzer; what came of it."""
    from target import corpus

    found = HERE / "found"
    found.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as inputs:
        for number, data in enumerate(corpus(notation)):
            Path(inputs, str(number)).write_bytes(data)
        flags = [limit, f"-max_len={LONGEST}", "-print_final_stats=1", "-timeout=10", "-reload=0"]
        command = [sys.executable, __file__, "--fuzz", notation, *flags]
        command += [f"-artifact_prefix={found}/{notation}-", inputs]
        surroundings = dict(os.environ)
        if seed is not None:
            command = [*_at_fixed_addresses(), *command, f"-seed={seed}"]
            surroundings["PYTHONHASHSEED"] = "0"
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings)
    figures = {name: int((re.findall(pattern, done.stderr) or ["0"])[-1]) for name, pattern in _FIGURES.items()}
    fault = "" if done.returncode == 0 else (done.stdout + done.stderr)[-3_000:]
    return {"notation": notation, **figures, "fault": fault}


def main() -> int:
    """Fuzz all notations and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    until = parser.add_mutually_exclusive_group()
    until.add_argument("--seconds", type=int, default=60, help="how long each notation is fuzzed")
    until.add_argument("--runs", type=int, help="how many inputs each notation is given instead")
    parser.add_argument(
        "--seed", type=int, help="what the inputs are drawn with; another one each time where none is given"
    )
    parser.add_argument("--notation", action="append")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    from target import notations

    limit = f"-runs={options.runs}" if options.runs is not None else f"-max_total_time={options.seconds}"
    faults = 0
    for notation in options.notation or notations():
        result = run(notation, limit, options.seed)
        faults += bool(result["fault"])
        if options.json:
            print(json.dumps(result), flush=True)
        else:
            print(f"{notation:<16}{result['inputs']:>10,} inputs {result['edges']:>6,} edges", flush=True)
            print(str(result["fault"]), end="", flush=True)
    return int(faults > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fuzz"]:
        fuzz(sys.argv[2])
    sys.exit(main())
