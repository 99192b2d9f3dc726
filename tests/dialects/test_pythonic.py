"""Calls as Python writes them: literals become JSON as they stream, and what is no literal is refused."""

import json

import pytest
from dialect_events import calls, check_spans, joined, parts, read
from hypothesis import given
from hypothesis import strategies as st

from ferrule.conversation import MalformedCall, Text, ToolCall
from ferrule.dialects.catalogue import get_notation
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta, CallStarted
from tables import each_case

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def arguments_in(text, name="pythonic"):
    events = read(get_notation(name).reader(), [text])
    check_spans(events, text)
    assert joined(read(get_notation(name).reader(), list(text))) == joined(events)
    return [call.decode() for call in calls(events)]


def test_a_string_streams_character_by_character():
    reader = get_notation("pythonic").reader()
    events = [event for character in '[say(text="héllo' for event in reader.feed(character)]
    assert [e.name for e in events if isinstance(e, CallStarted)] == ["say"]
    assert [e.json_fragment for e in events if isinstance(e, ArgumentsDelta)] == ['{"text": "', *"héllo"]


@each_case(
    ("literal", "value"),
    [
        ("'a'", "a"),
        ('"""a"b\n"""', 'a"b\n'),
        ("''", ""),
        ("'''a''b'''", "a''b"),
        (r"'\x41\u00e9\U0001f600\N{DIGIT ONE}\101\0'", "Aé😀1A\0"),
        (r"'\d\''", "\\d'"),
        (r"r'\n\''", "\\n\\'"),
        ("'a' \"b\" r'\\c'", "ab\\c"),
        ("'a\\\nb'", "ab"),
        ("- 3", -3),
        ("+3.", 3.0),
        (".5", 0.5),
        ("1_000", 1000),
        ("0xff", 255),
        ("(1, 'x',)", [1, "x"]),
        ("('x')", "x"),
        ("(('x' 'y'),)", ["xy"]),
        ("()", []),
        ("[(), ({'a': (1)},)]", [[], [{"a": 1}]]),
        ("{1: None, 'b': True}", {"1": None, "b": True}),
        ("{'b', 'a'}", ["b", "a"]),
        ("{}", {}),
    ],
)
def test_a_literal_is_read_as_python_reads_it(literal, value):
    assert arguments_in(f"[f(x={literal})]") == [{"x": value}]


@each_case(
    "value",
    ["g()", "1 + 1", "x", "b'x'", "f'{x}'", "1e999", "nan", "'a' 3", "[1 2]", "{1: 2, 3}", "lambda: 1", "1j", "..."],
)
def test_what_is_no_literal_makes_the_call_malformed(value):
    text = f"<|python_start|>[f(x={value})]<|python_end|> on"
    found = parts(read(get_notation("pythonic").reader(), [text]))
    assert found == [MalformedCall("call_1", text.removesuffix(" on"), found[0].kind), Text(" on")]


@each_case("text", ["[see f(x)]", "[1]: http://a", "f(a=1)", "[f(1)]", "See [f(a=1)]", "[", "[f(", "[]"])
def test_what_only_looks_like_a_bare_call_is_text(text):
    assert parts(read(get_notation("pythonic").reader(), [text])) == [Text(text)]


def test_a_list_that_breaks_off_keeps_the_calls_that_are_whole():
    found = parts(read(get_notation("lfm2").reader(), ["<|tool_call_start|>[f(a='x'), g(b='y"]))
    assert [type(part) for part in found] == [ToolCall, MalformedCall]
    assert found[1].raw == ", g(b='y"


def test_lines_of_calls_and_objects_of_json():
    assert arguments_in("<function_calls>f(a=1)\n\ng()\n</function_calls>", "olmo3") == [{"a": 1}, {}]
    text = '<|tool_call_start|>[{"name": "f", "arguments": {"a": [1]}}, g(b=2)]<|tool_call_end|>'
    assert arguments_in(text, "lfm2") == [{"a": [1]}, {"b": 2}]


@pytest.mark.parametrize("name", ["pythonic", "olmo3", "lfm2", "lfm25", "lfm2_v1"])
@given(arguments=st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, max_size=4))
def test_what_is_written_is_read_back(name, arguments):
    notation = get_notation(name)
    call = ToolCall("call_1", "f", json.dumps(arguments, ensure_ascii=False))
    assert arguments_in(notation.call(call), name) == [arguments]


@pytest.mark.parametrize("name", ["pythonic", "olmo3", "lfm2"])
def test_markers_match_by_id_where_ids_are_given(name):
    notation = get_notation(name)
    opener, closer = notation.family.syntax.markers
    reader = notation.reader()
    body = f"[f(a='{opener}{closer}')]"
    pieces = [(opener, False), (opener, True), (body, False), (closer, True), (f" {closer}", False)]
    events = [event for text, control in pieces for event in reader.feed(text, control)] + reader.close(True)
    found = parts(events)
    assert [part for part in found if isinstance(part, Text)] == [Text(opener), Text(f" {closer}")]
    assert calls(events)[0].decode() == {"a": opener + closer}


def test_a_key_that_is_no_name_is_refused():
    with pytest.raises(DialectError, match="can't express"):
        get_notation("lfm2").call(ToolCall("call_1", "f", '{"a b": 1}'))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lfm2", """text='it\\'s "a"\\n', sure=True, tags=["a", null, true], more={"b": "é"}"""),
        ("lfm25", """text='it\\'s "a"\\n', sure=True, tags=['a', None, True], more={"b": "é"}"""),
        ("lfm2_v1", """text="it's \\"a\\"\\n", sure=True, tags=["a", None, True], more={"b": "é"}"""),
    ],
)
def test_each_version_of_lfm_writes_values_in_its_own_way(name, text):
    arguments = {"text": 'it\'s "a"\n', "sure": True, "tags": ["a", None, True], "more": {"b": "é"}}
    written = f"<|tool_call_start|>[note({text})]<|tool_call_end|>"
    assert get_notation(name).call(ToolCall("call_1", "note", json.dumps(arguments))) == written
    for other in ("lfm2", "lfm25", "lfm2_v1"):
        assert arguments_in(written, other) == [arguments]
