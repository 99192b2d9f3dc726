"""Families whose calls are JSON: objects between markers, and arrays."""

import json

import pytest
from dialect_events import calls, check_spans, joined, parts, read
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.conversation import MalformedCall, Message, Reasoning, Text, ToolCall, ToolResult
from ferrule.dialects.catalogue import get_notation
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta, CallFinished, CallMalformed, CallStarted, TextDelta
from ferrule.toolspec import ToolSpec
from tables import each_case

TOOLS = [
    ToolSpec("note", "", {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}),
    ToolSpec("stop", "", {"type": "object", "properties": {}}),
]
ONE = {
    "hermes": '<tool_call>\n{"name": "note", "arguments": {"text": "a"}}\n</tool_call>',
    "granite4": '<tool_call>\n{"name": "note", "arguments": {"text": "a"}}\n</tool_call>',
    "ernie45": '<tool_call>\n{"name": "note", "arguments": {"text": "a"}}\n</tool_call>',
    "longcat": '<longcat_tool_call>\n{"name": "note", "arguments": {"text": "a"}}\n</longcat_tool_call>',
    "granite_20b_fc": '<function_call> {"name": "note", "arguments": {"text": "a"}}',
    "internlm2": '<|action_start|><|plugin|>\n{"name": "note", "parameters": {"text": "a"}}<|action_end|>',
    "apertus": '<|tools_prefix|>[{"note": {"text": "a"}}]<|tools_suffix|>',
    "apriel": '<tool_calls>[{"name": "note", "arguments": {"text": "a"}, "id": "x1"}]</tool_calls>',
    "granite": '<|tool_call|> [{"name": "note", "arguments": {"text": "a"}}]',
    "hunyuan_a13b": '<tool_calls>[{"name": "note", "arguments": {"text": "a"}}]</tool_calls>',
    "jamba": '<tool_calls>[\n    {"name": "note", "arguments": {"text": "a"}}\n]</tool_calls>',
    "nemotron_v2": '<TOOLCALL>[{"name": "note", "arguments": {"text": "a"}}]</TOOLCALL>',
    "phi4_mini": 'functools[{"name": "note", "arguments": {"text": "a"}}]',
    "firefunction_v2": 'functools[{"name": "note", "arguments": {"text": "a"}}]',
    "xlam": '[{"name": "note", "arguments": {"text": "a"}}]',
    "cohere": (
        '<|START_ACTION|>[\n    {"tool_call_id": "x1", "tool_name": "note", "parameters": {"text": "a"}}\n]'
        "<|END_ACTION|>"
    ),
    "cohere_r_plus": (
        'Action:\n```json\n[\n    {\n        "tool_name": "note",\n        "parameters": {\n'
        '            "text": "a"\n        }\n    }\n]```'
    ),
}
OBJECTS = ("hermes", "granite4", "ernie45", "longcat", "granite_20b_fc", "internlm2")
ARRAYS = tuple(name for name in ONE if name not in OBJECTS)
AWKWARD = st.one_of(
    st.text(max_size=20), st.sampled_from(['"]}', "</tool_calls>", "```", "functools[", "\\u0000", "<|END_ACTION|>"])
)


def reader(name, tools=TOOLS, **options):
    return get_notation(name).reader(tools, **options)


def two(name, first='"a"', second='"b"'):
    """Two calls of `note`, as the family writes them, with these texts as raw JSON."""
    made = [ToolCall(f"x{n}", "note", f'{{"text": "@{n}"}}') for n in (1, 2)]
    return get_notation(name).calls(made, TOOLS).replace('"@1"', first).replace('"@2"', second)


@each_case("name", ONE)
def test_a_call_is_written_as_the_models_know_it(name):
    assert get_notation(name).calls([ToolCall("x1", "note", '{"text": "a"}')], TOOLS) == ONE[name]


@each_case("name", ONE)
def test_a_string_goes_out_with_its_first_character(name):
    before, after = ONE[name].split('"a"')
    given = reader(name)
    events = given.feed(before + '"')
    assert [event.name for event in events if isinstance(event, CallStarted)] == ["note"]
    for character in "xyz":
        assert [type(event) for event in given.feed(character)] == [ArgumentsDelta]
    events = given.feed('"' + after) + given.close(stopped=True)
    [call] = calls(events)
    assert call.decode() == {"text": "xyz"}
    assert not any(isinstance(event, TextDelta | CallMalformed) for event in events)


@pytest.mark.parametrize("name", ONE)
@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.fixed_dictionaries({"text": AWKWARD}, optional={"n": st.integers()}), min_size=1, max_size=3))
def test_calls_are_read_back_piece_by_piece(name, values):
    values = values[:1] if name == "internlm2" else values
    made = [ToolCall(f"x{n}", "note", json.dumps(v, ensure_ascii=False)) for n, v in enumerate(values)]
    try:
        written = get_notation(name).calls(made, TOOLS)
    except DialectError:
        # Characters that no JSON in UTF-8 can hold are all that is refused.
        assert any("\ud800" <= c <= "\udfff" for v in values for c in v["text"])
        return
    events = read(reader(name), list(written))
    check_spans(events, written)
    assert joined(events) == joined(read(reader(name), [written]))
    assert [call.decode() for call in calls(events)] == values


@each_case("name", ARRAYS)
def test_each_element_is_a_call_of_its_own_while_the_array_goes_on(name):
    text = two(name)
    given = reader(name)
    events = given.feed(text[: text.index('"b"')])
    assert [type(event) for event in events if isinstance(event, CallStarted | CallFinished)] == [
        CallStarted,
        CallFinished,
        CallStarted,
    ]
    first, second = calls(events + given.feed(text[text.index('"b"') :]) + given.close())
    for call, value in ((first, "a"), (second, "b")):
        assert call.source.startswith("{")
        assert call.source.endswith("}")
        assert call.source in text
        assert f'"{value}"' in call.source


@each_case("name", ARRAYS)
def test_a_broken_element_is_malformed_and_leaves_the_one_before_it(name):
    text = two(name, second="?") + "<after>"
    events = read(reader(name), [text])
    check_spans(events, text)
    assert [call.decode() for call in calls(events)] == [{"text": "a"}]
    [malformed] = [event for event in events if isinstance(event, CallMalformed)]
    assert malformed.kind == "invalid_json"
    assert malformed.raw.startswith("{")
    if get_notation(name).family.syntax.close:
        assert parts(events)[-1] == Text("<after>")


@each_case("name", ARRAYS)
def test_an_array_that_is_nearly_json_is_put_right_where_the_schema_takes_it(name):
    text = two(name, "'a'", "'b'")
    given = read(reader(name), list(text))
    assert [call.decode() for call in calls(given)] == [{"text": "a"}, {"text": "b"}]
    assert {event.repairs for event in given if isinstance(event, CallFinished)} == {("single_quotes",)}
    assert joined(given) == joined(read(reader(name), [text]))
    assert not calls(read(reader(name, repair=False), [text]))
    strict = [ToolSpec("note", "", {"type": "object", "properties": {"text": {"type": "integer"}}})]
    assert not calls(read(reader(name, strict), [text]))


@each_case("name", ONE)
def test_a_call_that_is_cut_off_is_malformed(name):
    text = ONE[name]
    start = text.index("{") + 2
    for end in range(start, text.rindex("}")):
        events = read(reader(name), [text[:end]], stopped=False)
        check_spans(events, text[:end])
        assert not calls(events)
        if name != "xlam":
            assert [event.kind for event in events if isinstance(event, CallMalformed)] == ["truncated"]


@each_case("name", [name for name in ARRAYS if name not in ("phi4_mini", "firefunction_v2", "xlam")])
def test_whole_calls_count_without_the_end_of_the_array(name):
    text = ONE[name]
    for end in range(text.rindex("}") + 1, len(text)):
        events = read(reader(name), list(text[:end]), stopped=False)
        assert [call.decode() for call in calls(events)] == [{"text": "a"}]
        assert not any(isinstance(event, CallMalformed | TextDelta) for event in events)


def test_an_array_without_its_bracket_ends_at_the_closer_and_one_object_needs_none():
    for text in (
        '<TOOLCALL>[{"name": "stop"}</TOOLCALL>!',
        '<TOOLCALL>{"name": "stop"}</TOOLCALL>!',
        '<TOOLCALL>[{"name": "stop"},]</TOOLCALL>!',
    ):
        events = read(reader("nemotron_v2"), list(text))
        assert [type(part) for part in parts(events)] == [ToolCall, Text]
        assert joined(events) == joined(read(reader("nemotron_v2"), [text]))


def test_text_after_an_array_without_closer_is_text():
    events = read(reader("phi4_mini"), [ONE["phi4_mini"] + "\nAnything else?"])
    assert parts(events)[-1] == Text("\nAnything else?")


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "note", "arguments": {"text": "a"}}]',
        ' \n[{"arguments": {"text": "a"}, "name": "note"}]',
        '[TOOL_CALLS][{"name": "note", "arguments": {"text": "a"}}]',
        '<tool_call>[{"name": "note", "arguments": {"text": "a"}}]</tool_call>',
        '```json\n[{"name": "note", "arguments": {"text": "a"}}]\n```',
        '<think>\nhm\n</think>\n\n[{"name": "note", "arguments": {"text": "a"}}]',
    ],
)
def test_xlam_writes_its_arrays_in_many_ways(text):
    events = read(reader("xlam"), list(text))
    check_spans(events, text)
    assert [call.decode() for call in calls(events)] == [{"text": "a"}]
    assert not any(isinstance(part, Text | MalformedCall) for part in parts(events))


@each_case(
    "text",
    [
        "[1] is the source.",
        "[]",
        "[",
        '[{"title": "Emma"}]',
        '[{"name": "Emma", "age": 3}]',
        '[{"name": "Emma", "arguments": {}}]',
        '```json\n[{"name": "Emma"}]\n``` and more',
        "```json\n{}\n```",
    ],
)
def test_an_array_that_is_an_answer_is_text(text):
    events = read(reader("xlam"), list(text))
    check_spans(events, text)
    assert parts(events) == [Text(text)]


def test_native_ids_are_kept():
    assert calls(read(reader("cohere"), [two("cohere")]))[1].id == "x2"
    assert calls(read(reader("apriel"), [two("apriel", "'a'", "'b'")]))[0].id == "x1"
    started = next(e for e in read(reader("cohere"), [ONE["cohere"]]) if isinstance(e, CallStarted))
    assert started.native_id == "x1"


def test_coheres_answers_stand_between_markers():
    notation = get_notation("cohere")
    message = Message("assistant", (Reasoning("hm"), Text("Hi.")))
    written = notation.message(message)
    assert written == "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hi.<|END_RESPONSE|>"
    assert parts(read(notation.reader(), list(written))) == [Reasoning("hm"), Text("Hi.")]
    text, losses = notation.result(ToolResult("7", "note", (Text("a <|END_TOOL_RESULT|>"),)))
    assert (
        json.loads(text.removeprefix("<|START_TOOL_RESULT|>").removesuffix("<|END_TOOL_RESULT|>"))[0]["tool_call_id"]
        == "7"
    )
    assert losses


def test_markers_are_known_by_their_tokens():
    pieces = [("<|action_start|>", True), ("<|plugin|>", True), ('\n{"name": "stop"}', False), ("<|action_end|>", True)]
    given = reader("internlm2")
    events = [event for text, control in pieces for event in given.feed(text, control)] + given.close()
    assert [call.name for call in calls(events)] == ["stop"]
    given = reader("apertus")
    spelled = given.feed("<|tools_prefix|>[]", False) + given.close()
    assert parts(spelled) == [Text("<|tools_prefix|>[]")]


def test_internlms_other_plugins_are_no_calls_of_tools():
    text = "<|action_start|><|interpreter|>\nprint(1)<|action_end|>ok"
    events = read(reader("internlm2"), list(text))
    assert [type(part) for part in parts(events)] == [MalformedCall, Text]


def test_calls_that_have_no_expression_are_refused():
    with pytest.raises(DialectError, match="one call per message"):
        two("internlm2")
    with pytest.raises(DialectError, match="not a JSON object"):
        get_notation("apertus").call(ToolCall("x1", "note", "[1]"))
    with pytest.raises(DialectError, match="text in a message with calls"):
        get_notation("xlam").message(Message("assistant", (Text("So:"), ToolCall("x1", "note", "{}"))))
