"""Messages kept to a dialect's grammar, with the values of its schemas made bounded, as engines get it.

Each is read back as a call that fits, with nothing repaired and nothing left over.
"""

from __future__ import annotations

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
    """The keywords that aren't enforced, each with the place of its schema: `("tags", "[]", "pattern")`."""
    return {tuple(one.detail.partition(" isn't enforced")[0].split(".")) for one in losses if one.kind == "schema"}


def is_named(error, unenforced, names):
    """Whether a loss names what a value doesn't fit: the keyword, and the argument with these `names`, if it is one.
    Of alternatives that it doesn't fit, the keyword of one is enough."""
    argument = error.absolute_path[0] if error.absolute_path else None
    path = {"if" if word in ("then", "else") else word for word in error.absolute_schema_path}
    return any(
        word in path and (not place or place[0] not in names or place[0] == argument) for *place, word in unenforced
    ) or any(is_named(inner, unenforced, names) for inner in error.context)


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
    names = spec.parameters.get("properties", {})
    return [(error.message, unenforced) for error in errors if not is_named(error, unenforced, names)]


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
    lost = {("code", "pattern"), ("on", "format"), ("short", "minLength"), ("short", "maxLength")}
    for name, unenforced in (("hermes", set()), ("qwen3_coder", lost)):
        grammar = get_dialect(name).grammar(TOOLS, "required")
        assert grammar is not None
        assert list_unenforced(lower_values(grammar)[1]) == unenforced
        grammar = get_dialect(name).grammar(TOOLS[2:], "required")
        assert grammar is not None
        assert lower_values(grammar)[1] == ()


def make_object(properties, **more):
    return {"type": "object", "properties": properties, **more}


WHOLE = {"type": "integer"}
TWO = make_object({"k": WHOLE, "v": WHOLE})
POINT = make_object({"x": WHOLE, "y": {"type": "boolean"}}, required=["x"])
SMALL = {"type": "integer", "minimum": 0, "maximum": 1}
# Of objects: for parameters, and inside an argument.
OBJECTS = {
    "minProperties": {"minProperties": 1},
    "maxProperties": {"maxProperties": 1},
    "dependentRequired": {"dependentRequired": {"k": ["v"]}},
    "dependentSchemas": {"dependentSchemas": {"k": {"required": ["v"]}}},
    "if": {"if": {"required": ["k"]}, "then": {"required": ["v"]}, "else": {"required": ["v"]}},
    "allOf": {"allOf": [{"required": ["v"]}]},
    "anyOf": {"anyOf": [{"required": ["k"]}, {"required": ["v"]}]},
    "oneOf": {"oneOf": [{"required": ["k"]}, {"required": ["v"]}]},
    "not": {"not": {"required": ["k"]}},
    "propertyNames": {"propertyNames": {"pattern": "^k"}},
    "patternProperties": {"patternProperties": {"^k": {"minimum": 5}}},
}
# Of arguments.
ARGUMENTS = {
    "uniqueItems": {"type": "array", "items": SMALL, "uniqueItems": True, "minItems": 2, "maxItems": 4},
    "contains": {"type": "array", "items": SMALL, "contains": {"const": 1}, "maxItems": 2},
    "unique strings": {"type": "array", "items": {"enum": ["r", "g"]}, "uniqueItems": True, "minItems": 3},
    "items": {"anyOf": [{"type": "array", "items": SMALL, "minItems": 1}, {"type": "null"}]},
    "nullable items": {"type": "array", "items": {"anyOf": [SMALL, {"type": "null"}]}, "minItems": 1},
    "combined items": {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/S"}, {"minimum": 1}]}, "minItems": 1},
    "number": {"type": "integer", "not": {"const": 5}, "minimum": 4, "maximum": 6},
    "reference": {"$ref": "#/$defs/S"},
    "text": {"type": "string", "allOf": [{"minLength": 2}], "not": {"const": ""}},
    "choice": {"enum": ["a", "b"], "not": {"const": "a"}},
    "text or number": {"anyOf": [{"type": "string", "pattern": "^a$"}, SMALL], "not": {"const": 0}},
    "flag": {"type": "boolean", "not": {"const": True}},
}
# Of arguments for which nanochat's signatures have no place.
STRUCTURES = {
    "allOf with $ref": {"allOf": [{"$ref": "#/$defs/P"}, {"required": ["y"]}]},
    "beside $ref": {"$ref": "#/$defs/P", "required": ["y"]},
    "object or null": {"anyOf": [TWO, {"type": "null"}], "minProperties": 1},
    "objects": {"type": "array", "items": {**TWO, "minProperties": 1}, "minItems": 1},
    **{f"inner {word}": {**TWO, **more} for word, more in OBJECTS.items()},
}
DEFINITIONS = {"P": POINT, "S": SMALL}


def list_keyword_tools(name):
    """Tools with one of these keywords each."""
    found = [{**TWO, **more} for more in OBJECTS.values()]
    inner = ARGUMENTS if name == "nanochat-tools" else {**ARGUMENTS, **STRUCTURES}
    found += (make_object({"a": one, "b": WHOLE}, required=["a"]) for one in inner.values())
    return [ToolSpec(f"f{number}", "", {**one, "$defs": DEFINITIONS}) for number, one in enumerate(found)]


@pytest.mark.parametrize("name", [one for one in list_dialects() if one != "nanochat"])
def test_each_keyword_is_enforced_or_a_loss(name):
    dialect = get_dialect(name)
    for spec in list_keyword_tools(name):
        check_texts(dialect, (spec,), spec.name, 2, 3)


def test_what_is_not_enforced_is_named_with_its_place():
    for name in ("hermes", "lfm2", "qwen3_coder", "gemma4", "functiongemma", "minimax_m3"):
        for word in ("minProperties", "if", "allOf"):
            grammar = get_dialect(name).grammar((ToolSpec("f", "", {**TWO, **OBJECTS[word]}),), "f")
            assert grammar is not None
            lost = set() if name == "hermes" and word != "if" else {(word,)}
            assert list_unenforced(lower_values(grammar)[1]) == lost, (name, word)
        inner = make_object({"a": {"type": "array", "items": {**ARGUMENTS["uniqueItems"]}}}, required=["a"])
        grammar = get_dialect(name).grammar((ToolSpec("f", "", inner),), "f")
        assert grammar is not None
        assert list_unenforced(lower_values(grammar)[1]) == {("a", "[]", "uniqueItems")}, name
