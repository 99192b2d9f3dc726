"""Types of documents in JSON Schema's words, and that schemas and readers understand them alike."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.reader.parameters import ToolParameters, read_parameter_type
from ferrule.events import CallFinished
from ferrule.formats.tool_offers import make_parameters_schema
from ferrule.tools.schema_types import standardize_type
from ferrule.toolspec import ToolSpec

STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))
TYPES = [
    ("Boolean", BOOLEAN),
    ("java.lang.Boolean", BOOLEAN),
    ("bool", BOOLEAN),
    ("long", INTEGER),
    ("Integer", INTEGER),
    ("uint8", INTEGER),
    ("float64", NUMBER),
    ("Double", NUMBER),
    ("BigDecimal", NUMBER),
    ("String", STRING),
    ("char", STRING),
    ("varchar(20)", STRING),
    ("datetime", STRING),
    ("ArrayList", {"type": "array"}),
    ("String[]", {"type": "array", "items": STRING}),
    ("double[][]", {"type": "array", "items": {"type": "array", "items": NUMBER}}),
    ("char[8]", {"type": "array", "items": STRING}),
    ("List<Integer>", {"type": "array", "items": INTEGER}),
    ("list[str]", {"type": "array", "items": STRING}),
    ("typing.List[typing.Any]", {"type": "array"}),
    ("tuple[int, ...]", {"type": "array", "items": INTEGER}),
    ("Tuple[int, str]", {"type": "array"}),
    ("array of strings", {"type": "array", "items": STRING}),
    ("list of int", {"type": "array", "items": INTEGER}),
    ("HashMap", {"type": "object"}),
    ("Map<String, List<Double>>", {"type": "object", "additionalProperties": {"type": "array", "items": NUMBER}}),
    ("dict[str, Any]", {"type": "object"}),
    ("Optional[int]", {"type": ["integer", "null"]}),
    ("int?", {"type": ["integer", "null"]}),
    ("str | None", {"type": ["string", "null"]}),
    ("Union[int, float]", {"type": ["integer", "number"]}),
    ("string or integer", {"type": ["string", "integer"]}),
    ("List[Union[int, str]]", {"type": "array", "items": {"type": ["integer", "string"]}}),
    ("Optional[List[int]]", {"anyOf": [{"type": "array", "items": INTEGER}, {"type": "null"}]}),
    ("str, optional", STRING),
    ("int, default 3", INTEGER),
    ("any", {}),
    ("Callable[[float], float]", {}),
    ("WeatherRequest", {}),
    (None, {}),
    ({"type": "string"}, {}),
    (["String", "Null"], {"type": ["string", "null"]}),
]


@pytest.mark.parametrize(("given_type", "wanted"), TYPES)
def test_a_type_of_a_document_in_the_words_of_json_schema(given_type, wanted):
    assert standardize_type({"type": given_type}) == wanted
    assert standardize_type({"type": given_type, "description": "x"}) == {**wanted, "description": "x"}
    schema = make_parameters_schema({"properties": {"x": {"type": given_type}}})
    jsonschema.Draft202012Validator.check_schema(schema)
    said = schema["properties"]["x"]
    assert {key: value for key, value in said.items() if key != "items"} == {
        key: value for key, value in wanted.items() if key != "items"
    }


@pytest.mark.parametrize("given_type", [one for one, _ in TYPES])
def test_schemas_and_readers_understand_a_type_alike(given_type):
    schema = {"properties": {"x": {"type": given_type}}}
    offered = make_parameters_schema(schema)
    assert read_parameter_type({"type": given_type}, {}) == read_parameter_type(offered["properties"]["x"], offered)
    for value in ("true", "7", "7.5", "null", "[1]", '["a"]', '{"a": [1.5]}', "Rome"):
        assert ToolParameters(schema).get("x").to_json(value) == ToolParameters(offered).get("x").to_json(value)
        decoded = {"x": json.loads(ToolParameters(schema).get("x").to_json(value))}
        assert ToolParameters(schema).accepts(decoded) == ToolParameters(offered).accepts(decoded)


def test_the_words_of_json_schema_stay_as_they_are():
    for schema in ({}, {"type": "array", "items": STRING}, {"type": ["string", "null"]}, {"anyOf": [STRING]}):
        assert standardize_type(schema) is schema
    assert standardize_type({"type": "List<Integer>", "items": STRING})["items"] == STRING


@given(st.text(alphabet="intlsLIST<>[](),|? .or", max_size=300) | st.text() | st.lists(st.none() | st.text()))
def test_no_type_raises(given_type):
    schema = make_parameters_schema({"properties": {"x": {"type": given_type}}})
    jsonschema.Draft202012Validator.check_schema(schema)
    ToolParameters({"properties": {"x": {"type": given_type}}}).get("x")


def test_a_call_of_a_tool_of_a_document_is_read_by_its_types():
    types = {"flag": "Boolean", "count": "long", "names": "ArrayList", "code": "String", "ratios": "List<Double>"}
    spec = ToolSpec("f", "", {"type": "dict", "properties": {key: {"type": kind} for key, kind in types.items()}})
    values = {"flag": "true", "count": "7", "names": '["a"]', "code": "007", "ratios": "[1, 2.5]"}
    written = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    reader = get_notation("qwen3_coder").reader([spec])
    events = reader.feed(f"<tool_call>\n<function=f>\n{written}</function>\n</tool_call>") + reader.close()
    [call] = [event.call for event in events if isinstance(event, CallFinished)]
    assert call.decode() == {"flag": True, "count": 7, "names": ["a"], "code": "007", "ratios": [1, 2.5]}


def test_a_schema_of_draft_3_is_no_obstacle():
    schema = {"properties": {"x": {"type": "string", "required": True}}, "required": True, "anyOf": None}
    assert ToolParameters(schema).accepts({"x": "a"})
