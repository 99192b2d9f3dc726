"""Whole schemas as plain terms: those of a benchmark of tool calls, and random ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmark_schemas import list_schemas, rename_types
from grammar_matching import is_text_of, iterate_terms
from grammar_texts import find_problems
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from vectors import FOLDER, IS_MISSING

from ferrule.dialects.grammar import JsonValue
from ferrule.dialects.notations.pythonic import write_literal
from ferrule.dialects.value_grammar.schema_values import lower_values
from ferrule.errors import DialectError


def list_answers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The schemas of the benchmark, each with arguments that are right: the first of each parameter's."""
    for name in ("simple_python", "live_simple"):
        functions = (FOLDER / "bfcl" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        answers = (FOLDER / "bfcl" / f"{name}.answers.jsonl").read_text(encoding="utf-8").splitlines()
        for function, answer in zip(functions, answers, strict=True):
            schema = rename_types(json.loads(function)["function"][0]["parameters"])
            [arguments] = json.loads(answer)["ground_truth"][0].values()
            chosen = {key: values[0] for key, values in arguments.items() if values and values[0] != ""}
            # An answer lists objects by their alternatives, too, so that they aren't values.
            if Draft202012Validator(schema).is_valid(chosen):
                yield schema, order_keys(chosen, schema)


def order_keys(value: Any, schema: dict[str, Any]) -> Any:
    """The keys of an object in the order of its schema."""
    properties = schema.get("properties", {})
    if isinstance(value, dict) and properties:
        return {name: order_keys(value[name], one) for name, one in properties.items() if name in value}
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [order_keys(one, schema["items"]) for one in value]
    return value


@IS_MISSING
def test_texts_of_a_benchmark_are_valid() -> None:
    refused = []
    for schema in list_schemas():
        try:
            for is_python in (False, True):
                assert list(find_problems(schema, is_python, 5)) == []
        except DialectError as error:
            refused.append(str(error))
            continue
        grammar, losses = lower_values(JsonValue(schema))
        assert not losses
        assert sum(1 for _ in iterate_terms(grammar)) < 250
    assert len(list_schemas()) == 671
    # An enum of strings in an array: it should have been in the items.
    assert refused == ["no value fits the schema: metrics: no listed value fits the other keywords"]


@IS_MISSING
def test_right_arguments_of_a_benchmark_are_texts() -> None:
    answers = list(list_answers())
    assert len(answers) > 500
    for schema, arguments in answers:
        for is_python in (False, True):
            grammar, _ = lower_values(JsonValue(schema, is_python))
            text = write_literal(arguments) if is_python else json.dumps(arguments, ensure_ascii=False)
            assert is_text_of(grammar, text), text


SCALARS = st.sampled_from([{"type": name} for name in ("string", "integer", "number", "boolean", "null")]) | st.builds(
    dict,
    minimum=st.integers(-50, 50),
    exclusiveMaximum=st.integers(20, 90) | st.floats(0, 90),
    type=st.sampled_from(["integer", "number", ["number", "null"]]),
)
TEXTS = st.builds(
    dict,
    type=st.sampled_from(["string", ["string", "null"]]),
    minLength=st.integers(0, 3),
    maxLength=st.integers(2, 9),
    pattern=st.sampled_from(["", "^[ab]+$", "b", r"^\w+-\d+$", "^.b?"]),
)
LISTED = st.builds(dict, enum=st.lists(st.sampled_from(["a", "b", 1, 1.5, True, None, [1], {"a": 1}]), min_size=1))
NAMES = st.sampled_from(["a", "b", "c", "d"])


def combine(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    schemas = st.lists(inner, min_size=1, max_size=3)
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "maxProperties": st.integers(1, 3),
            "minProperties": st.integers(0, 2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "^x-", "b"]), inner, max_size=2),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(1, 4),
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
        },
    )
    alternatives = st.builds(dict, anyOf=schemas) | st.builds(dict, oneOf=schemas) | st.builds(dict, allOf=schemas)
    both = st.tuples(objects | arrays | inner, alternatives).map(lambda pair: {**pair[0], **pair[1]})
    return objects | arrays | alternatives | both


SCHEMAS = st.recursive(SCALARS | TEXTS | LISTED | st.just({"$ref": "#/$defs/d"}) | st.just({}), combine, max_leaves=8)


@given(SCHEMAS, SCHEMAS, st.booleans(), st.integers(0, 2**32))
def test_texts_of_any_schema_are_valid(schema: dict[str, Any], definition: Any, is_python: bool, seed: int) -> None:
    document = {**schema, "$defs": {"d": definition}}
    try:
        problems = list(find_problems(document, is_python, 8, seed))
    except DialectError as error:
        assert "no value fits the schema" in str(error)  # noqa: PT017
        return
    except RecursionError:  # jsonschema's, of a definition that is an alternative of itself
        return
    assert problems == []
