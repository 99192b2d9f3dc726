"""HumanEval's own solutions, run contained: all of them pass, and what the seed's lists refuse is told as refused."""

import gzip
import json
from pathlib import Path

import pytest

from ferrule.sandbox.python import PythonSandbox

HUMANEVAL = Path(__file__).parents[3] / "shared" / "vectors" / "humaneval.jsonl.gz"

pytestmark = pytest.mark.skipif(not HUMANEVAL.is_file(), reason="../shared/vectors is missing")


def tasks():
    return [json.loads(line) for line in gzip.decompress(HUMANEVAL.read_bytes()).splitlines()]


async def test_every_solution_passes_its_tests_under_advice():
    failed = {}
    async with PythonSandbox(packages=()) as sandbox:
        for task in tasks():
            code = (
                f"{task['prompt']}{task['canonical_solution']}\n{task['test']}\ncheck({task['entry_point']})\n'passed'"
            )
            run = await sandbox.run(code, timeout=30)
            if run.value != "passed" or run.findings:
                failed[task["task_id"]] = str(run.error or run.findings)
    assert len(tasks()) == 164
    assert failed == {}


async def test_the_seeds_lists_refuse_three_and_fail_none():
    kinds = {}
    async with PythonSandbox(packages=(), checks="strict") as sandbox:
        for task in tasks():
            run = await sandbox.run(task["prompt"] + task["canonical_solution"], timeout=30)
            kinds[task["task_id"]] = run.error.kind if run.error else "done"
        broken = await sandbox.run("1 / 0")
    refused = {task for task, kind in kinds.items() if kind == "refused"}
    assert refused == {"HumanEval/70", "HumanEval/144", "HumanEval/160"}
    assert set(kinds.values()) == {"refused", "done"}
    assert broken.error.kind == "exception"
