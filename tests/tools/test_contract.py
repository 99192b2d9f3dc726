"""Contracts of tools: what may change from one release to the next, and what breaks callers."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ferrule import tool
from ferrule.errors import SettingsError
from ferrule.tools import schema_validator
from ferrule.tools.contract import ToolContract, find_broken_contracts, read_contract
from ferrule.tools.decorator import Tool
from ferrule.tools.schema_validator import SchemaValidator
from ferrule.toolspec import Annotations
from tables import each_case


def make(parameters: dict[str, Any], name: str = "look") -> ToolContract:
    return ToolContract(name, parameters)


def of_tools(old: Any, new: Any) -> list[str]:
    return find_broken_contracts([ToolContract.of(old)], [ToolContract.of(new)])


def of(old: Any, new: Any) -> list[str]:
    """What a change of the parameter `at` breaks."""
    specs = (make({"type": "object", "properties": {"at": schema}}) for schema in (old, new))
    return find_broken_contracts([next(specs)], [next(specs)])


STRING, INTEGER, NUMBER, NULL = ({"type": kind} for kind in ("string", "integer", "number", "null"))
BROKEN: list[tuple[Any, Any, str]] = [
    (STRING, INTEGER, "at no longer accepts string"),
    (NUMBER, INTEGER, "at no longer accepts number"),
    ({}, STRING, "at no longer accepts array, boolean, integer, null, number, object"),
    ({"type": ["string", "null"]}, STRING, "at no longer accepts null"),
    ({"anyOf": [STRING, NULL]}, STRING, "at no longer accepts null"),
    ({"enum": ["a", "b"]}, {"enum": ["a"]}, 'at no longer accepts "b"'),
    (STRING, {"type": "string", "enum": ["a"]}, 'at accepts only "a"'),
    (STRING, {"const": "a"}, 'at accepts only "a"'),
    (INTEGER, {"type": "integer", "minimum": 1}, "at has minimum 1"),
    ({"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 5}, "at has maximum 5, before 9"),
    (STRING, {"type": "string", "pattern": "a"}, 'at has another pattern: "a"'),
    ({"type": "string", "maxLength": 9}, {"type": "string", "maxLength": 3}, "at has maxLength 3, before 9"),
    (STRING, False, "at is gone"),
    ({"type": "array", "items": STRING}, {"type": "array", "items": INTEGER}, "at[] no longer accepts string"),
    ({"type": "array"}, {"type": "array", "items": STRING}, "at[] no longer accepts array, boolean, integer"),
    (
        {"type": "object", "properties": {"x": STRING}},
        {"type": "object", "properties": {"x": STRING, "y": STRING}, "required": ["y"]},
        "at.y is required now",
    ),
    ({"type": "object", "properties": {"from_": STRING}}, {"type": "object", "properties": {}}, "at.from_ is gone"),
    (
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {}, "additionalProperties": False},
        "at no longer accepts other fields",
    ),
    (STRING, {"$ref": "#/$defs/gone"}, "at is gone"),
]


@each_case(("old", "new", "reason"), BROKEN)
def test_what_was_accepted_and_is_not_any_more_breaks_the_contract(old: Any, new: Any, reason: str) -> None:
    (line,) = of(old, new)
    assert line.startswith(f"look: {reason}")


@each_case(("old", "new"), [(new, old) for old, new, _ in BROKEN if new is not False and "$ref" not in new])
def test_the_same_changes_the_other_way_round_pass_where_nothing_is_lost(old: Any, new: Any) -> None:
    lines = of(old, new)
    # A change of a type loses something in both directions, a field that is gone or given up likewise.
    assert lines == [] or "no longer accepts integer" in lines[0] or "is gone" in lines[0]


@each_case(
    ("old", "new"),
    [
        (STRING, {"anyOf": [STRING, NULL]}),
        (STRING, {"type": "string", "description": "another", "default": "x"}),
        (INTEGER, {"anyOf": [NUMBER, STRING]}),
        ({"enum": ["a"]}, STRING),
        ({"enum": ["a"]}, {"enum": ["b", "a"]}),
        ({"type": "string", "enum": ["ab"]}, {"type": "string", "maxLength": 5, "enum": ["ab", "c"]}),
        (STRING, True),
        (False, STRING),
    ],
)
def test_what_accepts_more_passes(old: Any, new: Any) -> None:
    assert of(old, new) == []


def test_tools_and_optional_parameters_may_be_added() -> None:
    @tool(name="look")
    def old(at: str) -> str:
        """Look."""
        return at

    @tool(name="look")
    def new(at: str | None, closely: bool = False) -> str:
        """Look."""
        return str(at)

    assert find_broken_contracts([ToolContract.of(old)], [ToolContract.of(new), make({}, "other")]) == []
    assert of_tools(new, old) == [
        "look: at no longer accepts null",
        "look: closely is gone",
    ]


def test_a_tool_that_is_gone_is_named_with_the_nearest() -> None:
    assert find_broken_contracts([make({}, "read_file")], [make({}, "read_files")]) == [
        "the tool read_file is gone; renamed to read_files?"
    ]
    assert find_broken_contracts([make({}, "read_file")], []) == ["the tool read_file is gone"]


def test_definitions_are_followed_in_both_and_may_refer_to_themselves() -> None:
    def tree(leaf: Any) -> dict[str, Any]:
        node = {"type": "object", "properties": {"leaf": leaf, "inner": {"$ref": "#/$defs/node"}}}
        return {"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}

    assert find_broken_contracts([make(tree(STRING))], [make(tree(STRING))]) == []
    assert find_broken_contracts([make(tree(STRING))], [make(tree(INTEGER))]) == [
        "look: root.leaf no longer accepts string"
    ]


def test_every_kind_of_signature_keeps_its_own_contract() -> None:
    @tool
    def everything(
        a: str, b: int | None = None, c: Literal["x", "y"] = "x", d: dict[str, list[float]] | None = None
    ) -> str:
        """Do everything."""
        return ""

    assert isinstance(everything, Tool)
    assert of_tools(everything, everything) == []


DEFAULTS: list[tuple[Any, Any, list[str]]] = [
    ({"default": 10}, {"default": 10}, []),
    ({}, {"default": 10}, []),
    ({"default": 10}, {"default": 20}, ["look: at has the default 20, before 10"]),
    ({"default": 1}, {"default": True}, ["look: at has the default true, before 1"]),
    ({"default": 10}, {}, ["look: at has no default, before 10"]),
    ({"default": 10, "$ref": "#/$defs/x"}, {"default": 9}, ["look: at has the default 9, before 10"]),
]


@pytest.mark.parametrize(("old", "new", "reasons"), DEFAULTS)
def test_a_caller_relies_on_what_a_left_out_parameter_means(old: Any, new: Any, reasons: list[str]) -> None:
    contracts = [make({"properties": {"at": schema}, "$defs": {"x": {}}}) for schema in (old, new)]
    assert find_broken_contracts(contracts[:1], contracts[1:]) == reasons


def returns(schema: Any) -> ToolContract:
    return ToolContract("look", {}, {"type": "object", "properties": {"at": schema}, "required": ["at"]})


RESULTS: list[tuple[Any, Any, list[str]]] = [
    (STRING, STRING, []),
    (NUMBER, INTEGER, []),
    ({"anyOf": [STRING, NULL]}, STRING, []),
    (STRING, {"const": "a"}, []),
    (STRING, {"anyOf": [STRING, NULL]}, ["look: result.at may also be null"]),
    (STRING, INTEGER, ["look: result.at may also be integer"]),
    ({"enum": ["a"]}, {"enum": ["a", "b"]}, ['look: result.at may also be "b"']),
    ({"enum": ["a"]}, {"type": "string"}, ['look: result.at may be other than "a"']),
    ({"type": "integer", "minimum": 1}, INTEGER, ["look: result.at has no minimum, before 1"]),
    ({"type": "integer", "maximum": 5}, {"type": "integer", "maximum": 9}, ["look: result.at has maximum 9, before 5"]),
    (INTEGER, {"type": "integer", "minimum": 1}, []),
    (
        {"type": "array", "items": STRING},
        {"type": "array", "items": NUMBER},
        ["look: result.at[] may also be integer, number"],
    ),
    ({"properties": {"x": STRING}}, {"properties": {"x": STRING, "y": STRING}}, []),
    ({"properties": {"x": STRING, "y": STRING}}, {"properties": {"x": STRING}}, ["look: result.at.y is gone"]),
    (
        {"properties": {"x": STRING}, "required": ["x"], "additionalProperties": False},
        {"properties": {"x": STRING, "y": STRING}},
        ["look: result.at.x may be missing"],
    ),
]


@each_case(("old", "new", "reasons"), RESULTS)
def test_what_is_returned_is_what_callers_were_told_to_expect(old: Any, new: Any, reasons: list[str]) -> None:
    assert find_broken_contracts([returns(old)], [returns(new)]) == reasons


def test_the_type_that_a_function_returns_is_part_of_its_contract() -> None:
    @tool(name="look")
    def old(at: str) -> list[int]:
        """Look."""
        return [len(at)]

    @tool(name="look")
    def new(at: str) -> list[str]:
        """Look."""
        return [at]

    @tool(name="look")
    def without(at: str) -> Any:
        """Look."""
        return at

    assert of_tools(old, new) == ["look: result.result[] may also be string"]
    assert of_tools(old, without) == ["look: its output schema is gone"]
    assert of_tools(without, old) == []


def test_a_schema_that_can_not_be_applied_counts_as_one_that_breaks() -> None:
    doubling = {f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(40)}
    endless = make({"properties": {"at": {"$ref": "#/$defs/d0"}}, "$defs": {**doubling, "d40": STRING}})
    broken = make({"properties": {"at": {"allOf": [{"$ref": "#/nowhere"}]}}})
    values = make({"properties": {"at": {"enum": ["a", "b"]}}})
    for new in (endless, broken):
        assert find_broken_contracts([values], [new]) == ['look: at no longer accepts "a", "b"']


def test_a_schema_that_can_not_be_checked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: dict[str, Any] = STRING
    for _ in range(150):
        deep = {"type": "object", "properties": {"at": deep}}
    text = json.dumps([{"name": "look", "parameters": deep}])
    for problem in ("it is nested too deeply", "it is too large"):
        with pytest.raises(SettingsError, match=rf"^old.json: tool 1 \(look\): its parameters: {problem}$"):
            read_contract(text, "old.json")
        monkeypatch.setattr(schema_validator, "MAX_STEPS", 1000)


def test_annotations_that_policies_rely_on_still_hold() -> None:
    good = Annotations(read_only=True, destructive=False, idempotent=True, open_world=False)
    bad = Annotations(read_only=False, destructive=True, idempotent=False, open_world=True)
    for old, new, count in (
        (good, good, 0),
        (bad, good, 0),
        (Annotations(), bad, 0),
        (good, bad, 4),
        (good, Annotations(), 4),
    ):
        found = find_broken_contracts([ToolContract("a", {}, None, old)], [ToolContract("a", {}, None, new)])
        assert len(found) == count
    assert find_broken_contracts([ToolContract("a", {}, None, good)], [ToolContract("a", {}, None, bad)])[0] == (
        "a: its annotation read_only is false, before true: policies may rely on it"
    )


def test_an_approval_that_was_not_needed_breaks_the_contract() -> None:
    def of_approvals(old: Any, new: Any) -> list[str]:
        contracts = [ToolContract("a", {}, approval=one) for one in (old, new)]
        return find_broken_contracts(contracts[:1], contracts[1:])

    assert of_approvals("by policy", "always") == ["a: each call must be approved now"]
    assert of_approvals("never", "always") == ["a: each call must be approved now"]
    assert of_approvals("never", "by policy") == ["a: its calls may have to be approved now"]
    for old, new in (("always", "never"), ("by policy", "never"), ("unknown", "always"), ("always", "by policy")):
        assert of_approvals(old, new) == []


_SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "ab"])
_LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]),
        "enum": st.lists(_SCALARS, min_size=1, max_size=3),
        "minimum": st.integers(-2, 2),
        "maximum": st.integers(-2, 2),
        "maxLength": st.integers(0, 2),
    },
)
_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        # Closed ones: a field that is added may have been given before as an unknown one, and passes all the same.
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "additionalProperties": st.just(False),
                "properties": st.dictionaries(st.sampled_from("xy"), inner),
            },
            optional={"required": st.lists(st.sampled_from("xy"), unique=True)},
        ),
    ),
    max_leaves=4,
)
_VALUES = st.recursive(
    _SCALARS | st.sampled_from([0.5, -1.0]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=300)
@given(old=_SCHEMAS, new=_SCHEMAS, value=_VALUES)
@example(old={"enum": [3]}, new={"maximum": 2}, value=3)
@example(old={}, new={"anyOf": [{"anyOf": [{"type": "string"}]}]}, value=None)
def test_where_nothing_is_reported_every_value_is_still_accepted(old: Any, new: Any, value: Any) -> None:
    wrapped = [{"type": "object", "properties": {"at": schema}} for schema in (old, new)]
    if find_broken_contracts([make(wrapped[0])], [make(wrapped[1])]):
        return
    accepted = [not SchemaValidator(schema).errors({"at": value}) for schema in wrapped]
    assert accepted[1] or not accepted[0]


@each_case(
    ("text", "problem"),
    [
        ("{", "old.json: not JSON"),
        ("3", "old.json: not a list of tools; write it by: ferrule tools --json > old.json"),
        ('[{"parameters": {}}]', "old.json: tool 1: has no name"),
        ('[{"name": "look"}]', r"old.json: tool 1 \(look\): has no parameters"),
        ("[]", "old.json: has no tools, so there is nothing to compare; write it by: ferrule tools --json"),
        ('{"tools": ["look"], "problems": []}', "old.json: tool 1: has no name"),
        ('[{"name": "a", "parameters": {}}, {"name": "a", "parameters": {}}]', "old.json: has the tool a twice"),
        ('[{"name": "a", "parameters": {"type": 3}}]', r"tool 1 \(a\): its parameters: not a JSON Schema"),
        ('[{"name": "a", "parameters": {"type": "string"}}]', r"tool 1 \(a\): its parameters are not an object"),
        (
            '[{"name": "a", "parameters": {}, "output_schema": 3}]',
            r"tool 1 \(a\): its output schema: not a JSON Schema",
        ),
        ('[{"name": "a", "parameters": {}, "annotations": 3}]', r"tool 1 \(a\): its annotations are not an object"),
        ('[{"name": "a", "parameters": {}, "annotations": {"read_only": 3}}]', "its annotation read_only is not true"),
        ('[{"name": "a", "parameters": {}, "approval": "maybe"}]', "its approval is 'maybe'; expected always, never"),
    ],
)
def test_what_is_no_list_of_tools_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        read_contract(text, "old.json")


@settings(max_examples=300)
@given(old=_SCHEMAS, new=_SCHEMAS, value=_VALUES)
def test_where_nothing_is_reported_every_result_was_promised(old: Any, new: Any, value: Any) -> None:
    if find_broken_contracts([returns(old)], [returns(new)]):
        return
    if not SchemaValidator(new).errors(value) and not isinstance(value, dict):
        # Fields may be added, at any depth: closed objects of the old schema are not compared.
        assert not [one for one in SchemaValidator(old).errors(value) if one.validator != "additionalProperties"]


def test_what_mcp_says_of_a_tool_is_read() -> None:
    shape = {
        "name": "look",
        "inputSchema": {},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    }
    found = read_contract(json.dumps([shape]), "old.json")
    assert found == [ToolContract("look", {}, {"type": "object"}, Annotations(read_only=True))]


def test_the_shapes_of_providers_are_read() -> None:
    schema = {"type": "object", "properties": {}}
    for shape in (
        {"name": "look", "parameters": schema},
        {"type": "function", "function": {"name": "look", "parameters": schema}},
        {"name": "look", "input_schema": schema},
        {"name": "look", "inputSchema": schema},
    ):
        assert read_contract(json.dumps([shape]), "old.json") == [ToolContract("look", schema)]
        assert read_contract(json.dumps({"tools": [shape]}), "old.json") == [ToolContract("look", schema)]
