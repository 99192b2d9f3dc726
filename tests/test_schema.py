"""Schemas from signatures, and arguments checked against them."""

import json
import typing
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import date
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Required, TypedDict, Union

import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from ferrule.errors import FerruleError, ToolDefinitionError
from ferrule.schema import ArgumentsInvalid
from ferrule.tool import Tool, tool


class Unit(Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: float
    y: float = 0.0


class Stop(TypedDict):
    city: Annotated[str, "Where to stop"]
    nights: NotRequired[int]


class Loose(TypedDict, total=False):
    a: Required[int]
    b: str


class Tree(TypedDict):
    name: str
    children: "list[Tree]"


class Modern(typing_extensions.TypedDict):
    stops: list[Stop]


@dataclass
class Journey:
    stops: list[Stop]
    start: Point
    note: Annotated[str, "Anything else"] = ""
    tags: list[str] = field(default_factory=list)


class Person(BaseModel):
    name: str
    age: int = Field(ge=0, description="In years")

    @field_validator("name")
    @classmethod
    def _has_a_letter(cls, value: str) -> str:
        if not any(letter.isalpha() for letter in value):
            raise ValueError("a name has a letter in it")
        return value


class Pair(NamedTuple):
    left: int
    right: str


def taking(hint: Any, **default: Any) -> Tool:
    """A tool with one parameter, `value`, of that type."""

    def take(value): ...

    take.__annotations__ = {"value": hint}
    if default:
        take.__defaults__ = (default["default"],)
    return tool(take)


def problem(made: Tool, arguments: str | dict[str, Any]) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        made.bind(arguments)
    return str(caught.value).removeprefix("Wrong arguments:\n")


def value_schema(hint: Any) -> Any:
    return taking(hint).parameters["properties"]["value"]


# ---- schemas


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (int, {"type": "integer"}),
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
        (Annotated[int, "How many"], {"type": "integer", "description": "How many"}),
        (Annotated[int, Field(ge=1, le=9, description="n")],
         {"type": "integer", "description": "n", "minimum": 1, "maximum": 9}),
        (Annotated[list[Annotated[str, "one"]], "all"],
         {"type": "array", "description": "all", "items": {"type": "string", "description": "one"}}),
        (date, {"type": "string", "format": "date"}),
        (Path, {"type": "string", "format": "path"}),
        (Any, {}),
    ],
)  # fmt: skip
def test_a_type_becomes_a_compact_schema(hint, schema):
    assert value_schema(hint) == schema


def test_the_whole_schema_is_closed_and_says_what_is_required():
    @tool
    def plan(city: str, days: int = 3, unit: Unit = Unit.CELSIUS, note: str | None = None, title: str = "x"): ...

    assert plan.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "unit": {"$ref": "#/$defs/Unit", "default": "celsius"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "title": {"type": "string", "default": "x"},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"Unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
    }


def test_a_tool_without_parameters():
    @tool
    def now() -> str: ...

    assert now.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert now.bind("") == now.bind("  ") == now.bind("{}") == now.bind({}) == {}
    assert (
        problem(now, '{"zone": "x"}') == "- zone: there is nothing of this name; leave it out: there is nothing to give"
    )


def test_every_schema_is_valid_and_accepts_what_is_accepted():
    import jsonschema

    @tool
    def all_of_it(journey: Journey, person: Person, tree: Tree, pair: Pair, modern: Modern, loose: Loose): ...

    jsonschema.Draft202012Validator.check_schema(all_of_it.parameters)
    arguments = {
        "journey": {"stops": [{"city": "Rome", "nights": 2}], "start": {"x": 1}},
        "person": {"name": "Ada", "age": 36},
        "tree": {"name": "root", "children": [{"name": "leaf", "children": []}]},
        "pair": [1, "a"],
        "modern": {"stops": []},
        "loose": {"a": 1},
    }
    jsonschema.validate(arguments, all_of_it.parameters)
    bound = all_of_it.bind(arguments)
    assert bound["journey"] == Journey([{"city": "Rome", "nights": 2}], Point(1.0))
    assert bound["person"] == Person(name="Ada", age=36)
    assert bound["tree"] == arguments["tree"]
    assert bound["pair"] == Pair(1, "a")
    assert bound["loose"] == {"a": 1}


def test_a_typed_dict_of_typing_keeps_its_fields_and_texts():
    schema = taking(Stop).parameters["$defs"]["Stop"]
    assert schema["required"] == ["city"]
    assert schema["properties"]["city"]["description"] == "Where to stop"
    assert schema["additionalProperties"] is False
    assert taking(Loose).parameters["$defs"]["Loose"]["required"] == ["a"]


def test_texts_inside_a_dataclass_reach_the_schema():
    journey = taking(Journey).parameters["$defs"]["Journey"]
    assert journey["properties"]["note"]["description"] == "Anything else"
    assert journey["required"] == ["stops", "start"]


def test_a_dataclass_with_what_only_init_takes_still_works():
    @dataclass
    class Scaled:
        x: float
        by: InitVar[float] = 1.0

        def __post_init__(self, by: float) -> None:
            self.x *= by

    assert taking(Scaled).bind('{"value": {"x": 2, "by": 3}}')["value"].x == 6.0


def test_a_property_named_title_and_an_enum_of_titles_survive():
    @tool
    def book(title: str, kind: Literal["title", "default"] = "title"): ...

    assert list(book.parameters["properties"]) == ["title", "kind"]
    assert book.parameters["properties"]["kind"]["default"] == "title"


@pytest.mark.parametrize("name", ["schema", "json", "copy", "model_config", "_private", "self", "class_", "items"])
def test_no_parameter_name_is_special(name):
    namespace: dict[str, Any] = {}
    exec(f"def f({name}: int): return {name}", namespace)
    made = tool(namespace["f"])
    assert made(**made.bind({name: "3"})) == 3


def test_fields_as_defaults_and_aliases():
    @tool
    def search(
        query: str = Field(min_length=2),
        limit: int = Field(default=5, ge=1),
        tags: list[str] = Field(default_factory=list),  # noqa: B008
        from_: Annotated[str, Field(alias="from")] = "a",
    ): ...

    assert search.parameters["required"] == ["query"]
    assert search.parameters["properties"]["limit"] == {"type": "integer", "default": 5, "minimum": 1}
    assert search.bind('{"query": "ab", "from": "x"}') == {"query": "ab", "limit": 5, "tags": [], "from_": "x"}
    assert "wanted an integer of at least 1" in problem(search, '{"query": "ab", "limit": 0}')
    assert "wanted a string of at least 2 characters" in problem(search, '{"query": "a"}')


def test_a_type_without_a_schema_names_the_parameter():
    class Opaque: ...

    made = taking(Opaque)
    with pytest.raises(ToolDefinitionError, match=r"the type of 'value' has no JSON Schema.*dataclass"):
        _ = made.parameters
    with pytest.raises(ToolDefinitionError, match="value"):
        made.bind("{}")
    with pytest.raises(ToolDefinitionError, match="value"):
        _ = taking(Callable[[int], int]).parameters


def test_a_default_that_json_can_not_show_is_still_the_functions_own():
    assert "default" not in taking(float, default=float("nan")).parameters["properties"]["value"]
    assert "default" not in taking(Any, default=object()).parameters["properties"]["value"]
    assert taking(Unit, default=Unit.CELSIUS).parameters["properties"]["value"]["default"] == "celsius"


def test_a_default_of_none_leaves_what_the_annotation_says():
    @tool
    def f(
        from_: Annotated[str, Field(alias="from", min_length=2)] = None,  # noqa: RUF013
        n: Annotated[int, "text"] = None,  # noqa: RUF013
    ): ...

    assert f.bind('{"from": "ab", "n": null}') == {"from_": "ab", "n": None}
    assert f.parameters["properties"]["n"]["description"] == "text"
    assert "at least 2 characters" in problem(f, '{"from": "a"}')


def test_the_texts_of_classes_are_kept_where_somebody_wrote_them():
    @dataclass
    class Spot:
        """A spot on the map."""

        at: Annotated[int, "Metres"]

    assert taking(Spot).parameters["$defs"]["Spot"]["description"] == "A spot on the map."
    assert "description" not in taking(Point).parameters["$defs"]["Point"]
    assert "description" not in taking(Journey).parameters["$defs"]["Journey"]


def test_generic_typed_dicts_and_models_that_hold_themselves():
    thing = typing.TypeVar("thing")

    class Box(typing_extensions.TypedDict, typing.Generic[thing]):
        content: thing

    class Node(BaseModel):
        value: int
        next: "Node | None" = None

    assert taking(Box[int]).bind('{"value": {"content": "1"}}') == {"value": {"content": 1}}
    made = taking(Node)
    assert made.bind('{"value": {"value": 1, "next": {"value": 2}}}')["value"].next.value == 2
    assert 'value.next.value: got the string "x"; wanted an integer' in problem(
        made, '{"value": {"value": 1, "next": {"value": "x"}}}'
    )


# ---- arguments


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("hint", "written", "said"),
    [
        (int, "7.5", "got the number 7.5; wanted an integer"),
        (int, '"many"', 'got the string "many"; wanted an integer'),
        (int, "true", "got true; wanted an integer"),
        (float, "false", "got false; wanted a number"),
        (list[int], "[1, true]", "value[1]: got true; wanted an integer"),
        (Point, '{"x": true}', "value.x: got true; wanted a number"),
        (int, "null", "got null; wanted an integer"),
        (str, "7", 'got the number 7; wanted a string, in quotes: "7"'),
        (str, "null", "got null; wanted a string"),
        (Literal["a", "b"], '"c"', 'got the string "c"; wanted one of "a", "b"'),
        (Literal["a"], '"c"', 'got the string "c"; wanted "a"'),
        (Unit, '"kelvin"', 'got the string "kelvin"; wanted one of "celsius", "fahrenheit"'),
        (list[int], '"1, 2"', 'got the string "1, 2"; wanted a list, each item an integer'),
        (list[int], '[1, "b"]', '- value[1]: got the string "b"; wanted an integer'),
        (dict[str, int], '{"a": "b"}', '- value.a: got the string "b"; wanted an integer'),
        (int | list[int], '"b"', 'got the string "b"; wanted an integer or a list, each item an integer'),
        (int | None, '"b"', 'got the string "b"; wanted an integer, or null'),
        (Annotated[int, Field(ge=1, le=9)], "10", "got the number 10; wanted an integer from 1 to 9"),
        (Annotated[float, Field(gt=0)], "0", "got the number 0; wanted a number above 0"),
        (Annotated[str, Field(pattern="^a+$")], '"b"', "wanted a string that matches ^a+$"),
        (Annotated[list[int], Field(min_length=2)], "[1]", "wanted a list of at least 2 items, each item an integer"),
        (tuple[int, str], "[1]", "value[1]: got nothing; wanted a string"),
        (date, '"29.2.24"', "wanted a date as the string YYYY-MM-DD"),
        (Stop, "{}", "value.city: got nothing; wanted a string"),
        (Stop, '{"city": "a", "nihgts": 1}', "value.nihgts: there is nothing of this name; did you mean nights?"),
        (Point, '{"x": 1, "z": 2}', "value.z: there is nothing of this name; the names are x, y"),
        (Point, "[1, 2]", "wanted an object with x (a number), y (optional, a number)"),
        (Person, '{"name": "7", "age": -1}', 'value.name: got the string "7"; a name has a letter in it'),
        (Person, '{"name": "7", "age": -1}', "value.age: got the number -1; wanted an integer of at least 0"),
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
        "- city: got nothing; wanted a string",
        '- days: got the string "many"; wanted an integer',
        '- unit: got the number 3; wanted one of "celsius", "fahrenheit"',
        "- cty: there is nothing of this name; did you mean city?",
    ]
    with pytest.raises(ArgumentsInvalid) as caught:
        trip.bind(wrong)
    assert [one.field for one in caught.value.problems] == ["city", "days", "unit", "cty"]
    assert isinstance(caught.value, FerruleError)


def test_null_for_an_optional_parameter_is_told_to_be_left_out():
    made = taking(int, default=3)
    assert problem(made, '{"value": null}') == "- value: got null; wanted an integer, or leave it out"
    assert made.bind("{}") == {}


def test_a_default_of_none_takes_null():
    assert taking(int, default=None).bind('{"value": null}') == {"value": None}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "wanted one JSON object with the arguments by name"),
        ("7", "wanted one JSON object"),
        ("null", "wanted one JSON object"),
        ('"Paris"', "wanted one JSON object"),
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
        problem(taking(list[int]), '{"value": "[1, \\"b\\"]"}') == '- value[1]: got the string "b"; wanted an integer'
    )
    assert 'got the string "[1, 2"; wanted a list' in problem(taking(list[int]), '{"value": "[1, 2"}')


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
