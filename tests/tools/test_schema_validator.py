"""What it costs to check arguments against somebody else's schema: it is bounded, whatever the schema says."""

from typing import Any

import pytest

from ferrule.errors import ArgumentsInvalid, ToolDefinitionError
from ferrule.tools.decorator import Tool

CATASTROPHIC = "^(a+)+$"
TEXT = "a" * 60 + "!"  # with an engine that backtracks, a matter of many years
DRAFT = "https://json-schema.org/draft/2020-12/schema"
TOO_MANY = "takes too many steps; give fewer or shorter values"


def made(schema: dict[str, Any] | None = None, **properties: Any) -> Tool:
    whole = {"type": "object", "properties": properties, **(schema or {})}
    return Tool.from_schema("t", "", whole, lambda **arguments: arguments)


def problem(tool: Tool, **arguments: Any) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        tool.bind(arguments)
    return str(caught.value)


DRAFTS = [
    "http://json-schema.org/draft-03/schema#",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    DRAFT,
    "http://example.invalid/of-nobody",
]


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_pattern_never_backtracks_in_any_draft(draft: str) -> None:
    tool = made({"$schema": draft}, a={"type": "string", "pattern": CATASTROPHIC})
    assert "matches ^(a+)+$" in problem(tool, a=TEXT)
    assert tool.bind({"a": "aaa"}) == {"a": "aaa"}


def test_a_pattern_never_backtracks_wherever_it_stands() -> None:
    pattern = {"pattern": CATASTROPHIC}
    inner = made(a={"$schema": DRAFT, "type": "string", **pattern})
    assert "matches ^(a+)+$" in problem(inner, a=TEXT)
    names = made(a={"type": "object", "propertyNames": pattern})
    assert "a: got" in problem(names, a={TEXT: 1})
    by_name = {"patternProperties": {CATASTROPHIC: {"type": "integer"}}}
    assert "expected an integer" in problem(made(by_name), aaa="x")
    closed = made({**by_name, "additionalProperties": False})
    assert f"{TEXT}: unknown parameter" in problem(closed, **{TEXT: 1, "aaa": 1})
    assert "aaa:" not in problem(closed, **{TEXT: 1, "aaa": 1})
    assert "expected an integer" in problem(
        made({**by_name, "additionalProperties": {"type": "integer"}}), **{TEXT: "x"}
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"default": {"pattern": CATASTROPHIC}},
        {"enum": [{"a": TEXT}, {"$schema": DRAFT, "pattern": CATASTROPHIC}], "default": {"$ref": "#/enum/1"}},
        {"default": {"patternProperties": {CATASTROPHIC: False}, "unevaluatedProperties": False}},
        {"default": {"$ref": "#/const", "unevaluatedProperties": False}, "const": {"a": TEXT}},
    ],
)
def test_what_only_a_reference_makes_a_schema_is_searched_for_neither(schema: dict[str, Any]) -> None:
    made(schema, a={"$ref": "#/default"}).bind({"a": TEXT})


def test_unevaluated_properties_are_not_checked_beside_names_by_pattern() -> None:
    tool = made({"patternProperties": {CATASTROPHIC: {}}, "unevaluatedProperties": False})
    assert tool.unchecked_rules == ("unevaluatedProperties: it isn't checked beside patternProperties",)
    assert tool.bind({TEXT: 1}) == {TEXT: 1}
    assert "b: unknown parameter" in problem(made({"unevaluatedProperties": False}, a={}), a=1, b=2)


def test_patterns_that_are_not_searched_for_are_listed_with_their_places() -> None:
    tool = made(
        {"patternProperties": {"(?!x)": {"type": "integer"}}, "additionalProperties": False},
        a={"type": "array", "items": {"type": "object", "properties": {"pattern": {"pattern": r"(.)\1"}}}},
        default={"pattern": "a++"},
        b={"default": {"pattern": "(?=no)"}, "pattern": "fine"},
    )
    assert tool.unchecked_rules == (
        """patternProperties: the string "(?!x)" isn't checked: it has a lookaround""",
        """a.pattern.pattern: the string "(.)\\\\1" isn't checked: it has a backreference""",
        """default.pattern: the string "a++" isn't checked: it repeats nothing, or a repetition""",
    )
    # Any name may be one that it is about.
    arguments = {"a": [{"pattern": "ab"}], "default": "", "b": "fine", "other": "x"}
    assert tool.bind(arguments) == arguments


def test_the_patterns_of_one_schema_are_bounded_together() -> None:
    tool = made(a={"anyOf": [{"pattern": f"x{{{count}}}$"} for count in range(4000, 4010)]})
    assert len(tool.unchecked_rules) == 5
    assert tool.unchecked_rules[0].endswith("isn't checked: the schema's patterns are too large together")


def test_a_pattern_of_many_places_is_not_searched_for_in_a_long_text() -> None:
    tool = made(a={"type": "string", "pattern": "[01]*1[01]{4000}2"})
    assert TOO_MANY in problem(tool, a="01" * 100_000)
    assert "expected a string that matches" in problem(tool, a="01" * 100)


@pytest.mark.parametrize(
    ("word", "closed"), [("anyOf", {}), ("if", {}), ("dependentSchemas", {"unevaluatedProperties": False})]
)
def test_a_schema_that_branches_at_every_reference_is_given_up(word: str, closed: dict[str, Any]) -> None:
    def twice(place: str) -> Any:
        both = [{"$ref": place}, {"$ref": place, "title": "again"}]
        return {"dependentSchemas": dict(zip("ab", both, strict=True)), "if": both[0]}.get(word, both)

    last = {"type": "array"} if word in ("anyOf", "oneOf") else {}
    inner = {f"n{number}": {word: twice(f"#/$defs/n{number + 1}")} for number in range(60)}
    if word == "if":
        inner = {name: {**rule, "then": rule["if"], "else": rule["if"]} for name, rule in inner.items()}
    tool = made({**closed, "$ref": "#/$defs/n0", "$defs": {**inner, "n60": last}}, a={}, b={})
    assert TOO_MANY in problem(tool, a=1, b=2)


def test_a_reference_to_an_anchor_does_not_search_the_whole_schema_each_time() -> None:
    others = {f"n{number}": {"type": "integer"} for number in range(300)}
    tool = made({"$defs": {"here": {"$anchor": "here", "type": "integer"}, **others}}, a={"items": {"$ref": "#here"}})
    assert "a[1]: got" in problem(tool, a=[1, "x", *range(1000)])


def test_unique_items_are_compared_by_value_and_in_one_pass() -> None:
    tool = made(a={"type": "array", "uniqueItems": True})
    many = [{"x": number} for number in range(20_000)]
    assert tool.bind({"a": many}) == {"a": many}
    different = [1, True, "1", [1], {"a": 1}, None, "null", 0, False, 1.5]
    assert tool.bind({"a": different}) == {"a": different}
    for same in ([1, 1.0], [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], ["x", "x"]):
        assert "a: got" in problem(tool, a=same)


def test_choices_are_compared_by_value_and_in_one_pass() -> None:
    tool = made(
        a={"type": "array", "items": {"enum": [*range(1000), {"x": [1]}, None, "é"]}},
        b={"const": 1},
        c={"enum": [True]},
    )
    fitting = {"a": [999, 5.0, {"x": [1.0]}, None, "é"] * 400, "b": 1.0, "c": True}
    assert tool.bind(fitting) == fitting
    assert "a[0]" in problem(tool, a=[True])
    assert "b: got" in problem(tool, b=True)
    assert "c: got" in problem(tool, c=1)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"anyOf": [{"type": "integer"}] * 1000}, "x" * 200_000),
        ({"type": "array", "items": {"required": [f"r{number}" for number in range(2000)]}}, [{}] * 2000),
        ({"type": "array", "items": {"enum": [{"x": number} for number in range(500)]}}, [{"x": -1}] * 20_000),
    ],
)
def test_errors_that_quote_much_are_given_up(schema: dict[str, Any], value: Any) -> None:
    assert TOO_MANY in problem(made(a=schema), a=value)


def test_a_call_with_very_many_wrong_fields_names_some() -> None:
    known = {f"abcdefgh{number}": {} for number in range(1000)}
    unknown = {f"abcdefxh{number}": 1 for number in range(3000)}
    told = problem(made({"additionalProperties": False}, **known), **unknown)
    assert told.count("\n- ") == 50
    long = problem(made({"additionalProperties": False}, **{"ab" * 20_000: {}}), **{"ba" * 20_000: 1})
    assert "did you mean" not in long


def test_what_is_wanted_is_said_shortly_of_a_schema_that_holds_itself_often() -> None:
    both = {
        "a": {"anyOf": [{"$ref": "#/$defs/b"}] * 100},
        "b": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/a"}] * 100}},
    }
    assert "expected a list, each item a list or …" in problem(made({"$defs": both}, a={"$ref": "#/$defs/a"}), a=1)


@pytest.mark.parametrize("target", [5, {"type": "of nothing"}, {"required": 7}])
def test_a_reference_to_what_is_no_schema_is_the_tools_fault(target: Any) -> None:
    tool = made({"default": target}, a={"$ref": "#/default"})
    with pytest.raises(ToolDefinitionError, match="the tool 't': its schema can't be applied"):
        tool.bind({"a": {"x": 1}})


def test_a_schema_may_be_nested_as_deeply_as_people_write_them() -> None:
    nested: dict[str, Any] = {"type": "integer"}
    value: Any = "x"
    for _ in range(12):
        nested, value = {"type": "object", "properties": {"a": {"type": "array", "items": nested}}}, {"a": [value]}
    assert "expected an integer" in problem(made(a=nested), a=value)


def test_a_schema_that_is_nested_without_end_is_refused() -> None:
    nested: dict[str, Any] = {}
    for _ in range(2000):
        nested = {"items": nested}
    with pytest.raises(ToolDefinitionError, match="its schema is nested too deeply"):
        _ = made(a=nested).spec
