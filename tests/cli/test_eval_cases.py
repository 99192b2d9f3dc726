"""`ferrule eval cases`: what is right, thresholds, and what got worse since an earlier report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
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


def test_the_embedded_model_has_a_threshold_too() -> None:
    few = ("eval", "embedded", "--count", "4")
    assert ferrule(*few, "--threshold", "0").returncode == 0
