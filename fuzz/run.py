"""Runs the coverage-guided fuzzer on each notation, one after the other, from the corpus beside this file.

    python fuzz/run.py [--seconds 60] [--notation NAME] [--json]

Exit status 1 where a reader raised or broke a promise; the input is then in `fuzz/found/`.
"""

from __future__ import annotations

import argparse
import json
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


def run(notation: str, seconds: int) -> dict[str, object]:
    """Fuzz one notation in a process of its own; what came of it."""
    from target import corpus

    found = HERE / "found"
    found.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as inputs:
        for number, data in enumerate(corpus(notation)):
            Path(inputs, str(number)).write_bytes(data)
        flags = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-print_final_stats=1", "-timeout=10"]
        command = [sys.executable, __file__, "--fuzz", notation, *flags]
        command += [f"-artifact_prefix={found}/{notation}-", inputs]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    figures = {name: int((re.findall(pattern, done.stderr) or ["0"])[-1]) for name, pattern in _FIGURES.items()}
    fault = "" if done.returncode == 0 else (done.stdout + done.stderr)[-3_000:]
    return {"notation": notation, **figures, "fault": fault}


def main() -> int:
    """Fuzz all notations and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--notation", action="append")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    from target import notations

    faults = 0
    for notation in options.notation or notations():
        result = run(notation, options.seconds)
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
