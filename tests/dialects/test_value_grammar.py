"""The values that a schema allows, as plain terms: every text of them is valid, and what is usual is a text of them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from grammar_matching import is_text_of, iterate_terms
from grammar_texts import find_problems, parse, write_random
from jsonschema import Draft202012Validator

from ferrule.dialects.grammar import (
    CharacterSet,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    MarkerText,
    Repetition,
)
from ferrule.dialects.value_grammar.any_values import ValueLimits
from ferrule.dialects.value_grammar.lowering import write_value
from ferrule.dialects.value_grammar.schema_values import lower_values
from ferrule.errors import DialectError

PLAIN = (LiteralText, CharacterSet, GrammarSequence, GrammarChoice, Repetition)
TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


def make_object(properties, **keywords):
    return {"type": "object", "properties": properties, **keywords}


def make_node(**keywords):
    node = make_object({"value": WHOLE, "next": {"$ref": "#/$defs/node"}}, required=["value"])
    return {"$ref": "#/$defs/node", "$defs": {"node": node}, **keywords}


VARIANTS = [
    make_object({"kind": {"const": "a"}, "size": WHOLE}, required=["kind"]),
    make_object({"kind": {"const": "b"}, "name": TEXT}, required=["kind"]),
]
STRICT = [
    make_object({"a": WHOLE}, required=["a"], additionalProperties=False),
    make_object({"b": WHOLE}, required=["b"], additionalProperties=False),
]
CHAIN = {f"d{place}": make_object({"n": {"$ref": f"#/$defs/d{place + 1}"}}, required=["n"]) for place in range(8)}

# A schema, texts of its grammar, and texts that aren't.
CASES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "anything": ({}, ['"a"', "-1.5e3", "true", "null", "[]", '{"a": [1, {}]}'], ["", "01", "{", "nul"]),
    "described only": ({"description": "x", "default": 3}, ["null", "3"], ["x"]),
    "string": (TEXT, ['""', r'"a\"\\\n\té\u00e9"', '"漢 {"'], ['"', '"\n"', r'"\x"', r'"\ud800"', "'a'"]),
    "integer": (WHOLE, ["0", "-7", "999999999999999"], ["-0", "01", "1.0", "1e3", "1234567890123456"]),
    "number": (NUMBER, ["0", "-7", "2.50", "-0.000001", "1e-09", "6.02E+23"], ["01", ".5", "1.", "1e999"]),
    "boolean": ({"type": "boolean"}, ["true", "false"], ["True", "1"]),
    "null": ({"type": "null"}, ["null"], ["None"]),
    "types": ({"type": ["string", "null"]}, ['"a"', "null"], ["1"]),
    "both numbers": ({"type": ["integer", "number"]}, ["1", "1.5"], ["true"]),
    # Objects.
    "keys": (
        make_object({"a": WHOLE, "b": WHOLE, "c": WHOLE}, required=["b"]),
        ['{"b": 1}', '{"a": 1, "b": 2}', '{"b": 1, "c": 2}', '{"a": 1, "b": 2, "c": 3}'],
        ["{}", '{"a": 1}', '{"b": 1, "a": 2}', '{"b":1}', '{"b": 1,"c": 2}', '{"b": 1, "d": 2}', '{, "b": 1}'],
    ),
    "optional keys": (make_object({"a": WHOLE, "b": WHOLE}), ["{}", '{"a": 1}', '{"b": 1}'], ['{"c": 1}']),
    "escaped key": (make_object({'a"é\n': WHOLE}), [r'{"a\"é\n": 1}'], ['{"a"é": 1}']),
    "no keys": (make_object({}), ["{}"], ['{"a": 1}']),
    "open": ({"type": "object"}, ["{}", '{"a": 1, "b": [null]}'], ["{a: 1}"]),
    "open, of one type": ({"type": "object", "additionalProperties": WHOLE}, ['{"a": 1}'], ['{"a": "b"}']),
    "closed": ({"type": "object", "additionalProperties": False}, ["{}"], ['{"a": 1}']),
    "required, unnamed": (
        make_object({"a": TEXT}, required=["z"], additionalProperties=WHOLE),
        ['{"z": 1}', '{"a": "", "z": 1}'],
        ['{"z": ""}', "{}"],
    ),
    "at least two keys": (
        make_object({"a": WHOLE, "b": WHOLE, "c": WHOLE}, minProperties=2),
        ['{"a": 1, "c": 1}', '{"b": 1, "c": 1}', '{"a": 1, "b": 1, "c": 1}'],
        ['{"a": 1}', "{}"],
    ),
    "at most one key": (
        make_object({"a": WHOLE, "b": WHOLE}, maxProperties=1),
        ["{}", '{"b": 1}'],
        ['{"a": 1, "b": 1}'],
    ),
    "one open key": (
        {"type": "object", "additionalProperties": WHOLE, "minProperties": 1, "maxProperties": 2},
        ['{"a": 1}', '{"a": 1, "b": 2}'],
        ["{}", '{"a": 1, "b": 2, "c": 3}'],
    ),
    "pattern of keys": (
        {"type": "object", "patternProperties": {"^x-": WHOLE}, "additionalProperties": False},
        ["{}", '{"x-a": 1, "x-": 2}'],
        ['{"y": 1}', '{"x-a": ""}'],
    ),
    "patterns of keys": (
        {"type": "object", "patternProperties": {"^S_": TEXT, "^I_": WHOLE}},
        ['{"S_a": "", "I_a": 1}'],
        ['{"S_a": 1}'],
    ),
    "patterns that overlap": (
        {"type": "object", "patternProperties": {"a": WHOLE, "b": {"minimum": 3}}},
        ['{"a": 3}'],
        ['{"a": 2}', '{"b": 2}'],
    ),
    "patterns that exclude each other": ({"type": "object", "patternProperties": {"a": WHOLE, "b": TEXT}}, ["{}"], []),
    "pattern of a named key": (
        make_object({"ab": {}, "c": TEXT}, patternProperties={"^a": WHOLE}),
        ['{"ab": 1, "c": ""}'],
        ['{"ab": ""}'],
    ),
    "key that nothing fits": (make_object({"a": False, "b": TEXT}), ["{}", '{"b": ""}'], ['{"a": 1}']),
    "without a type": ({"properties": {"a": WHOLE}}, ['{"a": 1}'], ["1"]),
    # Arrays.
    "items": ({"type": "array", "items": WHOLE}, ["[]", "[1]", "[1, 2]"], ["[1,2]", '[""]', "[, 1]", "[1, ]"]),
    "any items": ({"type": "array"}, ["[]", '[1, "a", [{}]]'], ["[,]"]),
    "number of items": (
        {"type": "array", "items": WHOLE, "minItems": 2, "maxItems": 3},
        ["[1, 2]", "[1, 2, 3]"],
        ["[1]", "[1, 2, 3, 4]"],
    ),
    "tuple": (
        {"type": "array", "prefixItems": [WHOLE, TEXT], "items": False, "minItems": 2},
        ['[1, ""]'],
        ["[1]", '[1, "", 2]'],
    ),
    "tuple that may be shorter": (
        {"type": "array", "prefixItems": [WHOLE, TEXT]},
        ["[]", "[1]", '[1, ""]'],
        ['[""]', '[1, "", 2]'],
    ),
    "tuple and items": (
        {"type": "array", "prefixItems": [WHOLE], "items": TEXT, "minItems": 2},
        ['[1, ""]', '[1, "", ""]'],
        ["[1]", "[1, 2]"],
    ),
    "tuple that ends early": (
        {"type": "array", "prefixItems": [WHOLE, False], "items": TEXT},
        ["[]", "[1]"],
        ['[1, ""]'],
    ),
    "no items": ({"type": "array", "items": False}, ["[]"], ["[1]"]),
    # Listed values.
    "enum": ({"enum": ["a", "ab", 1, None, {"x": [1.5]}]}, ['"a"', '"ab"', "1", "null", '{"x": [1.5]}'], ['"b"']),
    "const": ({"const": "é\n"}, [r'"é\n"'], ['"e"']),
    "enum of a type": ({"enum": ["a", 1, 2.5, True], "type": "integer"}, ["1"], ['"a"', "2.5", "true"]),
    "enum and more": ({"enum": ["a", "bcd", 3], "minLength": 2, "type": "string"}, ['"bcd"'], ['"a"', "3"]),
    "enum and a reference": (
        {"$defs": {"m": {"minimum": 2}}, "enum": [[1], [2]], "items": {"$ref": "#/$defs/m"}},
        ["[2]"],
        ["[1]"],
    ),
    "enum and const": ({"enum": [1, True], "const": True}, ["true"], ["1"]),
    # Alternatives.
    "anyOf": ({"anyOf": [TEXT, {"type": "integer", "minimum": 3}]}, ['""', "3"], ["2"]),
    "anyOf with one that nothing fits": ({"anyOf": [False, WHOLE]}, ["3"], ['""']),
    "anyOf beside keys": (
        make_object({"a": WHOLE, "b": WHOLE}, anyOf=[{"required": ["a"]}, {"required": ["b"]}]),
        ['{"a": 1}', '{"b": 1}', '{"a": 1, "b": 2}'],
        ["{}"],
    ),
    "oneOf": ({"oneOf": [TEXT, WHOLE]}, ['""', "1"], ["null"]),
    "oneOf constants": ({"oneOf": [{"const": "a"}, {"const": "b"}]}, ['"a"', '"b"'], ['"c"']),
    "oneOf by a key": ({"oneOf": VARIANTS}, ['{"kind": "a", "size": 1}'], ['{"kind": "b", "size": 1}']),
    "oneOf of closed objects": ({"oneOf": STRICT}, ['{"a": 1}', '{"b": 1}'], ['{"a": 1, "b": 1}', "{}"]),
    "allOf": (
        {"allOf": [make_object({"a": WHOLE}, required=["a"]), make_object({"a": {"minimum": 3}, "b": TEXT})]},
        ['{"a": 3}', '{"a": 3, "b": ""}'],
        ['{"a": 2}', '{"b": ""}'],
    ),
    "allOf that closes": (
        {"allOf": [make_object({"a": WHOLE}, additionalProperties=False), make_object({"b": TEXT})]},
        ["{}", '{"a": 1}'],
        ['{"b": ""}'],
    ),
    "allOf of types": (
        {"allOf": [{"type": ["string", "integer"]}, {"type": ["number", "null"]}]},
        ["1"],
        ["null", "1.5"],
    ),
    # References.
    "definition": ({"$defs": {"a b": WHOLE}, "items": {"$ref": "#/$defs/a%20b"}}, ["[1]"], ['[""]']),
    "anchor": (
        {"definitions": {"x": {"$anchor": "q", **WHOLE}}, "properties": {"y": {"$ref": "#q", "minimum": 4}}},
        ['{"y": 4}'],
        ['{"y": 3}'],
    ),
    "list": (make_node(), ['{"value": 1}', '{"value": 1, "next": {"value": 2}}'], ['{"next": {"value": 2}}']),
    "tree": (make_object({"v": WHOLE, "in": {"type": "array", "items": {"$ref": "#"}}}), ['{"in": [{"v": 1}]}'], []),
    "expression": (
        {
            "$defs": {"e": {"oneOf": [WHOLE, {"type": "array", "items": {"$ref": "#/$defs/e"}, "minItems": 1}]}},
            "$ref": "#/$defs/e",
        },
        ["1", "[1]", "[[1], 2]"],
        ["[]"],
    ),
    "deeper than the limit": (
        {"$ref": "#/$defs/d0", "$defs": {**CHAIN, "d8": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/d0"}]}}},
        [8 * '{"n": ' + "null" + 8 * "}"],
        ["null"],
    ),
    # Strings.
    "length": ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', r'"\n\"\\"', '"漢é"'], ['"a"', '"abcd"']),
    "pattern": ({"pattern": r"^[a-z]+\d{2}$"}, ['"ab12"'], ['"ab1"', '"AB12"', '"ab12 "']),
    "pattern anywhere": ({"pattern": "[0-9]"}, ['"1"', '"a1b"'], ['"a"', '""']),
    "pattern of a part": ({"pattern": r"(^|\s)foo$"}, ['"foo"', '"a foo"'], ['"afoo"', '"foo "']),
    "pattern and length": (
        {"pattern": "^[a-z]+@[a-z]+$", "minLength": 5, "maxLength": 7},
        ['"aa@bb"', '"aaa@bbb"'],
        ['"a@b"', '"aaaa@bbb"'],
    ),
    "pattern of escapes": ({"pattern": '^["\\\\]+$'}, [r'"\"\\"'], [r'"\n"']),
    "date": ({"format": "date"}, ['"2024-02-29"', '"2023-12-31"'], ['"2023-02-29"', '"2023-13-01"', '"23-1-1"']),
    "date-time": (
        {"format": "date-time"},
        ['"2024-05-06T07:08:09Z"', '"2024-05-06T07:08:09.5+02:00"'],
        ['"2024-05-06"'],
    ),
    "email": ({"format": "email"}, ['"jane.doe@example.com"'], ['"jane"', '"@example.com"']),
    "uuid": ({"format": "uuid"}, ['"123e4567-e89b-12d3-a456-426614174000"'], ['"123e4567"']),
    "uri": ({"format": "uri"}, ['"https://example.com/a/b?c=d#e"', '"mailto:a@b.c"'], ['"example"']),
    "ipv4": ({"format": "ipv4"}, ['"192.168.0.1"'], ['"256.1.1.1"']),
    "ipv6": ({"format": "ipv6"}, ['"::1"', '"2001:db8::8a2e:370:7334"'], ['"1::2::3"']),
    "format and length": (
        {"format": "hostname", "maxLength": 30},
        ['"example.com"'],
        ['"www.example-of-a-long-name.example.com"'],
    ),
    # Numbers.
    "range": ({"type": "integer", "minimum": 0, "maximum": 120}, ["0", "9", "120"], ["-1", "121", "007"]),
    "exclusive": ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 3}, ["1", "2"], ["0", "3"]),
    "range of fractions": (
        {"minimum": -0.5, "maximum": 1},
        ["-0.5", "-0.49", "0", "0.123456", "1", "1.0"],
        ["-0.51", "1.1", "-1", "1e0"],
    ),
    "exclusive of fractions": ({"exclusiveMinimum": 0, "maximum": 0.3}, ["0.000001", "0.30"], ["0", "0.0", "0.300001"]),
    "beyond the digits": ({"type": "integer", "minimum": 10**20}, ["1" + 20 * "0"], ["9"]),
    "multiple": ({"type": "integer", "multipleOf": 7}, ["0", "-7", "14", "700000000000"], ["8", "1"]),
    "multiple in a range": ({"multipleOf": 15, "minimum": 1, "maximum": 60}, ["15", "60"], ["0", "20", "75"]),
    "multiple of a fraction": (
        {"multipleOf": 0.25, "minimum": 0},
        ["0.25", "3.5", "10", "1.00"],
        ["0.3", "0.125", "-1"],
    ),
    "int32": ({"type": "integer", "format": "int32"}, ["2147483647"], ["2147483648"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_schema_as_terms(name):
    schema, accepted, refused = CASES[name]
    grammar, losses = lower_values(JsonValue(schema))
    assert not losses
    assert all(isinstance(term, PLAIN) for term in iterate_terms(grammar))
    assert [text for text in accepted if not is_text_of(grammar, text)] == []
    assert [text for text in refused if is_text_of(grammar, text)] == []
    for text in accepted:
        Draft202012Validator(schema).validate(json.loads(text))


@pytest.mark.parametrize("is_python", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_every_text_is_valid(name, is_python):
    assert list(find_problems(CASES[name][0], is_python, 30)) == []


REFUSED = {
    "nothing": (False, "the schema: `false` allows no value"),
    "an unknown type": ({"type": "dict"}, "type: 'dict' isn't a type"),
    "no listed values": ({"enum": []}, "no listed value fits"),
    "listed values of another type": (
        make_object({"a": {"enum": ["x"], "type": "array"}}, required=["a"]),
        "a: no listed",
    ),
    "a required key without a value": (make_object({"a": False}, required=["a"]), "a: `false` allows no value"),
    "a required key that is closed": (
        make_object({}, required=["b"], additionalProperties=False),
        "additionalProperties",
    ),
    "lengths": ({"minLength": 3, "maxLength": 2}, "at least 3 characters, at most 2"),
    "a pattern of another length": ({"pattern": "^abc$", "maxLength": 2}, "no text of '^abc$' has 0 to 2 characters"),
    "bounds": ({"type": "integer", "minimum": 3, "maximum": 2}, "no integer is between"),
    "bounds of fractions": ({"exclusiveMinimum": 1, "maximum": 1}, "no number of 6 decimal places is between"),
    "no multiple": ({"multipleOf": 7, "minimum": 1, "maximum": 6}, "no multiple is between"),
    "types": ({"allOf": [TEXT, WHOLE]}, "its types exclude each other"),
    "itself": ({"$ref": "#"}, "`$ref` leads back to itself without an end"),
    "itself inside": (make_object({"a": {"$ref": "#"}}, required=["a"]), "a: `$ref` leads back"),
    "not a schema": ({"properties": {"a": 3}}, "a: 3 isn't a schema"),
    "not a keyword": ({"properties": {"a": {"minLength": "3"}}}, "a.minLength: '3' isn't a count"),
    "too few items": ({"items": False, "minItems": 1}, "[]: `false` allows no value"),
    "no options": ({"anyOf": []}, "`anyOf` has no options"),
    "too few keys": (make_object({"a": {}}, minProperties=2), "of its 1 keys 0 are required"),
}

LOSSES = {
    "uniqueItems": ({"items": WHOLE, "uniqueItems": True}, "uniqueItems isn't enforced"),
    "contains": (make_object({"a": {"type": "array", "contains": {}}}), "a.contains isn't enforced"),
    "not": ({"not": TEXT}, "not isn't enforced"),
    "if": ({"if": TEXT, "then": {"minLength": 1}}, "if isn't enforced"),
    "propertyNames": ({"type": "object", "propertyNames": {}}, "propertyNames isn't enforced"),
    "dependentRequired": (make_object({"a": WHOLE}, dependentRequired={}), "dependentRequired isn't enforced"),
    "unevaluatedProperties": (
        make_object({"a": WHOLE}, unevaluatedProperties=False),
        "unevaluatedProperties isn't enforced",
    ),
    "minProperties": (
        {"type": "object", "minProperties": 2},
        "minProperties isn't enforced: a key may be written twice",
    ),
    "patternProperties": (
        {"patternProperties": {"(?=a)": WHOLE}},
        "patternProperties isn't enforced: '(?=a)': it has a lookaround",
    ),
    "oneOf": ({"oneOf": [NUMBER, WHOLE]}, "oneOf isn't enforced: a value may fit several of its options"),
    "lookaround": ({"items": {"pattern": "(?=a)b"}}, "[].pattern isn't enforced: it has a lookaround"),
    "back reference": ({"pattern": r"(a)\1"}, "pattern isn't enforced: it refers back to a group"),
    "word boundary": ({"pattern": r"^\bfoo"}, "pattern isn't enforced: it has a place that isn't its beginning or end"),
    "property": ({"pattern": r"\p{L}"}, "pattern isn't enforced: it can't be read: bad escape \\p at position 0"),
    "two patterns": (
        {"pattern": "^a", "allOf": [{"pattern": "b$"}]},
        "allOf[0].pattern isn't enforced: only pattern '^a' is",
    ),
    "odd length": (
        {"pattern": r"^(\d\d)*$", "minLength": 3, "maxLength": 3},
        "pattern isn't enforced: no text of it with 3 to 3 characters is found",
    ),
    "unknown format": ({"type": "string", "format": "foo"}, "format isn't enforced: 'foo' isn't a known format"),
    "inexact multiple": (
        {"type": "number", "multipleOf": 0.01},
        "multipleOf isn't enforced: exact multiples are written, some of which a check by floats refuses",
    ),
    "other document": ({"$ref": "https://x.y/z"}, "$ref isn't enforced: 'https://x.y/z' isn't in this schema"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_schema_that_nothing_fits_is_refused(name):
    schema, reason = REFUSED[name]
    with pytest.raises(DialectError) as refusal:
        lower_values(JsonValue(schema))
    assert reason in str(refusal.value)


@pytest.mark.parametrize("is_python", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_a_keyword_that_is_not_enforced_is_a_loss(name, is_python):
    schema, detail = LOSSES[name]
    grammar, losses = lower_values(JsonValue(schema, is_python))
    assert [(loss.kind, loss.detail) for loss in losses] == [("schema", detail)]
    random = Random(0)
    for _ in range(20):
        parse(write_random(grammar, random), is_python)


def test_python_literals():
    schema = make_object({"a": {"type": ["boolean", "null", "string"]}, "b": {"const": {"c": [None, True]}}})
    grammar, _ = lower_values(JsonValue(schema, is_python=True))
    for text in ("{}", '{"a": True, "b": {"c": [None, True]}}', '{"a": None}', r'{"a": "\n\u00e9"}'):
        assert is_text_of(grammar, text)
    # Python reads a slash after a backslash, and halves of a surrogate pair, as they are.
    for text in ('{"a": true}', r'{"a": "\/"}', r'{"a": "\ud83d\ude00"}'):
        assert not is_text_of(grammar, text)
    assert is_text_of(lower_values(JsonValue(TEXT))[0], r'"\ud83d\ude00\/"')


def test_limits():
    limits = ValueLimits(3, 2, 1, 2, value_depth=1, recursion=1, integer_digits=2, fraction_digits=1)
    for schema, text, longer in (
        (TEXT, '"abc"', '"abcd"'),
        ({"items": WHOLE}, "[1, 2]", "[1, 2, 3]"),
        ({"additionalProperties": WHOLE}, '{"ab": 1}', '{"abc": 1}'),
        ({"additionalProperties": WHOLE}, '{"a": 1}', '{"a": 1, "b": 2}'),
        ({}, "[1]", "[[1]]"),
        (WHOLE, "-99", "100"),
        ({"type": "integer", "minimum": 100}, "900", "1001"),
        (NUMBER, "12.3", "12.34"),
        (make_node(), '{"value": 1}', '{"value": 1, "next": {"value": 1}}'),
        ({"type": "string", "minLength": 5}, '"abcde"', '"abcdef"'),
    ):
        grammar, _ = lower_values(JsonValue(schema), limits)
        assert is_text_of(grammar, text), schema
        assert not is_text_of(grammar, longer), schema


@pytest.mark.parametrize("is_python", [False, True])
def test_no_text_that_ends_a_value_is_in_it(is_python):
    schema = make_object(
        {
            "<b>": TEXT,
            "listed": {"enum": ["a </x> b", "<"]},
            "shaped": {"pattern": "^[<>]{3}/x>$"},
            "others": {"pattern": "^[^a]{2}$"},
            "one": {"pattern": "^<$"},
            "any": {},
        },
        required=["<b>", "listed", "shaped", "others", "one", "any"],
    )
    plain, escaped = JsonValue(schema, is_python), JsonValue(schema, is_python, ("</x>", "\n<y>", "｜>"))
    grammar, losses = lower_values(GrammarSequence((plain, escaped)))
    assert not losses
    assert isinstance(grammar, GrammarSequence)
    ordinary, kept = grammar.items
    random, texts = Random(1), ""
    for _ in range(50):
        text = write_random(kept, random)
        texts += text
        Draft202012Validator(schema).validate(parse(text, is_python))
        assert "<" not in text
        assert "｜" not in text
    assert all(piece in texts for piece in (r'"\u003cb>": ', r'"a \u003c/x> b"', r'"\u003c"', r"\uff5c"))
    values = ("</x> \n", "<", "<<>/x>", "<｜", "<", ["｜>", 1])
    value = dict(zip(schema["properties"], values, strict=True))
    text = write_value(value, is_python)
    assert is_text_of(ordinary, text)
    assert not is_text_of(kept, text)
    text = text.replace("<", r"\u003c").replace("｜", r"\uff5c")
    assert is_text_of(kept, text)
    assert parse(text, is_python) == value


def test_a_text_that_strings_are_not_alone_in_having_cannot_be_kept_out():
    for closer in (", ", "]", "n1", "\U0001f642"):
        with pytest.raises(DialectError, match="a value can't be kept from containing"):
            lower_values(JsonValue({}, closers=("</x>", closer)))


def test_a_grammar_keeps_its_other_terms_and_shares_what_is_the_same():
    schema = make_object({"a": {"type": "string", "description": "x"}, "b": {"type": "string"}})
    marker, value = MarkerText("<call>"), JsonValue(schema)
    plain = GrammarSequence((marker, LiteralText("x")))
    grammar, _ = lower_values(
        GrammarSequence((plain, value, Repetition(value), GrammarChoice((marker, JsonValue(schema)))))
    )
    assert isinstance(grammar, GrammarSequence)
    first, second, third, fourth = grammar.items
    assert first is plain
    assert isinstance(third, Repetition)
    assert isinstance(fourth, GrammarChoice)
    assert second is third.item is fourth.options[1]
    strings = [term for term in iterate_terms(second) if isinstance(term, Repetition) and term.maximum == 65_536]
    assert len(strings) == 1
