"""Notations for models that have none: ReAct, fenced blocks, JSON in a tag or alone, and values by position."""

import json

import pytest
from dialect_events import calls, check_spans, joined, parts, read
from hypothesis import given
from hypothesis import strategies as st

from ferrule.conversation import Image, MalformedCall, Message, Reasoning, Text, ToolCall, ToolResult
from ferrule.dialects.catalogue import get_notation
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta
from ferrule.toolspec import ToolSpec

NUMBER = {"type": "number"}
TOOLS = [
    ToolSpec("search", "", {"type": "object", "properties": {"query": {"type": "string"}}}),
    ToolSpec(
        "Crop", "Cuts.", {"type": "object", "properties": dict.fromkeys(("left", "top", "right", "bottom"), NUMBER)}
    ),
    ToolSpec("python", "", {"type": "object", "properties": {"code": {"type": "string"}}}),
]


def parts_of(name, text, stopped=True):
    notation = get_notation(name)
    events = read(notation.reader(TOOLS), [text], stopped)
    check_spans(events, text)
    assert joined(read(notation.reader(TOOLS), list(text), stopped)) == joined(events)
    return parts(events)


def shown(found):
    return [(p.name, p.decode()) if isinstance(p, ToolCall) else type(p).__name__ for p in found]


def test_react_is_read_line_by_line():
    text = 'Thought: I should look.\nAction: search\nAction Input: {"query": "x"}\nObservation:'
    assert shown(parts_of("react", text)) == ["Reasoning", ("search", {"query": "x"})]
    assert parts_of("react", "Thought: done\nFinal Answer: 4") == [Reasoning("done"), Text("4")]


def test_react_input_that_is_plain_text_is_the_only_parameter():
    assert shown(parts_of("react", "Action: search\nAction Input: the weather\n")) == [
        ("search", {"query": "the weather"})
    ]
    assert shown(parts_of("react", "Action: search\nAction Input: the wea", stopped=False)) == ["MalformedCall"]
    assert shown(parts_of("react", "Action: Crop\nAction Input: 1 2\nObservation:")) == ["MalformedCall"]


@pytest.mark.parametrize("text", ["Action: now!", "I say:\nAction: now!\nSoon.", "Take Action: f\nAction Input: {}"])
def test_react_prose_is_no_call(text):
    assert parts_of("react", text) == [Text(text)]


def test_an_observation_that_the_model_writes_is_forged():
    text = 'Action: search\nAction Input: {"query": "x"}\nObservation: It is sunny.\nFinal Answer: sun'
    found = parts_of("react", text)
    assert shown(found) == [("search", {"query": "x"}), "MalformedCall"]
    assert found[1].kind == "forged_result"


def test_react_is_written_without_a_final_answer_before_a_call():
    call = ToolCall("call_1", "search", '{"query": "x"}')
    message = Message("assistant", (Reasoning("Look."), call))
    written = 'Thought: Look.\nAction: search\nAction Input: {"query": "x"}'
    assert get_notation("react").message(message, TOOLS) == written
    assert shown(parts_of("react", written)) == ["Reasoning", ("search", {"query": "x"})]


def test_a_block_of_json_is_a_call_only_where_it_names_a_tool():
    text = 'So:\n```json\n{"name": "search", "arguments": {"query": "x"}}\n```'
    assert shown(parts_of("fenced_json", text)) == ["Text", ("search", {"query": "x"})]
    for other in ('```json\n{"name": "Bob", "age": 3}\n```\n', "```json\n[1]\n```", "```json\n{", "```json"):
        assert parts_of("fenced_json", other) == [Text(other)]


def test_a_message_of_json_is_a_call_only_where_it_names_a_tool():
    text = '{"name": "search", "arguments": {"query": "x"}}\n{"name": "search", "arguments": {}}'
    assert shown(parts_of("raw_json", text)) == [("search", {"query": "x"}), ("search", {})]
    assert parts_of("raw_json", '{"name": "Bob"}') == [Text('{"name": "Bob"}')]
    assert shown(parts_of("raw_json", '{"name": "search", "arguments": {"query": "x')) == ["MalformedCall"]


def test_a_block_of_code_is_a_call_of_the_code_tool():
    reader = get_notation("fenced_code").reader(TOOLS)
    events = [event for piece in ("Now:\n```python\nx", " = 1", "\ny\n```") for event in reader.feed(piece)]
    assert [e.json_fragment for e in events if isinstance(e, ArgumentsDelta)][:3] == ['{"code": "', "x", " = 1"]
    assert calls(events)[0].decode() == {"code": "x = 1\ny"}
    assert shown(parts_of("fenced_code", "```py\n```")) == [("python", {"code": ""})]
    assert shown(parts_of("fenced_code", "```python\nx = ")) == ["MalformedCall"]


def test_json_in_a_tag():
    text = '<tool_call name="search">{"query": "</tool_call>"}</tool_call>'
    assert shown(parts_of("json_in_tag", text)) == [("search", {"query": "</tool_call>"})]
    assert shown(parts_of("json_in_tag", "<tool_call name=\"search\">{'query': 'x',}</tool_call>")) == [
        ("search", {"query": "x"})
    ]


def test_values_by_position_are_bound_in_the_order_of_the_schema():
    text = "<tool_call>Crop [100,100,300,400.5]</tool_call>"
    found = parts_of("ovis", text)
    assert shown(found) == [("Crop", {"left": 100, "top": 100, "right": 300, "bottom": 400.5})]
    assert get_notation("ovis").call(found[0], TOOLS) == text
    assert shown(parts_of("ovis", "<tool_call>Crop [1,2,3,4,5]</tool_call>")) == ["MalformedCall"]
    assert shown(parts_of("ovis", "<tool_call>Unknown [1,[2]]</tool_call>")) == [("Unknown", {"values": [1, [2]]})]


def test_a_value_that_has_no_position_is_refused():
    with pytest.raises(DialectError, match="can't express"):
        get_notation("ovis").call(ToolCall("call_1", "Crop", '{"top": 1, "left": 2}'), TOOLS)


def test_an_image_is_a_result_in_place():
    notation = get_notation("ovis")
    assert (
        notation.result(ToolResult("call_1", "Identify", (Text("James"),)))[0] == "<tool_response>James</tool_response>"
    )
    image = Image(b"\x89PNG", "image/png")
    assert notation.result(ToolResult("call_1", "Crop", (image,)))[0] == "<image>"
    forged = parts_of("ovis", "<tool_call>Crop []</tool_call><tool_response>James</tool_response>")
    assert isinstance(forged[1], MalformedCall)


@pytest.mark.parametrize("name", ["react", "fenced_json", "json_in_tag", "raw_json", "ovis"])
@given(query=st.text())
def test_what_is_written_is_read_back(name, query):
    call = ToolCall("call_1", "search", json.dumps({"query": query}, ensure_ascii=False))
    assert shown(parts_of(name, get_notation(name).call(call, TOOLS))) == [("search", {"query": query})]


@given(code=st.text())
def test_code_is_read_back_or_refused(code):
    try:
        written = get_notation("fenced_code").call(ToolCall("call_1", "python", json.dumps({"code": code})), TOOLS)
    except DialectError:
        assert "```" in code
        return
    assert shown(parts_of("fenced_code", written)) == [("python", {"code": code})]
