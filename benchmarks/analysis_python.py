"""What a Python task costs besides its model: four questions, functions, checks, the run in the sandbox, result checks.

    python benchmarks/analysis_python.py [--json] [--rounds 40]

The model is a script that answers at once, and the code sums a column of a table of 100,000 rows, with two checks of
its result. A chart is drawn by a task; a bare fork of a warm interpreter draws the same one, in turns. Figures are
medians; the bound of a task is on the CPU time of this process and of the run, since the wall clock depends on what
else the machine does. Ends with 1 where a bound isn't kept.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ferrule.analysis.asking import Asker, ModelChoice
from ferrule.analysis.data import DataSession, make_sources, read_tables
from ferrule.analysis.data.task_value import TaskValue
from ferrule.analysis.functions import FunctionRepository
from ferrule.analysis.limits import AnalysisLimits
from ferrule.analysis.python_executor.executor import PythonExecutor
from ferrule.analysis.settings import AnalysisSettings
from ferrule.models.scripted import ScriptedModel
from ferrule.sandbox.python import PythonResult
from ferrule.sandbox.python.parent.zygote_process import make_zygote_environment
from sandbox_figures import BARE, bare_figure

MB = 1 << 20
ROWS = 100_000
BOUND, CHART_BOUND = 0.060, 1.5
SUM = {
    "code": "sales = tables['sales']\nresult = {'total': float(sales.amount.sum()), 'rows': len(sales)}",
    "result_checks": [
        {"states": "the total is the mean times the rows", "kind": "second_method",
         "code": "abs(result['total'] - sales.amount.mean() * len(sales)) < 1e-6 * result['total']"},
        {"states": "all rows are counted", "kind": "range", "code": f"result['rows'] == {ROWS}"},
    ],
}  # fmt: skip
DRAWING = (
    "import numpy as np, matplotlib.pyplot as plt\nfigure, axes = plt.subplots(1, 2, figsize=(9, 4))\n"
    "axes[0].bar(range(12), np.arange(12), label='b')\naxes[0].legend()\naxes[1].scatter(*np.random.rand(2, 500))"
)
CHART = {"code": f"{DRAWING}\nresult = 1", "result_checks": []}
PREPARATION: list[dict[str, Any]] = [
    {"primary_approach": "Sum the amounts.", "recommended_function_paths": ["pandas.DataFrame.sum"]},
    {"extracted_values": {}},
    {"query": "Sum the amounts."},
]


class MeasuredSession(DataSession):
    """Adds up the CPU time of its runs."""

    cpu = 0.0

    async def run(self, code: str, results: Mapping[str, TaskValue] | None = None, *, timeout: float) -> PythonResult:
        done = await super().run(code, results, timeout=timeout)
        self.cpu += done.usage.cpu
        return done


async def measure_task(
    data: MeasuredSession, functions: FunctionRepository, code: dict[str, Any]
) -> tuple[float, float]:
    """Seconds of one task: of wall clock, and of CPU."""
    model = ScriptedModel(*(json.dumps(answer) for answer in (*PREPARATION, code)))
    executor = PythonExecutor(Asker(ModelChoice(model), AnalysisLimits()), AnalysisSettings(), data, functions)
    started, cpu = time.perf_counter(), time.process_time() + data.cpu
    outcome = await executor.run("t1", "What is the sum of the amounts?", "Data: sales", {})
    seconds = time.perf_counter() - started, time.process_time() + data.cpu - cpu
    assert outcome.error is None, outcome.error
    assert all(check.passed for check in outcome.checks), outcome.checks
    return seconds


async def measure(rounds: int) -> dict[str, Any]:
    """Tasks and charts, in turns with the bare fork."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sales.csv"
        pd.DataFrame({"amount": np.random.default_rng(1).random(ROWS)}).to_csv(path, index=False)
        tables = await read_tables(make_sources([path]), Path(folder) / "tables", memory=512 * MB)
        command = [sys.executable, "-c", BARE]
        bare = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=make_zygote_environment()
        )
        async with (
            await MeasuredSession.open(tables, memory=512 * MB) as data,
            await FunctionRepository.open() as functions,
        ):
            tasks, charts, forks = [], [], []
            for _ in range(rounds + 2):
                tasks.append(await measure_task(data, functions, SUM))
                charts.append(await measure_task(data, functions, CHART))
                forks.append(await asyncio.to_thread(bare_figure, bare, DRAWING))
        assert bare.stdin is not None
        bare.stdin.close()
        bare.wait()
    chart, fork = statistics.median([wall for wall, _ in charts[2:]]), statistics.median(forks[2:])
    task, task_cpu = (statistics.median(times) for times in zip(*tasks[2:], strict=True))
    return {"task": task, "task_cpu": task_cpu, "chart": chart, "bare_chart": fork, "ratio": chart / fork}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a Python task costs besides its model.")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    found = asyncio.run(measure(options.rounds))
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"a task besides its model: {found['task_cpu'] * 1000:.1f} ms of CPU, {found['task'] * 1000:.1f} ms")
        print(f"a task with a chart: {found['chart'] * 1000:.1f} ms; bare fork: {found['bare_chart'] * 1000:.1f} ms")
        print(f"ratio: {found['ratio']:.2f}")
    if found["task"] > BOUND or found["ratio"] > CHART_BOUND:
        sys.exit("a bound isn't kept")


if __name__ == "__main__":
    main()
