"""`ferrule eval cases`: what is right, thresholds, and what got worse since an earlier report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openai_server import KEY, calls, says, server
from server_thread import serve_in_thread
from terminals import ferrule

SUM = {"question": "What is 12 * 34?", "contains": "408", "calls": ["calculator"]}
WRONG = {"question": "What is 2 + 2?", "contains": "5"}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{json.dumps(SUM)}\n{json.dumps(WRONG)}\n")
    return path


def test_wrong_cases_are_shown_and_decide_the_exit_status(cases: Path) -> None:
    done = ferrule("eval", "cases", cases)
    assert done.returncode == 1
    assert done.stdout == "wrong: 'What is 2 + 2?' lacks '5': '2 + 2 is 4.'\n1 of 2 right (50.0%), embedded\n"
    assert ferrule("eval", "cases", cases, "--threshold", "0.5").returncode == 0
    below = ferrule("eval", "cases", cases, "--threshold", "0.6")
    assert (below.returncode, "50.0% right, below the threshold of 60.0%" in below.stderr) == (1, True)


def test_a_case_that_was_right_must_stay_right(cases: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    baseline.write_text(ferrule("eval", "cases", cases, "--threshold", "0", "--json").stdout)
    same = ferrule("eval", "cases", cases, "--against", baseline)
    assert (same.returncode, same.stderr) == (0, "")
    cases.write_text(f"{json.dumps({**SUM, 'contains': 'four hundred'})}\n{json.dumps(WRONG)}\n")
    worse = ferrule("eval", "cases", cases, "--against", baseline)
    assert worse.returncode == 1
    assert "worse: 'What is 12 * 34?': it was right, and now lacks 'four hundred'" in worse.stderr


def test_what_cannot_be_used_is_one_line(cases: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{\n")
    for words, problem in (
        ((tmp_path / "absent.jsonl",), "absent.jsonl: No such file"),
        ((tmp_path / "bad.jsonl",), "bad.jsonl:1: "),
        ((cases, "--against", cases), "not a report"),
        ((cases, "--threshold", "2"), "--threshold"),
    ):
        done = ferrule("eval", "cases", *words)
        assert done.returncode == 2
        assert problem in done.stderr


def test_a_hosted_model_is_measured_and_replayed_without_its_server(tmp_path: Path) -> None:
    cases, recording = tmp_path / "cases.jsonl", tmp_path / "answers.jsonl"
    cases.write_text(json.dumps({"question": "Save it.", "contains": "saved", "calls": ["save"]}) + "\n")
    (tmp_path / "save_tool.py").write_text(
        "from ferrule import tool\n\n@tool\ndef save(text: str) -> str:\n    'Save a text.'\n    return text\n"
    )
    measured = ("eval", "cases", cases, "-m", "openai:m", "--tools", tmp_path, "--record", recording)
    script = (calls(("call_1", "save", '{"text": "x"}')), says("It is saved."))
    with serve_in_thread(lambda: server(*script)) as address:
        hosted = ("--base-url", f"{address}/v1", "--profile", "all")
        first = ferrule(*measured, *hosted, folder=tmp_path, OPENAI_API_KEY=KEY)
    assert (first.returncode, first.stdout) == (0, "1 of 1 right (100.0%), openai:m\n"), first.stderr
    again = ferrule(*measured, "--profile", "all", folder=tmp_path, FERRULE_RECORD="replay")
    assert (again.returncode, again.stdout) == (0, "1 of 1 right (100.0%), openai:m\n"), again.stderr
    denied = ferrule(*measured, folder=tmp_path, FERRULE_RECORD="replay")
    assert denied.returncode == 1
    assert "RequestNotRecorded" in denied.stdout  # the denial is another result
    assert "--profile some: expected one of plan" in ferrule(*measured, "--profile", "some").stderr


def test_a_notation_and_a_server_of_tools_are_options_too(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps({"question": "What is 12 * 34?", "contains": "408"}) + "\n")
    assert "unknown" in ferrule("eval", "cases", cases, "--mode", "nonsense").stderr
    failing = ferrule("eval", "cases", cases, "--mcp", "/no/such/program")
    assert (failing.returncode, "file not found" in failing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        ('{"model": "m", "results": []}', "has none of these questions"),
        ('{"model": "m", "results": [{"question": "Other?", "answer": "x"}]}', "has none of these questions"),
        ('{"model": "m", "results": [{"question": 3, "answer": "x"}]}', "not a report"),
    ],
)
def test_a_report_of_other_cases_is_no_baseline(cases: Path, tmp_path: Path, report: str, problem: str) -> None:
    (tmp_path / "other.json").write_text(report)
    done = ferrule("eval", "cases", cases, "--against", tmp_path / "other.json")
    assert (done.returncode, problem in done.stderr) == (2, True)


def test_the_embedded_model_has_a_threshold_too() -> None:
    few = ("eval", "embedded", "--count", "4")
    assert ferrule(*few, "--threshold", "0").returncode == 0
