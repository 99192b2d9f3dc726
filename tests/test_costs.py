"""What a run and a call cost, counted as the benchmarks count it: times depend on the machine, counts don't."""

import importlib.util
from pathlib import Path

import pytest

from ferrule.execution import FileJournal
from ferrule.sandbox.doctor import detect_layers
from ferrule.sandbox.tiers import Tier

ROOT = Path(__file__).parents[1]


def load_benchmark(name):
    specification = importlib.util.spec_from_file_location(f"{name}_benchmark", ROOT / "benchmarks" / f"{name}.py")
    benchmark = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(benchmark)
    return benchmark


async def test_a_run_with_an_async_call_takes_few_function_calls(tmp_path):
    overhead = load_benchmark("overhead")
    with FileJournal(tmp_path / "journal.jsonl") as journal:
        calls = await overhead.count_calls(journal)
    assert calls <= overhead.CALLS


@pytest.mark.parametrize("name", ["ferrule ask", "Pipeline.run", "a warm call"])
def test_a_question_and_a_call_pass_through_few_files_functions_and_frames(name):
    benchmark = load_benchmark("way_of_a_call")
    way = benchmark.find_way(name, ROOT / "src")
    for what in benchmark.LIMITS[name]:
        assert way[what], f"the {what} weren't found"
    assert not benchmark.list_excesses(name, way)


def test_the_first_shell_command_passes_through_few_files_and_functions():
    if detect_layers().shell_tier is not Tier.FULL:
        pytest.skip("a command can have no namespaces of its own here")
    name, benchmark = "the first shell command", load_benchmark("way_of_a_call")
    way = benchmark.find_way(name, ROOT / "src")
    assert "sandbox/shell/backends/namespaces.py" in way["files"]
    assert not benchmark.list_excesses(name, way)
