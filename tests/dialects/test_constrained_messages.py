"""Messages kept to a dialect's grammar, with the values of its schemas made bounded, as engines get it.

Each is read back as a call that fits, with nothing repaired and nothing left over.
"""

from __future__ import annotations

import re
from random import Random

import pytest
from benchmark_schemas import list_schemas
from grammar_texts import write_random, write_shortest
from jsonschema import Draft202012Validator
from vectors import IS_MISSING

from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.value_grammar.schema_values import lower_values
from ferrule.errors import DialectError
from ferrule.events import CallFinished, CallMalformed, TextDelta
from ferrule.toolspec import ToolSpec

PLACE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "position": {"type": "array", "items": {"type": "number", "minimum": -180, "maximum": 180}, "maxItems": 2},
        "kind": {"enum": ["city", "a <b> & c", "it's", 'say "x"', "two\nlines", "</parameter>"]},
    },
    "required": ["name"],
}
FLAT = {
    "text": {"type": "string"},
    "code": {"type": "string", "pattern": r"^[A-Z<>]{2,4}-\d+$"},
    "on": {"type": "string", "format": "date"},
    "short": {"type": "string", "minLength": 1, "maxLength": 4},
    "count": {"type": "integer", "minimum": 1, "maximum": 120},
    "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "step": {"type": "integer", "multipleOf": 15},
    "unit": {"enum": ["celsius", "it's", 'say "x"']},
    "level": {"enum": ["low", 3, True]},
    "is_open": {"type": "boolean"},
}
NESTED = {
    "home": PLACE,
    "places": {"type": "array", "items": PLACE, "minItems": 1, "maxItems": 3},
    "tags": {"type": "array", "items": {"type": "string"}},
    "by": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
}


def make_tool(name, properties, *required):
    return ToolSpec(name, name, {"type": "object", "properties": properties, "required": list(required)})


TOOLS = (
    make_tool("optional", FLAT),
    make_tool("flat", FLAT, "count", "text"),
    make_tool("nested", {**NESTED, "note": {"type": ["string", "null"]}}, "home", "places"),
    make_tool("now", {}),
)
EXPRESSION = make_tool("calculator", {"expression": {"type": "string"}}, "expression")
LISTS = {
    "days": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 31}, "minItems": 2, "maxItems": 3},
    "names": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}, "minItems": 1},
    "none": {"type": "array", "items": {"type": "number"}, "maxItems": 0},
    "count": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}]},
}
ONLY_TOOLS = {
    "nanochat": (EXPRESSION,),
    "nanochat-tools": (*TOOLS[:2], make_tool("lists", LISTS, "days"), TOOLS[3], EXPRESSION),
}


def read(dialect, text, tools):
    """(the calls that are read, the text beside them)."""
    reader = dialect.reader(tools)
    events = reader.feed(text) + reader.close(stopped=True)
    calls = [one for one in events if isinstance(one, CallFinished | CallMalformed)]
    return calls, "".join(one.text for one in events if isinstance(one, TextDelta))


def list_unenforced(losses):
    """The keywords of strings that aren't enforced: those of strings that are written without quotes."""
    words = [
        re.fullmatch(r"(\w+) isn't enforced: the string is written without quotes.*", one.detail) for one in losses
    ]
    assert all(words), losses
    return {word[1] for word in words}


def find_fault(call, tools, unenforced):
    """Why a call isn't one that was written as the dialect writes it, and fits its tool's schema without these
    keywords."""
    if not isinstance(call, CallFinished):
        return call.kind
    # A string may look like null, which repairs nothing.
    if set(call.repairs) > {"null_as_text"}:
        return call.repairs
    spec = next(one for one in tools if one.name == call.call.name)
    errors = Draft202012Validator(spec.parameters).iter_errors(call.call.decode())
    return [error.message for error in errors if error.validator not in unenforced]


def check_texts(dialect, tools, choice, count, seed):
    grammar = dialect.grammar(tools, choice)
    if grammar is None:
        return
    lowered, losses = lower_values(grammar)
    unenforced = list_unenforced(losses)
    random = Random(seed)
    for text in (write_shortest(lowered), *(write_random(lowered, random) for _ in range(count))):
        calls, said = read(dialect, text, tools)
        shown = (dialect.name, choice, text, calls, said)
        assert (choice != "auto") <= len(calls) <= 1, shown
        assert [fault for call in calls if (fault := find_fault(call, tools, unenforced))] == [], shown
        assert choice == "auto" or not said.strip(), shown


def check_choices(name, count, seed):
    dialect, tools = get_dialect(name), ONLY_TOOLS.get(name, TOOLS)
    for choice in (*(spec.name for spec in tools), "required", "auto"):
        check_texts(dialect, tools, choice, count, seed)


@pytest.mark.parametrize("name", list_dialects())
def test_a_constrained_message_is_one_call_that_fits(name):
    check_choices(name, 3, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_dialects())
def test_many_constrained_messages_are_calls_that_fit(name):
    check_choices(name, 60, 2)


@pytest.mark.slow
@IS_MISSING
@pytest.mark.parametrize("name", [one for one in list_dialects() if one != "nanochat"])
def test_constrained_calls_of_a_benchmark_fit(name):
    dialect, schemas, refused = get_dialect(name), list_schemas()[::22], 0
    for number, schema in enumerate(schemas):
        try:
            check_texts(dialect, (ToolSpec("f", "", schema),), "f", 6, number)
        except DialectError:
            refused += 1
    assert len(schemas) == 31
    # One takes an object, for which a signature has no place.
    assert refused == (name == "nanochat-tools")


def test_what_strings_without_quotes_do_not_enforce_is_a_loss():
    for name, unenforced in (("hermes", set()), ("qwen3_coder", {"pattern", "format", "minLength", "maxLength"})):
        grammar = get_dialect(name).grammar(TOOLS, "required")
        assert grammar is not None
        assert list_unenforced(lower_values(grammar)[1]) == unenforced
        grammar = get_dialect(name).grammar(TOOLS[2:], "required")
        assert grammar is not None
        assert lower_values(grammar)[1] == ()
