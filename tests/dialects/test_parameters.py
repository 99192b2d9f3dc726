"""What a schema says of one argument where it refers, combines and goes in circles."""

from __future__ import annotations

import json
from typing import Any

from ferrule.dialects.reader.parameters import ToolParameters
from tables import each_case

CODE = {"type": "string", "maxLength": 5}


@each_case(
    ("schema", "text", "made"),
    [
        ({"allOf": [CODE, {"minLength": 1}]}, "12345", '"12345"'),
        ({"allOf": [{"$ref": "#/$defs/Code"}, {"description": "A code."}]}, "12345", '"12345"'),
        ({"allOf": [{"minLength": 1}]}, "12345", "12345"),
        ({"anyOf": [CODE], "allOf": [{"minLength": 1}]}, "12345", '"12345"'),
        ({"$ref": "#/$defs/Code", "nullable": True}, "null", "null"),
        ({"allOf": [{"$ref": "#/$defs/Code"}], "nullable": True}, "null", "null"),
        ({"anyOf": [{"type": "integer"}], "nullable": True}, "null", "null"),
        ({"anyOf": [{"type": "integer"}], "nullable": True}, "7", "7"),
        # An anchor is no path to the root, which is an object.
        ({"$ref": "#code"}, "7", "7"),
    ],
)
def test_what_a_text_stands_for_under_a_schema_that_combines(schema: dict[str, Any], text: str, made: str) -> None:
    root = {"properties": {"x": schema}, "$defs": {"Code": CODE}}
    assert ToolParameters(root).get("x").to_json(text) == made


def test_references_in_circles_are_each_followed_once() -> None:
    names = [str(number) for number in range(12)]
    circles = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names] + [{"type": "integer"}]}
    parameters = ToolParameters({"properties": {"x": {"$ref": "#/$defs/0"}}, "$defs": dict.fromkeys(names, circles)})
    assert parameters.get("x").types == {"integer"}  # in no time: without that it takes 12 ** 8 steps
    assert parameters.accepts({"x": 7})
    assert not parameters.accepts({"x": "a"})


def test_deep_arguments_are_asked_of_each_alternative_once() -> None:
    operators = ("And", "Or", "Xor", "Nand", "Nor", "Xnor")
    groups = {"type": "object", "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/Any"}}}}
    either = {"anyOf": [*({"$ref": f"#/$defs/{name}"} for name in operators), {"type": "string"}]}
    definitions = {"Any": either} | {name: json.loads(json.dumps(groups)) for name in operators}
    parameters = ToolParameters({"properties": {"x": either}, "$defs": definitions})
    right: Any = "a"
    wrong: Any = 5
    for _ in range(7):
        right, wrong = {"of": [right]}, {"of": [wrong]}
    assert parameters.accepts({"x": right})
    assert not parameters.accepts({"x": wrong})  # in no time: without what is kept it takes 6 ** 7 steps
