"""What `ferrule analyze` prints of a result: failures under the answer, marks kept whole, differences in groups."""

from __future__ import annotations

import asyncio
from pathlib import Path

import openai_server
import pytest
from terminals import ferrule

from ferrule.analysis.events import TaskFinished
from ferrule.analysis.planning.answers import Synthesis
from ferrule.analysis.recording import Recording
from ferrule.analysis.recording.differences import RunDifference
from ferrule.analysis.recording.writer import RecordingWriter
from ferrule.analysis.result import AnalysisResult, OutputEntry, ResultCheck, TaskExecution
from ferrule.cli.analysis_answer import describe_comparison, print_answer
from ferrule.cli.analysis_progress import describe_event

FAILED = TaskExecution("t2", "logic_kernel", "Why?", status="failed", error="it took too long")
WRONG = TaskExecution(
    "t1", "py_executor", "Sum.", result="12", checks=(ResultCheck("below 10", False, "false, with 12 and 10"),)
)
WRITTEN = OutputEntry("synthesis", Synthesis(answer="Twelve."))


def make_result(*tasks: TaskExecution, answer: str = "Twelve.") -> AnalysisResult:
    entries = [OutputEntry("task_execution", task) for task in tasks]
    return AnalysisResult("How many?", answer=answer, output_entries=[*entries, WRITTEN])


def test_failures_stand_below_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(make_result(WRONG, FAILED))
    assert capsys.readouterr().out.splitlines() == [
        "Twelve.", "",
        "A check of t1 failed: below 10 (false, with 12 and 10)",
        "Without a result: t2: it took too long",
    ]  # fmt: skip
    assert describe_event(TaskFinished(WRONG)) == ["! t1 py_executor  1 check failed: below 10"]


def test_an_account_of_one_line_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(AnalysisResult("How many?", answer="There is no answer: no plan.", stopped="no plan"))
    assert capsys.readouterr().out == "There is no answer: no plan.\n"


def test_the_width_is_that_of_the_variable(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_answer(make_result(answer="Twelve of them were there. " * 5))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 40


def test_a_difference_that_many_values_have_is_one_line() -> None:
    recording = Recording()
    recording.differences = [RunDifference(f"t1/run/0.rows[{at}]", "18", "19") for at in range(21)]
    recording.differences.append(RunDifference("t2/run/0.mean", "4.5", "4.6"))
    assert list(describe_comparison(recording)) == [
        "22 values not as recorded:",
        "  t2/run/0.mean: recorded 4.5, now 4.6",
        "  t1/run/0.rows[0]: recorded 18, now 19 (and the same of 20 more)",
    ]


def test_figures_of_a_recording_are_private(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "a.jsonl")
    writer.blobs.put(b"a figure")
    writer.close()
    assert (tmp_path / "a.blobs").stat().st_mode & 0o777 == 0o700


async def test_a_provider_that_refuses_at_once_has_its_own_exit_status(tmp_path: Path) -> None:
    async with openai_server.server(openai_server.refused(401, "wrong key")) as server:
        done = await asyncio.to_thread(
            ferrule, "analyze", "Why?", "-m", "openai:m", "--base-url", f"{server.url}/v1", "--no-record",
            folder=tmp_path, OPENAI_API_KEY="test-key",
        )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stdout.count("401") == 1
