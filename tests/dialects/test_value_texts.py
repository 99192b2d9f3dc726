"""The numbers, patterns and formats of a schema as plain terms: every text of them is valid."""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random

import pytest
from grammar_matching import is_text_of, iterate_terms
from grammar_texts import find_problems, write_random
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ferrule.dialects.grammar import JsonValue
from ferrule.dialects.value_grammar.patterns import read_pattern
from ferrule.dialects.value_grammar.schema_values import lower_values
from ferrule.errors import DialectError


@given(st.integers(-3000, 3000), st.integers(0, 2000), st.integers(-4000, 4000))
def test_integers_of_a_range(low, width, value):
    grammar, _ = lower_values(JsonValue({"type": "integer", "minimum": low, "maximum": low + width}))
    assert is_text_of(grammar, str(value)) == (low <= value <= low + width)


SMALL = st.integers(-40_000, 40_000).map(lambda one: one / 1000)


@given(SMALL, SMALL, st.booleans(), st.booleans(), SMALL)
def test_fractions_of_a_range(one, other, excludes_low, excludes_high, value):
    low, high = sorted((one, other))
    words = ("exclusiveMinimum" if excludes_low else "minimum", "exclusiveMaximum" if excludes_high else "maximum")
    schema = {"type": "number", words[0]: low, words[1]: high}
    if low == high and (excludes_low or excludes_high):
        return
    grammar, _ = lower_values(JsonValue(schema))
    for text in (str(value), f"{value:.6f}", str(low), str(high)):
        assert is_text_of(grammar, text) == Draft202012Validator(schema).is_valid(json.loads(text)), text


BOUNDS = st.none() | st.sampled_from([0, 1, -1, 7.5, 0.1, 100, -37, 123456, 0.1 + 0.2, 1e-7, 2**53, 10**18, -(10**17)])
MULTIPLES = st.sampled_from([1, 2, 3, 7, 10, 25, 36, 60, 360, 86400, 1000003, 0.01, 0.25, 0.5, 1.5, 2.5, 1e-6])


@given(st.sampled_from(["integer", "number"]), BOUNDS, BOUNDS, MULTIPLES, st.booleans(), st.integers(0, 2**32))
def test_multiples(kind, low, high, multiple, is_exclusive, seed):
    schema = {"type": kind, "multipleOf": multiple}
    schema |= {} if low is None else {"exclusiveMinimum" if is_exclusive else "minimum": low}
    schema |= {} if high is None else {"maximum": high}
    try:
        grammar, losses = lower_values(JsonValue(schema))
    except DialectError:
        return
    checked = {word: one for word, one in schema.items() if word != "multipleOf" or not losses}
    random = Random(seed)
    for _ in range(5):
        text = write_random(grammar, random)
        assert (Fraction(text) / Fraction(repr(multiple))).denominator == 1
        Draft202012Validator(checked).validate(json.loads(text))


PATTERNS = [
    r"^[a-z]+$", "[0-9]", r"^\d{3}-\d{4}$", "^a|b$", r"(^|\s)foo(\s|$)", r"^[^\w.]+$", r"^\S+@\S+\.\S+$",
    "^([a-z]+ ?)*$", r"^(?:[A-Z]{2}|\d+)$", "^.{3,}$", "(?i)^ab[c-e]+$", r"^[\w.-]+$", r"\\", '"', "^a?b*c+$",
    "^[^a-z]*$", r"^\D\W+$", r"[\s\S]", "^(x*)+$", "^((a|b*)c?)*$", r"^(\+\d{1,3})?\s?\d+$", "", r"^v?\d+(\.\d+){2}$",
    r"^(\d{2}){2,}$", r"\.py$", "^a+$|^b+$", "^[^\x00-\x7f]+$", "^(?:a(?i:b))+$", r"^\s+$", "^(a{2}|b{3})+$",
]  # fmt: skip


@pytest.mark.parametrize("length", [(0, None), (3, 8), (6, 6), (0, 4), (20, None)])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_texts_of_a_pattern(pattern, length):
    schema = {"type": "string", "pattern": pattern, "minLength": length[0]}
    schema |= {} if length[1] is None else {"maxLength": length[1]}
    shape = read_pattern(pattern)
    if shape.most < length[0] or shape.least > (length[1] or shape.least):
        with pytest.raises(DialectError, match="characters"):
            lower_values(JsonValue(schema))
        return
    for is_python in (False, True):
        assert list(find_problems(schema, is_python, 30)) == []


def test_a_pattern_is_bounded_however_it_is_nested():
    pattern = "a?"
    for _ in range(30):
        pattern = f"({pattern}b?)*"
    grammar, _ = lower_values(JsonValue({"pattern": f"^{pattern}$"}))
    assert sum(1 for _ in iterate_terms(grammar)) < 1000


FORMATS = ["date", "email", "idn-email", "ipv4", "ipv6", "uuid"]


@pytest.mark.parametrize("name", FORMATS)
def test_texts_of_a_format(name):
    schema = {"type": "string", "format": name}
    grammar, losses = lower_values(JsonValue(schema))
    assert not losses
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    random = Random(0)
    for _ in range(200):
        validator.validate(json.loads(write_random(grammar, random)))
