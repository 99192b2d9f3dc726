"""Arguments checked against signatures."""

import json
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from annotated import (
    Journey,
    Level,
    Modern,
    Person,
    Point,
    Stop,
    Tree,
    Unit,
    problem,
    taking,
)
from ferrule.errors import ArgumentsInvalid, FerruleError
from ferrule.tools.decorator import Tool, tool
from tables import each_case

# ---- arguments


@each_case(
    ("hint", "written", "bound"),
    [
        (int, '"7"', 7),
        (int, "7.0", 7),
        (int, "7", 7),
        (int, "-0", 0),
        (float, '"1.5"', 1.5),
        (float, "2", 2.0),
        (bool, '"true"', True),
        (bool, "false", False),
        (str, '"7"', "7"),
        (int | str, '"7"', "7"),
        (int | str, "7", 7),
        (int | None, "null", None),
        (int | None, '"7"', 7),
        (int | float, "7", 7),
        (list[int], '["1", 2]', [1, 2]),
        (list[int], '"[1, 2]"', [1, 2]),
        (dict[str, int], '"{\\"a\\": \\"1\\"}"', {"a": 1}),
        (Point, '"{\\"x\\": 1}"', Point(1.0)),
        (list[Point], '["{\\"x\\": 1}"]', [Point(1.0)]),
        (list[int] | dict[str, int], '"[1]"', [1]),
        (str, '"[1]"', "[1]"),
        (str | list[int], '"[1]"', "[1]"),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (set[int], "[1, 1, 2]", {1, 2}),
        (Unit, '"celsius"', Unit.CELSIUS),
        (Level, "2", Level.HIGH),
        (date, '"2024-02-29"', date(2024, 2, 29)),
        (Path, '"a/b"', Path("a/b")),
        (Any, '{"a": [1, null]}', {"a": [1, None]}),
        (bool | int, "true", True),
    ],
)
def test_what_is_meant_is_understood(hint, written, bound):
    value = taking(hint).bind(f'{{"value": {written}}}')["value"]
    assert value == bound
    assert type(value) is type(bound)


def test_multiplying_a_digit_string_multiplies():
    @tool
    def mul(a: int) -> int:
        return a * 2 + 0

    assert mul(**mul.bind('{"a": "7"}')) == 14  # llm 0.36 gives "77"


@each_case(
    ("hint", "written", "said"),
    [
        (int, "7.5", "got the number 7.5; expected an integer"),
        (int, '"many"', 'got the string "many"; expected an integer'),
        (int, "true", "got true; expected an integer"),
        (float, "false", "got false; expected a number"),
        (list[int], "[1, true]", "value[1]: got true; expected an integer"),
        (Point, '{"x": true}', "value.x: got true; expected a number"),
        (int, "null", "got null; expected an integer"),
        (str, "7", 'got the number 7; expected a string, in quotes: "7"'),
        (str, "null", "got null; expected a string"),
        (Literal["a", "b"], '"c"', 'got the string "c"; expected one of "a", "b"'),
        (Literal["a"], '"c"', 'got the string "c"; expected "a"'),
        (Unit, '"kelvin"', 'got the string "kelvin"; expected one of "celsius", "fahrenheit"'),
        (list[int], '"1, 2"', 'got the string "1, 2"; expected a list, each item an integer'),
        (list[int], '[1, "b"]', '- value[1]: got the string "b"; expected an integer'),
        (dict[str, int], '{"a": "b"}', '- value.a: got the string "b"; expected an integer'),
        (int | list[int], '"b"', 'got the string "b"; expected an integer or a list, each item an integer'),
        (int | None, '"b"', 'got the string "b"; expected an integer, or null'),
        (Annotated[int, Field(ge=1, le=9)], "10", "got the number 10; expected an integer from 1 to 9"),
        (Annotated[float, Field(gt=0)], "0", "got the number 0; expected a number above 0"),
        (Annotated[str, Field(pattern="^a+$")], '"b"', "expected a string that matches ^a+$"),
        (Annotated[list[int], Field(min_length=2)], "[1]", "expected a list of at least 2 items, each item an integer"),
        (tuple[int, str], "[1]", "value[1]: got nothing; expected a string"),
        (date, '"29.2.24"', "expected a date as the string YYYY-MM-DD"),
        (Stop, "{}", "value.city: got nothing; expected a string"),
        (Stop, '{"city": "a", "nihgts": 1}', "value.nihgts: unknown parameter; did you mean nights?"),
        (Point, '{"x": 1, "z": 2}', "value.z: unknown parameter; the names are x, y"),
        (Point, "[1, 2]", "expected an object with x (a number), y (optional, a number)"),
        (Person, '{"name": "7", "age": -1}', 'value.name: got the string "7"; a name has a letter in it'),
        (Person, '{"name": "7", "age": -1}', "value.age: got the number -1; expected an integer of at least 0"),
        (Tree, '{"name": "a", "children": [{"name": 1, "children": []}]}', "value.children[0].name: got the number 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_so_that_it_can_be_put_right(hint, written, said):
    text = problem(taking(hint), f'{{"value": {written}}}')
    assert said in text
    assert "pydantic" not in text
    assert "http" not in text
    assert " at 0x" not in text


def test_each_wrong_field_is_named_once_and_the_same_each_time():
    @tool
    def trip(city: str, days: int, unit: Unit = Unit.CELSIUS): ...

    wrong = '{"cty": "Rome", "days": "many", "unit": 3}'
    assert problem(trip, wrong) == problem(trip, wrong)
    assert problem(trip, wrong).splitlines() == [
        "- city: got nothing; expected a string",
        '- days: got the string "many"; expected an integer',
        '- unit: got the number 3; expected one of "celsius", "fahrenheit"',
        "- cty: unknown parameter; did you mean city?",
    ]
    with pytest.raises(ArgumentsInvalid) as caught:
        trip.bind(wrong)
    assert [one.field for one in caught.value.problems] == ["city", "days", "unit", "cty"]
    assert isinstance(caught.value, FerruleError)


def test_null_for_an_optional_parameter_is_told_to_be_left_out():
    made = taking(int, default=3)
    assert problem(made, '{"value": null}') == "- value: got null; expected an integer, or leave it out"
    assert made.bind("{}") == {}


def test_a_default_of_none_takes_null():
    assert taking(int, default=None).bind('{"value": null}') == {"value": None}


@each_case(
    ("text", "said"),
    [
        ("[1]", "expected one JSON object with the arguments by name"),
        ("7", "expected one JSON object"),
        ("null", "expected one JSON object"),
        ('"Paris"', "expected one JSON object"),
        ('{"value": 1, "value": 2}', 'the key "value" is given more than once'),
        ('{"value": {"a": 1, "a": 1}}', 'the key "a" is given more than once'),
        ('{"value": NaN}', "NaN is not JSON; give a finite number or null"),
        ('{"value": -Infinity}', "-Infinity is not JSON"),
        ('{"value": 1e999}', "the number 1e999 is too large"),
        ('{"value": 1', "not valid JSON at line 1, column 12"),
        ("{'value': 1}", "not valid JSON at line 1, column 2"),
        ('{"value": "a\nb"}', "write a line break inside a string as \\n"),
        ('{"value": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"value": ' + "1" * 5000 + "}", "too many digits"),
        ('{"value": "\\ud800"}', "half of a surrogate pair"),
        ('{"value": "\ud800"}', "half of a surrogate pair"),
        ('{"value": ' + "[" * 300 + "]" * 300 + "}", "not valid JSON: recursion limit exceeded"),
    ],
)
def test_only_strict_json_is_read(text, said):
    assert said in problem(taking(Any), text)


def test_an_object_that_was_encoded_twice_is_read():
    assert taking(int).bind(json.dumps('{"value": "7"}')) == {"value": 7}


def test_an_encoded_value_that_is_wrong_inside_is_told_of_inside():
    assert (
        problem(taking(list[int]), '{"value": "[1, \\"b\\"]"}') == '- value[1]: got the string "b"; expected an integer'
    )
    assert 'got the string "[1, 2"; expected a list' in problem(taking(list[int]), '{"value": "[1, 2"}')


def test_arguments_given_as_an_object_are_read_as_their_json():
    assert taking(tuple[int, ...]).bind({"value": (1, "2")}) == {"value": (1, 2)}
    assert "not a JSON value" in problem(taking(Any), {"value": object()})
    assert "not a JSON value" in problem(taking(Any), {"value": float("nan")})


def test_a_long_value_is_cut_in_the_middle():
    text = problem(taking(int), json.dumps({"value": "x" * 10_000}))
    assert "…" in text
    assert len(text) < 200


def test_a_discriminated_union_is_told_of_in_its_branch():
    class Cat(BaseModel):
        kind: Literal["cat"]
        lives: int

    class Dog(BaseModel):
        kind: Literal["dog"]
        barks: bool

    made = taking(Annotated[Cat | Dog, Field(discriminator="kind")])
    assert made.bind('{"value": {"kind": "cat", "lives": 9}}')["value"] == Cat(kind="cat", lives=9)
    assert "lives" in problem(made, '{"value": {"kind": "cat", "lives": "many"}}')
    assert "cow" in problem(made, '{"value": {"kind": "cow"}}')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
EVERYTHING = [
    taking(hint)
    for hint in (int, str, bool, list[int], Point, Stop, Journey, Person, Tree, int | list[Stop] | None, Unit, Modern)
]


def outcome(made: Tool, text: str) -> dict[str, Any] | ArgumentsInvalid:
    """What binding gives: keyword arguments, or the one error that it may raise."""
    try:
        return made.bind(text)
    except ArgumentsInvalid as error:
        return error


@settings(deadline=None)  # the first use of a tool builds its schema
@given(value=JSON, made=st.sampled_from(EVERYTHING))
def test_any_json_is_bound_or_refused_in_words(value, made):
    text = json.dumps({"value": value})
    found = outcome(made, text)
    assert isinstance(found, dict) or found.problems
    assert str(found) == str(outcome(made, text))


@settings(deadline=None)  # the first use of a tool builds its schema
@given(value=JSON)
def test_what_may_be_anything_arrives_as_it_was_written(value):
    bound = taking(Any).bind(json.dumps({"value": value}))["value"]
    assert json.dumps(bound) == json.dumps(value)


@settings(deadline=None)  # the first use of a tool builds its schema
@given(text=st.text(max_size=40))
def test_any_text_is_read_or_refused_in_words(text):
    found = outcome(taking(int, default=1), text)
    assert isinstance(found, dict) or found.problems
