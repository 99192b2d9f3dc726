"""What holds for every family, whatever the text: the promises of `docs/dialects.md`."""

import json
from functools import cache
from itertools import pairwise

import pytest
from dialect_events import check_spans, joined, parts
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ferrule.conversation import Message, Reasoning, Text, ToolCall, ToolResult
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.dialects.family import NO_GAPS, NO_PARALLEL, NO_TEXT_BESIDE
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta, CallFinished, CallMalformed, CallStarted
from ferrule.toolspec import ToolSpec
from tables import each_case

NAMES = list(load_families())
PROPERTIES = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "ratio": {"type": "number"},
    "flag": {"type": "boolean"},
    "place": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "items": {"type": "array", "items": {"type": "string"}},
    "where": {"$ref": "#/$defs/Point"},
}
TOOLS = [
    ToolSpec(
        "look_up",
        "Look something up.",
        {
            "type": "object",
            "properties": PROPERTIES,
            "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        },
    ),
    ToolSpec("f", "Anything.", {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}),
]
AWKWARD = [
    "\n",
    " ",
    "{",
    "}",
    '"',
    "'",
    "\\",
    ":",
    ",",
    "[",
    "]",
    "<",
    ">",
    "</",
    "<|",
    "|>",
    "```",
    "null",
    "True",
    "=",
    "(",
]
PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "text": st.one_of(PLAIN, st.lists(st.sampled_from(AWKWARD), max_size=5).map("".join)),
        "count": st.integers(-(10**9), 10**9),
        "ratio": st.floats(-1e6, 1e6).map(lambda x: round(x, 3) + 0.5),
        "flag": st.booleans(),
        "place": st.one_of(st.none(), st.sampled_from(["Paris", "a b", "x<y"])),
        "items": st.lists(st.sampled_from(["a", "b c", "d'e"]), max_size=3),
        "where": st.fixed_dictionaries({"x": st.integers(-9, 9)}),
    },
)
FEW = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def call_of(arguments, number=1, name="look_up"):
    return ToolCall(f"call_{number}", name, json.dumps(arguments, ensure_ascii=False))


def one_tool(notation):
    """The name and the parameter of the one tool that a family knows; None where it takes any."""
    return notation.family.one_tool


def ordinary_calls(notation):
    if known := one_tool(notation):
        return [call_of({known[1]: text}, name=known[0]) for text in ("1 + 2", "print('a')")]
    return [call_of({"text": "Paris", "count": 2}), call_of({}, name="f")]


@cache
def troubling_text(name):
    """Text that a reader has trouble with: pieces of its own markers, of real calls, and of anything else."""
    notation = get_notation(name)
    written = [notation.call(call, TOOLS) for call in ordinary_calls(notation)]
    cut = st.builds(
        lambda text, a, b: text[min(a, b) : max(a, b)],
        st.sampled_from(written),
        st.integers(0, 200),
        st.integers(0, 200),
    )
    pieces = st.one_of(
        st.sampled_from(notation.markers or ("{",)),
        st.sampled_from(written),
        st.sampled_from(AWKWARD),
        cut,
        st.text(max_size=6),
    )
    return st.lists(pieces, max_size=8).map("".join)


@cache
def stream_with_control_tokens(name):
    """Pieces of such a text, each with whether it is a token of the tokenizer's own."""
    notation = get_notation(name)
    written = notation.call(ordinary_calls(notation)[0], TOOLS)
    piece = st.one_of(
        st.sampled_from(notation.markers or ("{",)), st.just(written), st.sampled_from(AWKWARD), st.text(max_size=4)
    )
    return st.lists(st.tuples(piece, st.booleans()), max_size=8)


def read(notation, pieces, stopped=True, opens=""):
    reader = notation.reader(TOOLS, opens=opens)
    return [event for piece in pieces for event in reader.feed(piece)] + reader.close(stopped)


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_no_chunking_changes_what_is_read(name, data):
    notation = get_notation(name)
    text = data.draw(troubling_text(name))
    whole = joined(read(notation, [text]))
    assert joined(read(notation, list(text))) == whole
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    assert joined(read(notation, [text[a:b] for a, b in pairwise([0, *cuts, len(text)])])) == whole


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data(), stopped=st.booleans())
def test_nothing_vanishes_and_every_call_is_told_of_whole(name, data, stopped):
    notation = get_notation(name)
    text = data.draw(troubling_text(name))
    events = read(notation, [text], stopped)
    check_spans(events, text)
    started = {event.index for event in events if isinstance(event, CallStarted)}
    ended = [event.index for event in events if isinstance(event, CallFinished | CallMalformed)]
    assert ended == sorted(set(ended))
    assert started <= set(ended)
    for event in events:
        if isinstance(event, CallFinished):
            deltas = [e.json_fragment for e in events if isinstance(e, ArgumentsDelta) and e.index == event.index]
            assert "".join(deltas) == event.call.arguments
            assert isinstance(json.loads(event.call.arguments, parse_constant=pytest.fail), dict)


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_what_was_passed_on_is_never_taken_back(name, data):
    notation = get_notation(name)
    text = data.draw(troubling_text(name))
    cut = data.draw(st.integers(0, len(text)))
    reader = notation.reader(TOOLS)
    early = joined(reader.feed(text[:cut]))
    whole = joined(read(notation, [text]))
    for before, after in zip(early[:-1], whole, strict=False):
        assert before == after


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(data=st.data())
def test_control_tokens_anywhere_are_read_and_nothing_vanishes(name, data):
    notation = get_notation(name)
    stream = data.draw(stream_with_control_tokens(name))
    reader = notation.reader(TOOLS)
    events = [
        event for text, is_control in stream for event in reader.feed(text, is_control and text in notation.markers)
    ]
    events += reader.close()
    check_spans(events, "".join(text for text, _ in stream))


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(values=VALUES)
def test_a_call_is_read_back_or_refused(name, values):
    notation = get_notation(name)
    known = one_tool(notation)
    values = {known[1]: values.get("text", "")} if known else values
    call = call_of(values, name=known[0] if known else "look_up")
    try:
        written = notation.call(call, TOOLS)
    except DialectError:
        return
    [read_back] = [event.call for event in read(notation, list(written)) if isinstance(event, CallFinished)]
    assert (read_back.name, read_back.decode()) == (call.name, values)
    assert notation.call(read_back, TOOLS) == written or notation.call(read_back, TOOLS).split() == written.split()


@each_case("name", NAMES)
def test_ordinary_calls_are_never_refused(name):
    notation = get_notation(name)
    assert all(notation.call(call, TOOLS) for call in ordinary_calls(notation))
    if NO_GAPS in notation.family.losses:
        return
    for values in (
        ()
        if one_tool(notation)
        else ({"text": "How are you? It's 5 o'clock.", "count": 3}, {"place": None, "flag": True}, {"items": ["a"]})
    ):
        assert notation.call(call_of(values), TOOLS)


@pytest.mark.parametrize("name", NAMES)
@FEW
@given(thought=PLAIN, text=PLAIN, first=VALUES, second=st.one_of(st.none(), VALUES))
def test_a_message_is_read_back(name, thought, text, first, second):
    notation = get_notation(name)
    losses = notation.family.losses
    thought, text = thought.strip(), text.strip()
    assume(text and not any(marker.strip() and marker.strip()[0] in text for marker in notation.markers))
    message = []
    if notation.family.message.thinking and thought and not any(m in thought for m in notation.markers):
        message.append(Reasoning(thought))
    if NO_TEXT_BESIDE not in losses:
        message.append(Text(text))
    message.append(call_of(first))
    if second is not None and NO_PARALLEL not in losses:
        message.append(call_of(second, 2))
    try:
        written = notation.message(Message("assistant", tuple(message)), TOOLS)
    except DialectError:
        return
    found = parts(read(notation, [written]))
    assert [type(part) for part in found] == [type(part) for part in message]
    for part, wanted in zip(found, message, strict=True):
        if isinstance(part, ToolCall):
            assert (part.name, part.decode()) == (wanted.name, wanted.decode())
        else:
            assert part.text == wanted.text


@each_case("name", NAMES)
def test_a_result_never_closes_itself(name):
    notation = get_notation(name)
    marker = next((m for m in notation.markers if m.strip()), None)
    text, losses = notation.result(ToolResult("call_1", "f", (Text(f"before {marker} after"),)))
    if marker:
        assert losses
        assert f"before {marker} after" not in text
