"""The answer as one value and the key findings are checked against the outputs as the answer is."""

import math
from typing import Any

import pytest
from pydantic import ValidationError
from staged_model import StagedModel

from ferrule import tool
from ferrule.analysis import AnalysisSettings, run_analysis
from ferrule.analysis.numbers.focused import check_focused_answer
from ferrule.analysis.numbers.matching import SourceIndex
from ferrule.analysis.numbers.source_numbers import NumberSource
from ferrule.analysis.planning.answers import FocusedAnswerReply
from ferrule.analysis.report.html import render_report
from ferrule.analysis.result import FocusedAnswer
from ferrule.cli.analysis_answer import print_answer
from tables import each_case

SOURCES = SourceIndex(
    [
        NumberSource("question", "question", "How many orders had West in 2024?"),
        NumberSource(
            "t1", "run", "West: 46.5 orders, share 0.16612, on March 4, 2024, first 2024-01-31, 1204332.5 in all"
        ),
    ]
)


@each_case(
    ("kind", "value", "formatted"),
    [
        ("number", 46.5, "46.5 orders"),
        ("number", 46.5, "about forty-six"),
        ("number", 0.166, "16.6%"),
        ("number", 16.6, "16.6%"),
        ("number", 1.2, "$1.2 million"),
        ("number", 1204332.5, "$1.2M"),
        ("number", 2024, "2024"),
        ("date", "2024-03-04", "4 March"),
        ("date", "2024-01", "January 2024"),
        ("text", "West", "West, 16.6%"),
        ("list", ["West", 46.5], "West and 46.5"),
        ("yes_no", True, "Yes"),
        ("none", None, "it isn't known"),
    ],
)
def test_a_value_of_an_output_is_accepted(kind: str, value: Any, formatted: str) -> None:
    checked = check_focused_answer(FocusedAnswer(kind, value, formatted), "How many orders had West?", SOURCES)
    assert checked.not_computed == ()


@pytest.mark.parametrize(
    ("kind", "value", "formatted", "problem"),
    [
        ("number", 123.45, "123.45", "no output has the value 123.45"),
        ("number", 99, "1,000,000", "no output has the value 99"),
        ("number", 2031, "2031", "no output has the value 2031"),
        ("number", 46.5, "16.6%", "the value is 46.5, which '16.6%' doesn't say"),
        ("date", "2024-02-01", "1 February", "no output has the date 2024-02-01"),
        ("text", "West, 99", "West", "no output has the value 99"),
        ("list", [46.5, 77.25], "two", "no output has the value 77.25"),
    ],
)
def test_a_value_of_no_output_is_not_computed(kind: str, value: Any, formatted: str, problem: str) -> None:
    checked = check_focused_answer(FocusedAnswer(kind, value, formatted), "How many orders had West?", SOURCES)
    assert checked.not_computed == (problem,)


@pytest.mark.parametrize("date", ["31.02.2024", "2024-02-31", "yesterday", "2024-13"])
def test_a_date_that_no_calendar_has_is_refused(date: str) -> None:
    with pytest.raises(ValidationError, match="answer_value must be a date such as"):
        FocusedAnswerReply(answer_type="date", answer_value=date, formatted_answer=date)


@tool(read_only=True)
def count_orders(region: str) -> int:
    """Count the orders of a region."""
    return len(region) * 10


async def test_the_result_the_command_and_the_report_say_what_is_not_computed(capsys: Any) -> None:
    answers = {
        "complexity": {"level": "straightforward", "reason": "one look-up"},
        "candidates": {
            "plans": [{"approach": "Count.", "tasks": [{"id": "t1", "tool": "count_orders", "query": "Count West."}]}]
        },
        "t1/count_orders": {"answer": "West has 40 orders."},
        "synthesis": {"answer": "West has 40 orders.", "key_findings": ["Of 40 orders, 17 came late."]},
        "focused_answer": {"answer_type": "number", "answer_value": 123.45, "formatted_answer": "123.45 orders"},
    }
    settings = AnalysisSettings(mode="quick")
    result = await run_analysis("How many?", model=StagedModel(answers), tools=[count_orders], settings=settings)
    assert [[link.kind for link in links] for links in result.finding_numbers] == [["stated", "not computed"]]
    assert result.focused_answer is not None
    assert result.focused_answer.not_computed == ("no output has the value 123.45",)
    assert [link.kind for link in result.focused_answer.numbers] == ["not computed"]
    print_answer(result)
    shown = capsys.readouterr().out
    assert "- Of 40 [t1, stated] orders, 17 [not computed] came late." in shown
    assert "Answer: 123.45 [not computed] orders\nnot computed: no output has the value 123.45" in shown
    page = render_report(result)
    assert "Not computed: no output has the value 123.45." in page
    assert "2 not computed" in page


def test_a_value_with_more_digits_than_a_float_has() -> None:
    value = math.factorial(200)
    focused = FocusedAnswer("number", value, str(value))
    checked = check_focused_answer(focused, "200!", SourceIndex([NumberSource("t1", "run", str(value))]))
    assert checked.not_computed == ()
    assert check_focused_answer(focused, "200!", SourceIndex([NumberSource("t1", "run", "7")])).not_computed
