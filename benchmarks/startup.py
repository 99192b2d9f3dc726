"""What starting costs, and what the default install weighs, against the limits that are promised.

    python benchmarks/startup.py [--json] [--runs 15] [--install]

A time is CPU time of a process of its own, the median over the runs, with that of an interpreter that does nothing
taken off; the processes take turns within each round. `--install` makes an environment, installs this folder into it
with no extra, and adds up what came into site-packages, `.pyc` included, numpy not.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIMIT_MEGABYTES = 60

# What is run, and how many milliseconds of CPU over a bare interpreter it may take.
BARE = "pass"
HELP = "import sys; sys.argv = ['ferrule', '--help']; from ferrule.cli import main; main()"
MEASURED = {"import ferrule": ("import ferrule", 150), "ferrule --help": (HELP, 180)}


def cpu_milliseconds(code: str) -> float:
    """CPU time, in milliseconds, of a fresh interpreter that runs `code`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def startup(runs: int) -> dict[str, dict[str, float]]:
    """The median of each program over a bare interpreter's, beside its limit."""
    programs = {"bare": BARE, **{name: code for name, (code, _) in MEASURED.items()}}
    # The first process writes the compiled files that all later ones read.
    times: dict[str, list[float]] = {name: [] for name in programs if cpu_milliseconds(programs[name])}
    for _ in range(runs):
        for name, code in programs.items():
            times[name].append(cpu_milliseconds(code))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    return {
        name: {"milliseconds": medians[name] - medians["bare"], "limit": limit, "bare": medians["bare"]}
        for name, (_, limit) in MEASURED.items()
    }


def install() -> dict[str, Any]:
    """The size of the default install, in megabytes of 1,000,000 bytes, by package."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
        pinned = [str(ROOT), "--constraint", str(ROOT / "constraints.txt")]
        (packages,) = Path(folder).glob("lib/python*/site-packages")
        # An environment comes with pip, and with setuptools before Python 3.12.
        not_counted = {"numpy", *(one.name for one in distributions(path=[str(packages)]))}
        subprocess.run([*pip, "install", *pinned], stdout=sys.stderr, check=True)
        sizes = Counter({one.name: size(one) for one in distributions(path=[str(packages)])})
    counted = {name: bytes_ / 1e6 for name, bytes_ in sizes.most_common() if name not in not_counted}
    return {"megabytes": sum(counted.values()), "limit": LIMIT_MEGABYTES, "packages": counted}


def size(distribution: Distribution) -> int:
    """How many bytes the files of an installed package take."""
    paths = {Path(str(file.locate())) for file in distribution.files or []}
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What starting costs, and what the default install weighs.")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--runs", type=int, default=15, help="how many runs the medians are taken of")
    parser.add_argument("--install", action="store_true", help="also install into an environment of its own")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {"startup": startup(arguments.runs)}
    if arguments.install:
        figures["install"] = install()
    if arguments.json:
        json.dump(figures, sys.stdout, indent=2)
        print()
        return
    for name, taken in figures["startup"].items():
        print(f"{name:16} {taken['milliseconds']:6.0f} ms of CPU over bare Python (limit {taken['limit']})")
    if arguments.install:
        weight = figures["install"]
        print(f"{'default install':16} {weight['megabytes']:6.1f} MB in site-packages (limit {weight['limit']})")
        for name, megabytes in weight["packages"].items():
            print(f"    {name:28} {megabytes:6.2f}")


if __name__ == "__main__":
    main()
