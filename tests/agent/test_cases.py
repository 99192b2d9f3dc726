"""Cases: what makes an answer right, what a report keeps, and which cases got worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferrule import ToolCall, calculator, model, tool
from ferrule.agent.cases import Case, CaseReport, CaseResult, read_cases, read_report, run_cases, run_cases_sync
from ferrule.errors import SettingsError, ToolFailed
from ferrule.models.scripted import ScriptedModel


@tool
def look(at: str) -> str:
    """Look."""
    if at == "nothing":
        raise ToolFailed("there is nothing")
    return f"a {at}"


def call(at: str, identifier: str = "c") -> ToolCall:
    return ToolCall(identifier, "look", json.dumps({"at": at}))


async def check(case: Case, *written: object) -> str:
    report = await run_cases(model(ScriptedModel(*written)).using(look), [case])
    return report.results[0].problem


async def test_a_right_answer_has_all_texts_and_calls_in_order() -> None:
    case = Case(question="Is there a cat?", contains=("cat", "Yes"), calls=("look",))
    assert await check(case, call("cat"), "Yes, a cat.") == ""
    assert await check(case, call("cat"), "Yes.") == "lacks 'cat': 'Yes.'"
    assert await check(case, "Yes, a cat.") == "lacks a successful call of look (there are: none)"
    failed = "lacks a successful call of look (there are: none): error: there is nothing"
    assert await check(case, call("nothing"), "Yes, a cat.") == failed
    twice = Case(question="?", calls=("look", "look"))
    assert await check(twice, call("a"), call("b", "d"), "Done.") == ""
    assert await check(twice, call("a"), "Done.") == "lacks a successful call of look (there are: look)"


async def test_a_run_that_fails_or_stops_is_wrong_and_costs_no_other() -> None:
    pipeline = model(ScriptedModel(call("cat"), call("dog", "d"), call("cow", "e"))).using(look)
    stopped = await run_cases(pipeline.within(rounds=2), [Case(question="?")])
    assert stopped.results[0].problem == "stops before it is done: rounds"
    failed = await run_cases(model(ScriptedModel("One.")), [Case(question="a"), Case(question="b")], concurrency=1)
    assert [one.is_right for one in failed.results] == [True, False]
    assert failed.results[1].problem.startswith("fails: ")


def test_the_model_in_the_package_is_measured() -> None:
    cases = [Case(question="What is 12 * 34?", contains="408", calls=("calculator",))]
    report = run_cases_sync(model("embedded").using(calculator), cases)
    assert (report.right, report.share, report.model) == (1, 1.0, "embedded")


def make_report(*results: tuple[str, str]) -> CaseReport:
    return CaseReport("m", tuple(CaseResult(question, "…", problem) for question, problem in results))


def test_what_was_right_must_be_right_still() -> None:
    before = make_report(("a", ""), ("b", ""), ("c", "lacks 'x'"), ("d", ""))
    after = make_report(("a", ""), ("b", "lacks 'y': 'z'"), ("c", "lacks 'x'"), ("e", "lacks 'q'"))
    assert after.find_regressions(before) == [
        "'b': it was right, and now lacks 'y': 'z'",
        "'d': it was right, and isn't asked any more",
    ]
    assert before.find_regressions(before) == []


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    report = make_report(("a", ""), ("b", "lacks 'x'"))
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(report.as_json()))
    assert read_report(path) == report
    path.write_text('{"model": "m"}')
    with pytest.raises(SettingsError, match="not a report; write one by: ferrule eval cases"):
        read_report(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there are no cases; write one a line"),
        ("{", "cases.jsonl:1: "),
        (
            '{"question": "a", "calls": ["f"]}\n\n{"question": "a", "calls": ["f"]}',
            "cases.jsonl:3: the question 'a' was asked before",
        ),
        ('{"question": "a", "contain": "b"}', "cases.jsonl:1: unknown field 'contain'; the nearest: contains$"),
        ('{"question": "a", "why": "b"}', "cases.jsonl:1: unknown field 'why'; there are question, contains, calls$"),
        ('{"question": "a"', "cases.jsonl:1: not valid JSON: the text ends inside an object at column 16$"),
        ("[1]", r"cases.jsonl:1: must be an object, not \[1\]$"),
        ('{"question": "a", "contains": 408}', "contains: should be a text, or a list of texts, not 408"),
        (
            '{"question": "a"}',
            'cases.jsonl:1: nothing is checked; say what a right answer has, by "contains" or "calls"',
        ),
        ('{"question": ""}', "cases.jsonl:1: question: "),
    ],
)
def test_a_case_that_cannot_be_used_is_named_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(text)
    with pytest.raises(SettingsError, match=problem):
        read_cases(path)
