"""Gemma's small syntax: quotes are tokens, everything else is bare and means what the schema says."""

import json

import pytest
from dialect_events import calls, check_spans, joined, parts, read
from hypothesis import given
from hypothesis import strategies as st

from ferrule.conversation import MalformedCall, Reasoning, Text, ToolCall
from ferrule.dialects.catalogue import get_notation
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta
from ferrule.toolspec import ToolSpec
from tables import each_case

TOOL = ToolSpec(
    "f", "Does it.", {"type": "object", "properties": {"zip": {"type": "string"}, "n": {"type": "integer"}}}
)
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="<|"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(-1e9, 1e9) | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)


def events_of(text, name="gemma4"):
    notation = get_notation(name)
    events = read(notation.reader([TOOL]), [text])
    check_spans(events, text)
    assert joined(read(notation.reader([TOOL]), list(text))) == joined(events)
    return events


def test_a_string_streams_and_other_values_wait():
    reader = get_notation("gemma4").reader([TOOL])
    events = [
        event for piece in ('<|tool_call>call:f{zip:<|"|>1', "2", '<|"|>,n:4', "2") for event in reader.feed(piece)
    ]
    assert [e.json_fragment for e in events if isinstance(e, ArgumentsDelta)] == ["{", '"zip": "', "1", "2", '"']


def test_the_schema_types_what_is_bare():
    [call] = calls(events_of("<|tool_call>call:f{zip:01234,n:7,other:01234}<tool_call|>"))
    assert call.decode() == {"zip": "01234", "n": 7, "other": "01234"}


def test_quotes_keep_everything_else():
    value = "a,b}]{<tool_call|>\n\\ \" '"
    [call] = calls(events_of(f'<|tool_call>call:f{{zip:<|"|>{value}<|"|>}}<tool_call|>'))
    assert call.decode() == {"zip": value}


def test_quotes_match_by_id_where_ids_are_given():
    reader = get_notation("gemma4").reader([TOOL])
    pieces = ("<|tool_call>", "call:f{zip:", '<|"|>', 'say <|"|> twice', '<|"|>', "}", "<tool_call|>")
    tokens = {"<|tool_call>", '<|"|>', "<tool_call|>"}
    events = [event for piece in pieces for event in reader.feed(piece, piece in tokens)] + reader.close(True)
    assert calls(events)[0].decode() == {"zip": 'say <|"|> twice'}


@each_case(
    "body",
    ["call:g", "call:f{a}", "call:f{a:1,}", "call:f{a:}", "f{a:b}", "call:{a:1}", "call:f{a:[1}]}", "call:f{a:1} x"],
)
def test_what_does_not_follow_the_syntax_is_malformed(body):
    found = parts(events_of(f"<|tool_call>{body}<tool_call|>."))
    assert [type(part) for part in found] == [MalformedCall, Text]
    assert found[0].raw == f"<|tool_call>{body}<tool_call|>"


def test_reasoning_stands_in_its_channel():
    found = parts(events_of("<|channel>thought\nHm <|tool_call>.<channel|>So."))
    assert found == [Reasoning("Hm <|tool_call>."), Text("So.")]


@pytest.mark.parametrize("name", ["gemma4", "functiongemma"])
@given(arguments=st.dictionaries(st.sampled_from(["a", "b_c", "d-e"]), VALUES, max_size=3))
def test_what_is_written_is_read_back(name, arguments):
    call = ToolCall("call_1", "g", json.dumps(arguments))
    [found] = calls(events_of(get_notation(name).call(call), name))
    assert found.decode() == arguments


def test_a_value_that_holds_the_quote_is_refused():
    with pytest.raises(DialectError, match="can't express"):
        get_notation("gemma4").call(ToolCall("call_1", "f", json.dumps({"zip": 'a<|"|>b'})))


def test_the_offer_is_in_the_same_syntax():
    offer = get_notation("functiongemma").offer([TOOL])
    assert offer.startswith(
        "<start_function_declaration>declaration:f{description:<escape>Does it.<escape>,parameters:{"
    )
    assert "n:{type:<escape>INTEGER<escape>}" in offer
