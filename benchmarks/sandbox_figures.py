"""A figure in the Python sandbox against the same figure in a bare warm fork.

    python benchmarks/sandbox_figures.py [--json] [--rounds 40]

The bare side is an interpreter that has imported the same and drawn a figure, and forks a child for each that draws,
writes a PNG and hands it back through a pipe; nothing contains it. The two are measured in turns, in one run, as wall
clock from the request to the picture's bytes; figures are medians.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time

from ferrule.sandbox.python import PythonSandbox
from ferrule.sandbox.python.parent.zygote_process import make_zygote_environment

PACKAGES = ("numpy", "pandas", "matplotlib")
FIGURES = {
    "a line": "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('a')",
    "bars and a legend": (
        "import numpy as np, matplotlib.pyplot as plt\nfigure, axes = plt.subplots(1, 2, figsize=(9, 4))\n"
        "axes[0].bar(range(12), np.arange(12), label='b')\naxes[0].legend()\naxes[1].scatter(*np.random.rand(2, 500))"
    ),
}
BOUND = 1.5
BARE = """
import gc, io, json, os, sys
import numpy, pandas, matplotlib.pyplot as pyplot
def png():
    data = io.BytesIO()
    pyplot.figure(pyplot.get_fignums()[0]).savefig(data, format="png")
    return data.getvalue()
pyplot.plot([1, 2], label="1"); pyplot.title("1"); pyplot.legend(); png(); pyplot.close("all")
gc.collect(); gc.freeze()
for line in sys.stdin:
    there, here = os.pipe()
    if os.fork() == 0:
        exec(json.loads(line), {})
        with os.fdopen(here, "wb") as end: end.write(png())
        os._exit(0)
    os.close(here)
    with os.fdopen(there, "rb") as end: data = end.read()
    os.wait()
    print(len(data), flush=True)
"""


def bare_figure(process: "subprocess.Popen[str]", code: str) -> float:
    """Seconds of a figure in a bare fork."""
    assert process.stdin is not None
    assert process.stdout is not None
    begin = time.perf_counter()
    process.stdin.write(json.dumps(code) + "\n")
    process.stdin.flush()
    assert int(process.stdout.readline()) > 1000
    return time.perf_counter() - begin


async def sandbox_figure(sandbox: PythonSandbox, code: str) -> float:
    """Seconds of a figure in the sandbox."""
    begin = time.perf_counter()
    run = await sandbox.run(code)
    assert run.error is None, run.error
    assert len(run.images) == 1
    return time.perf_counter() - begin


async def measure(rounds: int) -> dict[str, tuple[float, float]]:
    """Medians in seconds, the bare fork's and the sandbox's, of each figure."""
    command = [sys.executable, "-c", BARE]
    environment = {**make_zygote_environment(), "HOME": "/nonexistent"}
    medians = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, stderr=subprocess.DEVNULL
    ) as process:
        async with PythonSandbox(packages=PACKAGES) as sandbox:
            for name, code in FIGURES.items():
                bare, ours = [], []
                for _ in range(rounds):
                    bare.append(bare_figure(process, code))
                    ours.append(await sandbox_figure(sandbox, code))
                medians[name] = statistics.median(bare), statistics.median(ours)
        assert process.stdin is not None
        process.stdin.close()
    return medians


def main() -> None:
    """Measure and print; exit status 1 where the bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    medians = asyncio.run(measure(options.rounds))
    ratios = {name: ours / bare for name, (bare, ours) in medians.items()}
    if options.json:
        print(json.dumps(ratios))
    else:
        for name, (bare, ours) in medians.items():
            kept = "" if ratios[name] <= BOUND else f"  MISSED: at most {BOUND}"
            print(f"{name:20} {ratios[name]:5.2f} ×  bare fork {bare * 1e3:.0f} ms, sandbox {ours * 1e3:.0f} ms{kept}")
    sys.exit(any(ratio > BOUND for ratio in ratios.values()))


if __name__ == "__main__":
    main()
