"""Schemas from signatures."""

import typing
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from annotated import Journey, Loose, Modern, Pair, Person, Point, Stop, Tree, Unit, problem, taking, value_schema
from ferrule.errors import ArgumentsInvalid, ToolDefinitionError
from ferrule.tools.decorator import tool
from tables import each_case

# ---- schemas


@each_case(
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
    assert problem(now, '{"zone": "x"}') == "- zone: unknown parameter; leave it out: there are no parameters here"


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


@each_case("name", ["schema", "json", "copy", "model_config", "_private", "self", "class_", "items"])
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
    assert "expected an integer of at least 1" in problem(search, '{"query": "ab", "limit": 0}')
    assert "expected a string of at least 2 characters" in problem(search, '{"query": "a"}')


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
    assert 'value.next.value: got the string "x"; expected an integer' in problem(
        made, '{"value": {"value": 1, "next": {"value": "x"}}}'
    )


def test_a_field_that_a_dataclass_computes_is_not_offered() -> None:
    @dataclass
    class Order:
        amount: int
        total: int = field(init=False, default=0)

        def __post_init__(self) -> None:
            self.total = 2 * self.amount

    @tool
    def order(order: Order) -> int:
        """Order."""
        return order.total

    assert list(order.parameters["$defs"]["Order"]["properties"]) == ["amount"]
    assert order.bind({"order": {"amount": 2}})["order"].total == 4
    with pytest.raises(ArgumentsInvalid, match="unknown parameter"):
        order.bind({"order": {"amount": 2, "total": 5}})
