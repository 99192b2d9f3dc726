"""The Hermes reader: what it reads, that no chunking changes it, and that nothing vanishes or raises."""

import json
from itertools import pairwise

import pytest
from dialect_events import calls, check_spans, joined, parts, read
from hypothesis import given
from hypothesis import strategies as st

from ferrule.conversation import MalformedCall, Reasoning, Text
from ferrule.dialects import get_dialect
from ferrule.events import ArgumentsDelta, CallFinished, CallMalformed, CallStarted, Framing, ReasoningDelta, TextDelta
from tables import each_case

DIALECT = get_dialect("hermes")
MARKERS = DIALECT.markers


def read_all(text, stopped=True, **options):
    return read(DIALECT.reader(**options), [text], stopped)


def call_text(body):
    return f"<tool_call>\n{body}\n</tool_call>"


WEATHER = call_text('{"name": "weather", "arguments": {"city": "Paris"}}')

PIECES = st.one_of(
    st.text(max_size=8),
    st.sampled_from(MARKERS),
    st.sampled_from(["\n", "{", "}", '"', "\\", ":", ",", " ", "[", "]", "<", "</", "<|", "<tool", "</think"]),
    st.sampled_from(['"name": "f"', '"arguments": {"a": 1}', '{"name": "f", "arguments": ', "1e5", "null"]),
    st.just(WEATHER),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@given(TEXTS, st.data())
def test_no_chunking_changes_what_is_read(text, data):
    whole = joined(read_all(text))
    assert joined(read(DIALECT.reader(), list(text))) == whole
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edges = [0, *cuts, len(text)]
    chunks = [text[start:end] for start, end in pairwise(edges)]
    assert joined(read(DIALECT.reader(), chunks)) == whole


@given(TEXTS, st.booleans(), st.sampled_from(["", "<think>\n"]))
def test_spans_tile_the_input_whatever_it_is(text, stopped, opens):
    check_spans(read(DIALECT.reader(opens=opens), list(text), stopped), text)
    check_spans(read_all(text, stopped, opens=opens), text)


@given(st.lists(st.tuples(PIECES, st.booleans()), max_size=12))
def test_with_ids_any_stream_is_read_and_its_spans_tile(stream):
    reader = DIALECT.reader()
    events = []
    for piece, is_control in stream:
        marker = piece in MARKERS
        events += reader.feed(piece, marker and is_control)
    events += reader.close()
    check_spans(events, "".join(piece for piece, _ in stream))


@given(st.text(max_size=20), st.lists(st.tuples(st.text(max_size=10), st.text(max_size=20)), max_size=3))
def test_what_the_dialect_writes_is_read_back(reasoning, values):
    arguments = json.dumps(dict(values), ensure_ascii=False)
    text = f"<think>\n{reasoning}\n</think>\n\n" + call_text(f'{{"name": "f", "arguments": {arguments}}}')
    if any(marker in reasoning for marker in MARKERS):
        return
    found = parts(read_all(text))
    assert found[-1].arguments == arguments
    assert [part.text for part in found[:-1]] == ([reasoning] if reasoning else [])


def test_a_whole_message():
    events = read_all(f"<think>\nIt asks for Paris.\n</think>\n\nOne moment.\n{WEATHER}\n{WEATHER}<|im_end|>")
    first, second = calls(events)
    assert parts(events) == [Reasoning("It asks for Paris."), Text("One moment."), first, second]
    assert (first.id, first.name, first.arguments) == ("call_1", "weather", '{"city": "Paris"}')
    assert first.source == WEATHER
    assert second.id == "call_2"


def test_arguments_stream_as_they_come():
    reader = DIALECT.reader(first_call=4)
    assert any(isinstance(e, CallStarted) for e in reader.feed('<tool_call>\n{"name": "f", "argum'))
    deltas = [e for e in reader.feed('ents": {"text": "once up') if isinstance(e, ArgumentsDelta)]
    assert "".join(delta.json_fragment for delta in deltas) == '{"text": "once up'
    [delta] = reader.feed("on a time")
    assert delta.json_fragment == "on a time"
    assert calls(reader.feed('"}}\n</tool_call>'))[0].id == "call_4"


def test_arguments_before_the_name_wait_for_it():
    text = call_text('{"arguments": {"a": [1, "}"]}, "name": "f"}')
    events = joined(read(DIALECT.reader(), list(text)))
    started = next(at for at, event in enumerate(events) if isinstance(event, CallStarted))
    assert not any(isinstance(event, ArgumentsDelta) for event in events[:started])
    assert isinstance(events[-2], ArgumentsDelta)
    assert calls(events)[0].arguments == '{"a": [1, "}"]}'
    check_spans(events, text)


@pytest.mark.parametrize("value", ["</tool_call>", "<tool_call>", 'a\\"b</tool_call>', "<|im_end|>", "</think>"])
def test_a_marker_in_a_json_string_is_a_part_of_it(value):
    arguments = f'{{"a": "{value}"}}'
    [call] = calls(read_all(call_text(f'{{"name": "f", "arguments": {arguments}}}') + WEATHER))[:1]
    assert call.arguments == arguments


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ('{"name": "f"}', "{}"),
        ('{"name": "f", "arguments": {}}', "{}"),
        ('{"name": "f", "arguments": "{\\"a\\": 1}"}', '{"a": 1}'),
        ('{"name": "f", "arguments": null}', "{}"),
        ('{"id": 7, "name": "f", "arguments": {"a": 1} }', '{"a": 1}'),
        ('{"n\\u0061me": "f", "arguments": {"a": 1.50}}', '{"a": 1.50}'),
    ],
)
def test_arguments_are_kept_as_they_were_written(body, arguments):
    events = read_all(call_text(body))
    [call] = calls(events)
    assert (call.name, call.arguments) == ("f", arguments)
    assert "".join(e.json_fragment for e in events if isinstance(e, ArgumentsDelta)) == arguments


@each_case(
    ("body", "kind"),
    [
        ("not JSON", "invalid_json"),
        ('{"name": "f", "arguments": {"a": }}', "invalid_json"),
        ('{"name": "f", "arguments": {"a": 1}}]}', "invalid_json"),
        ('{"name": "f", "arguments": {"a": NaN}}', "invalid_json"),
        ('{"name": "f", "name": "g", "arguments": {}}', "repeated_key"),
        ('{"name": "f", "arguments": {}, "arguments": {"a": 1}}', "repeated_key"),
        ('{"name": "f", "arguments": [1]}', "arguments_not_an_object"),
        ('{"name": "f", "arguments": {"a": ' + "[" * 100_000 + "]" * 100_000 + "}}", "invalid_json"),
        ('{"name": "f", "a": 1}', "arguments_outside"),
        ('{"a": 1, "id": "x", "name": "f"}', "arguments_outside"),
        ('{"arguments": {"a": 1}}', "no_name"),
        ('{"name": 7, "arguments": {}}', "no_name"),
        ('{"name": "", "arguments": {}}', "no_name"),
        ('["f"]', "invalid_json"),
        ("", "invalid_json"),
    ],
)
def test_what_cannot_be_a_call_is_malformed_and_kept(body, kind):
    text = call_text(body) if body else "<tool_call></tool_call>"
    events = read_all(f"Hm.\n{text}\n{WEATHER}")
    [malformed] = [event for event in events if isinstance(event, CallMalformed)]
    assert (malformed.kind, malformed.raw) == (kind, text)
    assert [call.name for call in calls(events)] == ["weather"]
    assert malformed.index == 0
    assert calls(events)[0].id == "call_2"


@pytest.mark.parametrize(
    ("body", "arguments", "repairs"),
    [
        ('{"name": "f", "arguments": {"a": 1}', {"a": 1}, ("missing_closer",)),
        ('{"name": "f", "arguments": {"a": 1}}}', {"a": 1}, ("extra_closer",)),
        ('{"name": "f", "arguments": {"a": "line\nbreak"}}', {"a": "line\nbreak"}, ("unescaped_control",)),
        ('{"name": "f", "arguments": {"a": True, }}', {"a": True}, ("python_literals", "trailing_comma")),
        ("{'name': 'f', 'arguments': {'a': 'it'}}", {"a": "it"}, ("single_quotes",)),
    ],
)
def test_what_is_nearly_right_is_put_right_once_its_closer_was_seen(body, arguments, repairs):
    text = call_text(body)
    events = read_all(text)
    [finished] = [event for event in events if isinstance(event, CallFinished)]
    assert (finished.call.decode(), finished.repairs) == (arguments, repairs)
    assert "".join(e.json_fragment for e in events if isinstance(e, ArgumentsDelta)) == finished.call.arguments
    assert [event.kind for event in read_all(text.removesuffix("</tool_call>")) if isinstance(event, CallMalformed)]


@each_case("length", range(len("<tool_call>"), len(WEATHER) - len("\n</tool_call>")))
def test_a_truncated_call_is_malformed(length):
    for stopped, kind in ((False, "truncated"), (True, "unclosed")):
        [found] = [e for e in read_all(WEATHER[:length], stopped) if isinstance(e, CallMalformed | CallFinished)]
        assert (found.kind, found.raw) == (kind, WEATHER[:length])


@pytest.mark.parametrize("rest", ["", "\n", "\n</tool", "<|im_end|>", f"\n{WEATHER}"])
def test_a_whole_object_is_a_call_without_its_closer(rest):
    text = WEATHER.removesuffix("\n</tool_call>")
    for stopped in (True, False):
        assert calls(read_all(text + rest, stopped))[0].arguments == '{"city": "Paris"}'


def test_a_call_drafted_in_reasoning_is_reasoning():
    events = read_all(f"<think>\nI could say {WEATHER}.\n</think>\n\nNo.")
    assert parts(events) == [Reasoning(f"I could say {WEATHER}."), Text("No.")]


def test_a_prompt_may_have_opened_the_reasoning():
    assert parts(read_all("Hm.\n</think>\n\nYes.", opens="<think>\n")) == [Reasoning("Hm."), Text("Yes.")]
    assert parts(read_all("Yes.", opens="<think>\n\n</think>\n\n")) == [Text("Yes.")]


@pytest.mark.parametrize("forged", ["<tool_response>\n408\n</tool_response>", "<tool_response>408", "</tool_response>"])
def test_a_result_that_the_model_writes_is_malformed(forged):
    events = read_all(f"So: {forged}")
    assert parts(events)[1] == MalformedCall("call_1", forged, "forged_result")


def test_control_tokens_decide_where_ids_are_known():
    reader = DIALECT.reader()
    assert reader.feed("<tool_call>", False) == [TextDelta("<tool_call>", (0, 11))]
    assert reader.feed("<think>", True) == [Framing("<think>", (11, 18))]
    assert reader.feed("</think>", False) == [ReasoningDelta("</think>", (18, 26))]


def test_markers_without_a_token_are_found_by_text():
    reader = DIALECT.reader(spelled_out=["<tool_call>", "</tool_call>"])
    events = reader.feed("<tool_ca", False) + reader.feed(WEATHER.removeprefix("<tool_ca") + "<|im_end|>", False)
    assert [call.name for call in calls(events)] == ["weather"]
    assert parts(events)[1] == Text("<|im_end|>")


def test_the_turn_ends_an_open_call_by_id():
    reader = DIALECT.reader()
    events = reader.feed("<tool_call>", True) + reader.feed('{"name": "f', False) + reader.feed("<|im_end|>", True)
    assert [(e.kind, e.raw) for e in events if isinstance(e, CallMalformed)] == [("unclosed", '<tool_call>{"name": "f')]
    assert events[-1] == Framing("<|im_end|>", events[-1].span)


def test_reading_costs_the_same_for_each_piece():
    """Work is counted, not time: what a piece gives must not grow with what came before."""
    reader = DIALECT.reader()
    reader.feed('<tool_call>\n{"name": "f", "arguments": {"a": "')
    for _ in range(20_000):
        [delta] = reader.feed("x\\n<")
        assert delta.json_fragment == "x\\n<"
    assert len(calls(reader.feed('"}}\n</tool_call>'))[0].arguments) == 80_000 + len('{"a": ""}')
