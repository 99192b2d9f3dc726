"""Tools that come with a JSON Schema and a callable."""

import socket
import threading

import pytest

from ferrule.errors import ArgumentsInvalid, ToolDefinitionError
from ferrule.tools.decorator import Tool
from ferrule.tools.scope import CallScope
from tables import each_case

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "factor": {"type": ["number", "null"]},
        "precise": {"type": "boolean"},
        "stops": {"type": "array", "items": {"$ref": "#/$defs/stop"}},
        "unit": {"enum": ["km", "miles"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"stop": {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}},
}


def everything(**arguments):
    return arguments


def made(schema=SCHEMA, function=everything, **options):
    return Tool.from_schema("plan", "Plan.", schema, function, **options)


def problem(tool, arguments):
    with pytest.raises(ArgumentsInvalid) as caught:
        tool.bind(arguments)
    return [str(one) for one in caught.value.problems]


def test_it_offers_the_schema_as_it_was_given():
    tool = made(read_only=True, origin="mcp:maps", timeout=3)
    assert tool.spec.parameters == SCHEMA
    assert (tool.description, tool.origin, tool.timeout) == ("Plan.", "mcp:maps", 3)
    assert tool.annotations.read_only is True


def test_arguments_become_keywords():
    tool = made()
    assert tool(**tool.bind('{"city": "Rome", "days": 2}')) == {"city": "Rome", "days": 2}


@each_case(
    ("written", "bound"),
    [
        ('"days": "7"', {"days": 7}),
        ('"days": 7.0', {"days": 7}),
        ('"days": "7.0"', {"days": 7}),
        ('"factor": "1.5"', {"factor": 1.5}),
        ('"factor": 2', {"factor": 2}),
        ('"factor": null', {"factor": None}),
        ('"precise": "True"', {"precise": True}),
        ('"stops": "[{\\"at\\": 1}]"', {"stops": [{"at": 1}]}),
        ('"stops": [{"at": "1"}]', {"stops": [{"at": 1}]}),
        ('"either": "[1]"', {"either": [1]}),
    ],
)
def test_what_is_meant_is_understood(written, bound):
    result = made().bind(f'{{"city": "Rome", {written}}}')
    assert result == {"city": "Rome", **bound}
    assert [type(value) for value in result.values()] == [str, *(type(value) for value in bound.values())]


@each_case(
    ("arguments", "said"),
    [
        ("{}", "city: got nothing; expected a string of at least 2 characters"),
        ('{"city": "R"}', 'city: got the string "R"; expected a string of at least 2 characters'),
        ('{"city": "Rome", "days": 0}', "days: got the number 0; expected an integer from 1 to 9"),
        ('{"city": "Rome", "days": 7.5}', "days: got the number 7.5; expected an integer from 1 to 9"),
        ('{"city": "Rome", "days": true}', "days: got true; expected an integer from 1 to 9"),
        ('{"city": "Rome", "days": "x"}', 'days: got the string "x"; expected an integer from 1 to 9'),
        ('{"city": "Rome", "unit": "m"}', 'unit: got the string "m"; expected one of "km", "miles"'),
        ('{"city": "Rome", "stops": [{}]}', "stops[0].at: got nothing; expected an integer"),
        ('{"city": "Rome", "stops": 1}',
         "stops: got the number 1; expected a list, each item an object with at (an integer)"),
        ('{"city": "Rome", "either": "x"}',
         'either: got the string "x"; expected an integer or a list, each item an integer'),
        ('{"city": "Rome", "dys": 1}', "dys: unknown parameter; did you mean days?"),
        ('{"city": "Rome", "city": "x"}', 'arguments: the key "city" is given more than once; give it once'),
        ("[]", "arguments: got the list []; expected one JSON object with the arguments by name"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(arguments, said):
    assert problem(made(), arguments) == [said]


def test_an_open_schema_takes_only_what_its_function_takes():
    def plan(city, scope: CallScope, days=1): ...

    tool = made({"properties": {"city": {"type": "string"}}}, plan)
    assert tool.scope_parameter == "scope"
    assert tool.bind('{"city": "Rome", "days": 3}') == {"city": "Rome", "days": 3}
    assert problem(tool, '{"city": "Rome", "scope": 1}')[0].startswith("scope: unknown parameter")
    assert made({"type": "object"}).bind('{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("schema", "function", "said"),
    [
        ({"type": "array"}, everything, '"type": "object"'),
        ("text", everything, '"type": "object"'),
        ({"properties": ["a"]}, everything, '"properties" must be an object'),
        (SCHEMA, lambda city: None, "its function lacks the parameter 'days'"),
    ],
)
def test_what_can_not_be_is_refused_at_once(schema, function, said):
    with pytest.raises(ToolDefinitionError, match=said):
        made(schema, function)


def test_a_schema_that_is_none_is_refused_at_the_first_offer():
    tool = made({"type": "object", "properties": {"a": {"type": "whole"}}})
    with pytest.raises(ToolDefinitionError, match=r"not a JSON Schema at properties\.a\.type"):
        _ = tool.spec
    with pytest.raises(ToolDefinitionError, match="not a JSON Schema"):
        tool.bind("{}")


def test_a_reference_elsewhere_is_never_fetched():
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1)

        def listen():
            try:
                server.accept()[0].close()
                asked.append(True)
            except TimeoutError:
                pass

        listener = threading.Thread(target=listen)
        listener.start()
        reference = f"http://127.0.0.1:{server.getsockname()[1]}/schema"
        tool = made({"type": "object", "properties": {"a": {"$ref": reference}}})
        with pytest.raises(ToolDefinitionError, match=r"refers to .*put it under \$defs"):
            tool.bind('{"a": 1}')
        listener.join()
    assert not asked


def test_schemas_that_hold_themselves_are_no_trap():
    node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}
    tool = made({"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    assert tool.bind('{"a": {"next": {"next": null}}}') == {"a": {"next": {"next": None}}}
    assert problem(tool, '{"a": {"next": 1}}')[0].startswith("a.next: got the number 1; expected an object with next")
    endless = {"anyOf": [{"$ref": "#/$defs/endless"}, {"type": "null"}]}
    tool = made({"type": "object", "properties": {"a": {"$ref": "#/$defs/endless"}}, "$defs": {"endless": endless}})
    with pytest.raises(ToolDefinitionError, match="refers to itself infinitely"):
        tool.bind('{"a": 1}')


def test_a_field_that_may_not_be_given():
    tool = made({"type": "object", "properties": {"a": False}})
    assert problem(tool, '{"a": 1}')[0].endswith("got the number 1; expected nothing")


def test_names_are_keywords_too():
    tool = Tool.from_schema(name="n", description="d", parameters={"type": "object"}, function=everything)
    assert tool.name == "n"
    with pytest.raises(TypeError, match="unknown option 'readonly'"):
        Tool.from_schema("n", "d", {"type": "object"}, everything, readonly=True)


ONE = {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
KINDS = [
    {"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"]},
    {"properties": {"kind": {"const": "b"}, "y": {"type": "integer"}}, "required": ["kind", "y"]},
]


@pytest.mark.parametrize(
    ("rule", "arguments", "said"),
    [
        (
            {"anyOf": [{"required": ["id"]}, {"required": ["name"]}]},
            {},
            "one of these: id (an integer); or name (a str",
        ),
        (
            {"oneOf": [{"required": ["id"]}, {"required": ["name"]}]},
            {"id": 1, "name": "b"},
            "only one of these: id; or",
        ),
        ({"oneOf": KINDS}, {}, 'one of these: kind ("a") and x (an integer); or kind ("b") and y (an integer)'),
        ({"oneOf": KINDS}, {"kind": "a"}, 'one of these: x (an integer); or kind as "b" and y (an integer)'),
        ({"not": {"required": ["id", "name"]}}, {"id": 1, "name": "b"}, "not all of these: id, name"),
        ({"dependentRequired": {"id": ["name"]}}, {"id": 1}, "name beside id"),
        ({"minProperties": 1}, {}, "at least 1 of its fields"),
    ],
)
def test_a_rule_at_the_root_names_what_is_missing(rule, arguments, said):
    tool = Tool.from_schema("look", "", {"type": "object", **ONE, **rule}, lambda **_: "")
    with pytest.raises(ArgumentsInvalid) as wrong:
        tool.bind(arguments)
    assert f"expected {said}" in str(wrong.value)
