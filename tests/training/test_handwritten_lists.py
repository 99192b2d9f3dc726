"""The hand-written lists of the second edition: read whole, and what counts as right in them."""

import asyncio
import json
from dataclasses import replace

import pytest

from ferrule.agent.pipeline import Pipeline
from ferrule.conversation import ToolCall
from ferrule.models.scripted import ScriptedModel
from ferrule.toolspec import ToolSpec
from ferrule.training.embedded.asking import ask_all
from ferrule.training.embedded.evaluation import EvaluationSettings, evaluate
from ferrule.training.embedded.handwritten import (
    ForeignRequest,
    make_tool_question,
    read_lists,
    score_declined,
)
from ferrule.training.embedded.scoring import MadeCall, ModelAnswer, Score, list_refusals
from tables import each_case

WEATHER = ToolSpec(
    "get_weather",
    "Weather of a city.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 1},
            "alerts": {"type": "boolean", "default": False},
            "height": {"type": "number"},
            "hours": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["city"],
    },
)
RIGHT, WRONG = Score(True, True), Score(False, False)
ONLY_CALL, ONLY_ANSWER = Score(True, False), Score(False, True)
REFUSAL = "(one of the templates' refusals)"
"""Replaced when the test runs: to read the templates takes seconds."""


def weather(call_id: str = "call_1", **arguments) -> ToolCall:
    return ToolCall(call_id, "get_weather", json.dumps(arguments))


def score(script, calls, results=("Sunny, 18 degrees.",), says=("18", "sunny"), prompts=("rain in Oslo?",)) -> Score:
    request = ForeignRequest("t1", "one", prompts, (WEATHER,), calls, results, says)
    model = ScriptedModel(*script)
    (asked,) = asyncio.run(ask_all(Pipeline(model), [make_tool_question(request)], 1))
    return asked.score


SAID = "Sunny, 18 degrees."
OSLO = (("get_weather", {"city": "Oslo"}),)


@each_case(
    ("made", "wanted", "is_right"),
    [
        ({"city": "Oslo"}, {"city": "Oslo"}, True),
        ({"city": "Oslo", "days": 1, "alerts": False, "height": None}, {"city": "Oslo"}, True),
        ({"city": "Oslo"}, {"city": "Oslo", "days": 1}, True),
        ({"city": "Oslo", "days": 2}, {"city": "Oslo"}, False),
        ({"city": "Oslo", "height": 2}, {"city": "Oslo", "height": 2.0}, True),
        ({"city": "Oslo", "alerts": 1}, {"city": "Oslo", "alerts": True}, False),
        ({"city": "Oslo", "alerts": 0}, {"city": "Oslo"}, False),
        ({"city": "Oslo", "hours": [1, 2.0]}, {"city": "Oslo", "hours": [1.0, 2]}, True),
        ({"city": "Oslo", "hours": [1, True]}, {"city": "Oslo", "hours": [1, 1]}, False),
        ({"city": "oslo"}, {"city": "Oslo"}, False),
        ({}, {"city": "Oslo"}, False),
    ],
)
def test_arguments_are_compared_as_values(made, wanted, is_right) -> None:
    scored = score([weather(**made), SAID], (((("get_weather", wanted)),),))
    assert scored == (RIGHT if is_right else ONLY_ANSWER)


def test_other_calls_may_be_as_right_and_every_text_must_be_said() -> None:
    accepted = (OSLO, (("get_weather", {"city": "Oslo", "days": 3}),))
    assert score([weather(city="Oslo", days=3), "SUNNY, with 18."], accepted) == RIGHT
    assert score([weather(city="Oslo"), "It is sunny."], accepted) == ONLY_CALL
    assert score(["Sunny, 18 degrees."], accepted) == ONLY_ANSWER
    assert score([weather(city="Oslo"), weather("call_2", city="Oslo"), "Sunny, 18."], accepted) == ONLY_ANSWER


def test_results_are_returned_in_the_order_of_the_calls_and_an_error_is_one() -> None:
    calls = ((*OSLO, ("get_weather", {"city": "Bergen"})),)
    results = ("18", "error: no such place: Bergen")
    request = ForeignRequest("t1", "several", ("both?",), (WEATHER,), calls, results, ("18", "no such place"))
    model = ScriptedModel(weather(city="Oslo"), weather("call_2", city="Bergen"), "18. No such place: Bergen.")
    (asked,) = asyncio.run(ask_all(Pipeline(model), [make_tool_question(request)], 1))
    assert asked.score == RIGHT
    assert [(call.result, call.is_error) for call in asked.answers[0].calls] == [("18", False), (results[1], True)]
    assert asked.answers[0].calls[0].text == 'get_weather(city="Oslo")'


def test_what_lacks_is_asked_for_in_one_turn_and_given_in_the_next() -> None:
    assert score(["Which city?"], ((),), (), ("city", "?")) == RIGHT
    assert score(["Which day?"], ((),), (), ("city", "?")) == ONLY_CALL
    assert score([weather(city="Oslo"), "Which city?"], ((),), (), ("city", "?")) == ONLY_ANSWER
    two = ("is it raining?", "in Oslo")
    assert score(["Which city?", weather(city="Oslo"), SAID], (OSLO,), prompts=two) == RIGHT


@each_case(
    ("kind", "answer", "expected"),
    [
        ("tools", ModelAnswer((), "None of my tools can do that."), RIGHT),
        ("fact", ModelAnswer((), REFUSAL), RIGHT),
        ("fact", ModelAnswer((), "Paris."), ONLY_CALL),
        ("fact", ModelAnswer((MadeCall("1 + 1", "2"),), REFUSAL), ONLY_ANSWER),
        ("inexact", ModelAnswer((), REFUSAL), RIGHT),
        ("inexact", ModelAnswer((MadeCall("2 ** 0.5", "error: …", True),), "√2 can't be computed: …"), RIGHT),
        ("inexact", ModelAnswer((MadeCall("1 + 1", "2"),), "It is 2."), WRONG),
        ("other", ModelAnswer((), REFUSAL, is_finished=False), ONLY_CALL),
    ],
)
def test_what_is_declined(kind, answer, expected) -> None:
    if answer.reply == REFUSAL:
        answer = replace(answer, reply=min(list_refusals()))
    assert score_declined(kind, [answer]) == expected


@pytest.mark.parametrize("name", ["open", "held-out"])
def test_the_lists_are_read_whole(name) -> None:
    lists = read_lists(name)
    assert {table: len(questions) for table, questions in lists.items()} == {
        f"{name} calculator": 300,
        f"{name} tools": 300,
        f"{name} declined": 150,
    }
    ids = [question.id for questions in lists.values() for question in questions]
    assert len(set(ids)) == len(ids)


def test_a_model_of_the_calculator_alone_is_asked_no_question_with_other_tools() -> None:
    class OneTool(ScriptedModel):
        @property
        def capabilities(self):
            from dataclasses import replace

            return replace(super().capabilities, tools=("calculator",))

    model = OneTool(*["?"] * 500)
    report = asyncio.run(evaluate(model, EvaluationSettings(count=0, phrasings="open", together=1)))
    assert [(table.name, table.total.n) for table in report.tables] == [
        ("open calculator", 300),
        ("open declined", 100),
    ]
