"""The settings of an analysis: the seed's names, its formulas, and what a mode sets."""

import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.analysis.settings import AnalysisSettings, extend_timeout, list_settings
from ferrule.errors import SettingsError
from tables import each_case

OF_THE_SEED = (
    "reasoning_temperature",
    "deep_knowledge_temperature",
    "temperature_offset",
    "retry_temperature_increase",
    "tool_timeout",
    "python_tool_timeout",
    "tool_retries",
    "python_max_ast_retries",
    "python_max_safety_retries",
    "python_max_runtime_retries",
    "python_max_tool_query_retries",
)


@each_case("name", OF_THE_SEED)
def test_each_setting_of_the_seed_is_there_and_described(name: str) -> None:
    assert next(description for one, _, description in list_settings() if one == name)


def test_every_setting_is_described() -> None:
    assert [name for name, _, description in list_settings() if not description] == []


@pytest.mark.parametrize(
    ("base", "attempt", "seconds"), [(60, 0, 60), (60, 1, 72), (61, 1, 73), (10, 5, 20), (1, 3, 1)]
)
def test_a_retry_has_a_fifth_more_time(base: int, attempt: int, seconds: int) -> None:
    assert extend_timeout(base, attempt) == (base * (5 + attempt)) // 5 == seconds


def test_python_has_its_own_timeout() -> None:
    settings = AnalysisSettings(tool_timeout=10, python_tool_timeout=100)
    assert settings.timeout_for("py_executor", 1) == 120
    assert settings.timeout_for("logic_kernel", 1) == 12


def test_python_is_run_again_once() -> None:
    settings = AnalysisSettings(tool_retries=5)
    assert settings.retries_for("py_executor") == 1
    assert settings.retries_for("logic_kernel") == 5


@pytest.mark.parametrize(("attempt", "expected"), [(0, 0.5), (1, 0.65), (2, 0.8), (20, 2.0)])
def test_temperature_rises_with_each_retry(attempt: int, expected: float) -> None:
    settings = AnalysisSettings(temperature_offset=0.1, retry_temperature_increase=0.15)
    assert settings.temperature_for(0.4, attempt) == expected


def test_temperature_never_falls_below_zero() -> None:
    assert AnalysisSettings(temperature_offset=-1).temperature_for(0.4) == 0


def test_a_mode_sets_what_is_not_given() -> None:
    limits = AnalysisSettings(mode="research", max_iterations=2).mode_limits
    assert (limits.iterations, limits.candidates, limits.calls) == (2, 3, 600)


def test_a_wrong_setting_is_an_error_on_one_line() -> None:
    with pytest.raises(SettingsError, match=r"^tool_retries: must be .*, not -1$"):
        AnalysisSettings(tool_retries=-1)
    with pytest.raises(SettingsError, match=r"^mode: .*; max_tasks: must be less than or equal to 50, not 60$"):
        AnalysisSettings(max_tasks=60, mode="fast")
    with pytest.raises(SettingsError, match=r"^unknown setting 'tool_retrys'; the nearest: tool_retries"):
        AnalysisSettings(tool_retrys=1)


@pytest.mark.parametrize("wrong", ["many", 2.5])
def test_what_is_expected_is_said_once(wrong: object) -> None:
    with pytest.raises(SettingsError, match=rf"^max_tasks: must be a valid integer, not {wrong!r}$"):
        AnalysisSettings(max_tasks=wrong)


def test_importing_the_room_loads_nothing_heavy() -> None:
    heavy = "{'pydantic', 'pandas', 'numpy', 'asyncio'}"
    code = f"import sys, ferrule.analysis; print(*{heavy}.intersection(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_documents_list_every_setting() -> None:
    page = (Path(__file__).parents[2] / "docs" / "analysis.md").read_text(encoding="utf-8")
    for name, default, description in list_settings():
        assert f"| `{name}` | `{default}` | {description} |\n" in page
