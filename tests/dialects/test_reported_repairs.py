"""What is read otherwise than written is reported as a repair: a bare null, wrapped arguments, odd numbers."""

import json

import pytest
from dialect_events import joined, read

from ferrule.conversation import ToolCall
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.events import CallFinished, CallMalformed
from ferrule.toolspec import ToolSpec
from tables import each_case

PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}, "note": {"type": ["string", "null"]}}
TOOL = ToolSpec("f", "", {"type": "object", "properties": PROPERTIES, "required": ["city"]})
WRAPPERS = ("input", "properties", "parameters", "arguments")


def finished(name, text, tool=TOOL, **options):
    """What is read of one call: its arguments, and the repairs reported."""
    events = joined(read(get_notation(name).reader([tool], **options), [text]))
    assert joined(read(get_notation(name).reader([tool], **options), text)) == events
    [event] = [event for event in events if isinstance(event, CallFinished)]
    return event.call.decode(), event.repairs


BARE = {
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter={}>\n{}\n</parameter>\n</function>\n</tool_call>",
    "glm45": "<tool_call>f\n<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    "minimax_m2": '<minimax:tool_call>\n<invoke name="f">\n<parameter name="{}">{}</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
    "gemma4": "<|tool_call>call:f{{{}:{}}}<tool_call|>",
    "minimax_m3": ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">]<]minimax[>[<{0}>{1}]<]minimax[>[</{0}>'
    "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
}


@each_case("name", BARE)
@each_case("null", ["null", "None"])
def test_a_bare_null_for_a_string_stays_text_and_is_reported(name, null):
    assert finished(name, BARE[name].format("city", null)) == ({"city": null}, ("null_as_text",))
    assert finished(name, BARE[name].format("note", "null")) == ({"note": None}, ())
    assert finished(name, BARE[name].format("city", "nullable")) == ({"city": "nullable"}, ())
    assert finished(name, BARE[name].format("unknown", "null")) == ({"unknown": None}, ())


def test_a_string_that_ends_as_a_null_does_is_not_reported():
    assert finished("glm45", BARE["glm45"].format("city", ': "null')) == ({"city": ': "null'}, ())


# All but those of one tool, and of values without keys.
NAMES = [name for name, family in load_families().items() if family.one_tool is None and name != "ovis"]


@each_case("name", NAMES)
@each_case("wrapper", WRAPPERS)
def test_arguments_in_one_more_object_are_unwrapped_and_that_is_reported(name, wrapper):
    call = ToolCall("call_1", "f", json.dumps({wrapper: {"city": "Rome", "days": 2}}))
    written = get_notation(name).call(call)
    assert finished(name, written) == ({"city": "Rome", "days": 2}, ("unwrapped",))


@pytest.mark.parametrize(
    "arguments",
    [
        '{"input": {"town": "Rome"}}',
        '{"input": {"city": "Rome"}, "days": 2}',
        '{"input": {}}',
        '{"input": "Rome"}',
        '{"input": [{"city": "Rome"}]}',
        '{"request": {"city": "Rome"}}',
        '{"input": {"city": "Rome"}, "input": {"city": "Oslo"}}',
    ],
)
def test_what_is_no_wrapper_of_the_tools_parameters_stays(arguments):
    written = f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>'
    assert finished("hermes", written) == (json.loads(arguments), ())


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {**PROPERTIES, "input": {"type": "object"}}},
        {"properties": PROPERTIES, "additionalProperties": True},
        {"properties": PROPERTIES, "additionalProperties": {"type": "object"}},
        {"properties": {}},
        {},
    ],
)
def test_only_a_schema_that_has_no_such_parameter_unwraps(schema):
    written = '<tool_call>\n{"name": "f", "arguments": {"input": {"city": "Rome"}}}\n</tool_call>'
    assert finished("hermes", written, ToolSpec("f", "", schema)) == ({"input": {"city": "Rome"}}, ())
    assert finished("hermes", written, repair=False) == ({"input": {"city": "Rome"}}, ())


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{ "input" : { "city":"Rome" } }', '{ "city":"Rome" }'),
        ('{"input": "{\\"city\\": \\"Rome\\"}"}', '{"city": "Rome"}'),
    ],
)
def test_what_is_unwrapped_stays_as_it_was_written(arguments, wanted):
    written = f'<tool_call>\n{{"arguments": {arguments}, "name": "f"}}\n</tool_call>'
    [call] = [e.call for e in read(get_notation("hermes").reader([TOOL]), written) if isinstance(e, CallFinished)]
    assert call.arguments == wanted


# Step 3 has no type for what a schema doesn't name: an object would be read back as text.
@each_case("name", [name for name in NAMES if name != "step3"])
def test_what_a_conversation_holds_is_written_as_it_is(name):
    call = ToolCall("call_1", "f", '{"input": {"city": "Rome"}}')
    written = get_notation(name).call(call, [TOOL])
    assert finished(name, written, repair=False)[0] == call.decode()


LIST = "<|tool_call_start|>[{}]<|tool_call_end|>"
NUMBERED = ToolSpec("f", "", {"properties": {**PROPERTIES, "months": {"type": "array"}}})


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("days=07", {"days": 7}),
        ("days=-007", {"days": -7}),
        ("city=01234", {"city": "01234"}),
        ("months=[07, 08]", {"months": [7, 8]}),
    ],
)
def test_leading_zeros_of_a_number_are_reported(written, wanted):
    assert finished("lfm2", LIST.format(f"f({written})"), NUMBERED) == (wanted, ("leading_zeros",))


@each_case(
    ("written", "wanted"),
    [
        ('city="the "best" place"', {"city": 'the "best" place'}),
        ('city="She said "hi"", days=1', {"city": 'She said "hi"', "days": 1}),
        ("city='it's here'", {"city": "it's here"}),
        ('city="say "hi", he said", days=2', {"city": 'say "hi", he said', "days": 2}),
        ('city="print("hi")"', {"city": 'print("hi")'}),
        ('city="5" screen"', {"city": '5" screen'}),
        ('months=["a "q" b", "c"]', {"months": ['a "q" b', "c"]}),
        ("city='don't', note='won't'", {"city": "don't", "note": "won't"}),
    ],
)
def test_quotes_inside_of_a_string_are_reported(written, wanted):
    assert finished("lfm2", LIST.format(f"f({written})"), NUMBERED) == (wanted, ("unescaped_quote",))


@pytest.mark.parametrize(
    "written",
    [
        'f(city="x" y, note="z")',
        'f(city="x", "y")',
        'f(city="x" y), f(city="z")',
        'f(city="x" y',
        'g(city="x "y" z")',
    ],
)
def test_quotes_that_may_be_those_of_another_string_make_no_call(written):
    text = f"{LIST.format(written)} Then {LIST.format('f(days=1)')}"
    events = joined(read(get_notation("lfm2").reader([NUMBERED]), [text]))
    assert joined(read(get_notation("lfm2").reader([NUMBERED]), text)) == events
    assert [e.call.arguments for e in events if isinstance(e, CallFinished)] == ['{"days": 1}']
    assert [e.raw for e in events if isinstance(e, CallMalformed)] == [LIST.format(written)]
    strict = read(get_notation("lfm2").reader([NUMBERED], repair=False), [LIST.format('f(city="a "b" c", days=07)')])
    assert [e.kind for e in strict if isinstance(e, CallMalformed)] == ["not_a_literal"]
