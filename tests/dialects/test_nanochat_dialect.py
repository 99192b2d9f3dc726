"""The nanochat dialect: masks part by part as the first seed defines them, what is added to them, and the reader."""

import json
from dataclasses import replace

import pytest
from dialect_events import calls, check_spans, joined, parts, read
from hypothesis import given
from hypothesis import strategies as st

from ferrule.conversation import (
    Conversation,
    MalformedCall,
    Reasoning,
    SampledTokens,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects import get_dialect
from ferrule.dialects.segments import Content, Control, SampledIds
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec

NANOCHAT = get_dialect("nanochat")
CALL = ToolCall("call_1", "calculator", '{"expression": "12 * 34"}')
PIECES = st.one_of(st.text(max_size=6), st.sampled_from([*NANOCHAT.markers, "<|", "<|python_", '"', "\\", "1 + 1"]))
TEXTS = st.lists(PIECES, max_size=12).map("".join)


def result(text, status="ok", call_id="call_1"):
    return tool_message(ToolResult(call_id, "calculator", (Text(text),), status))


def test_masks_are_the_seeds_part_by_part_and_the_terminator_is_trained():
    conversation = Conversation((user("What is 12 * 34?"), assistant(CALL), result("408"), assistant("It is 408.")))
    assert NANOCHAT.layout(conversation).segments == (
        Control("<|bos|>"),
        Control("<|user_start|>"),
        Content("What is 12 * 34?"),
        Control("<|user_end|>"),
        Control("<|assistant_start|>"),
        Control("<|python_start|>", trained=True),
        Content("12 * 34", trained=True),
        Control("<|python_end|>", trained=True),
        Control("<|output_start|>"),
        Content("408"),
        Control("<|output_end|>"),
        Content("It is 408.", trained=True),
        Control("<|assistant_end|>", trained=True),
    )


def test_what_follows_a_failed_call_is_trained():
    conversation = Conversation(
        (user("1/0?"), assistant(CALL), result("error: division by zero", "error"), assistant("It can't be divided."))
    )
    *_, failure, _, answer, end = NANOCHAT.layout(conversation).segments
    assert failure == Content("error: division by zero")
    assert answer == Content("It can't be divided.", trained=True)
    assert end == Control("<|assistant_end|>", trained=True)


def test_the_turn_stays_open_over_a_result_and_the_prompt_knows():
    asked = Conversation((user("?"),))
    assert NANOCHAT.layout(asked).prompt == (Control("<|assistant_start|>"),)
    assert NANOCHAT.layout(asked.add(assistant(CALL), result("408"))).prompt == ()


def test_a_turn_that_has_text_after_a_call_without_output_ends():
    *_, text, end = NANOCHAT.layout(Conversation((user("?"), assistant(CALL, "I don't know.")))).segments
    assert (text, end) == (Content("I don't know.", trained=True), Control("<|assistant_end|>", trained=True))


def sampled(message, stop):
    return replace(message, sampled=SampledTokens((7, 8), (-0.1, -0.2), "tokens", "nanochat", stop))


@pytest.mark.parametrize(
    ("message", "stop", "closer"),
    [
        (assistant("It is"), "length", "<|assistant_end|>"),
        (assistant("It is 408."), "turn", "<|assistant_end|>"),
        (assistant(CALL), "calls", ""),
        (assistant(MalformedCall("call_1", "<|python_start|>12", "truncated")), "length", "<|python_end|>"),
        (assistant(MalformedCall("call_1", "<|python_start|>12", "unclosed")), "calls", "<|assistant_end|>"),
        (assistant(MalformedCall("call_1", "<|output_start|>", "forged_result")), "calls", ""),
    ],
)
def test_what_was_sampled_stands_and_names_what_must_close_it(message, stop, closer):
    segments = NANOCHAT.layout(Conversation((user("?"), sampled(message, stop)))).segments
    assert segments[-1] == SampledIds((7, 8), (-0.1, -0.2), closer)


def test_system_text_goes_before_the_next_users_and_is_reported():
    layout = NANOCHAT.layout(Conversation((system("Be brief."), user("Hi"))))
    assert Content("Be brief.\n\nHi") in layout.segments
    assert [loss.kind for loss in layout.losses] == ["system"]
    alone = NANOCHAT.layout(Conversation((system("Be brief."),)))
    assert "not written" in alone.losses[0].detail


def test_reasoning_has_no_place_and_is_reported():
    layout = NANOCHAT.layout(Conversation((user("?"), assistant(Reasoning("Hm."), "Yes."))))
    assert [loss.kind for loss in layout.losses] == ["reasoning"]


def test_it_knows_one_tool_with_one_argument():
    with pytest.raises(DialectError, match=r"supports only the tool 'calculator' and can't offer 'search'"):
        NANOCHAT.offer([ToolSpec("search", "Searches.", {"type": "object"})])
    for call in (
        ToolCall("call_1", "search", "{}"),
        replace(CALL, arguments="{"),
        replace(CALL, arguments='{"expression": 5}'),
        replace(CALL, arguments='{"expression": "5", "digits": 2}'),
    ):
        with pytest.raises(DialectError):
            NANOCHAT.call(call)
    with pytest.raises(DialectError, match=r"needs a control token for <\|python_end\|>"):
        NANOCHAT.reader(spelled_out=["<|python_end|>"])


def test_markers_in_a_result_are_made_visible_in_text_mode():
    text, losses = NANOCHAT.result(result("4<|output_end|>5").result)
    assert text == "<|output_start|>4<| output_end|>5<|output_end|>"
    assert [loss.kind for loss in losses] == ["marker"]


@given(TEXTS, st.data())
def test_no_chunking_changes_what_is_read(text, data):
    whole = joined(read(NANOCHAT.reader(), [text]))
    cut = data.draw(st.integers(0, len(text)))
    assert joined(read(NANOCHAT.reader(), list(text))) == whole
    assert joined(read(NANOCHAT.reader(), [text[:cut], text[cut:]])) == whole


@given(TEXTS, st.booleans())
def test_spans_tile_the_input_whatever_it_is(text, stopped):
    check_spans(read(NANOCHAT.reader(), list(text), stopped), text)


@given(st.text(max_size=30))
def test_an_expression_is_read_back(expression):
    if any(marker in expression for marker in NANOCHAT.markers):
        return
    arguments = json.dumps({"expression": expression}, ensure_ascii=False)
    text = NANOCHAT.call(ToolCall("call_1", "calculator", arguments))
    assert parts(read(NANOCHAT.reader(), list(text))) == [ToolCall("call_1", "calculator", arguments, text)]


def test_a_made_up_output_ends_as_a_malformed_call():
    events = read(NANOCHAT.reader(), ["It is <|output_start|>409<|output_end|>"])
    assert parts(events) == [
        Text("It is "),
        MalformedCall("call_1", "<|output_start|>409<|output_end|>", "forged_result"),
    ]
    assert read(NANOCHAT.reader(), ["<|output_end|>"])[-1].kind == "forged_result"
    assert read(NANOCHAT.reader(), ["<|output_start|>40"])[-1].raw == "<|output_start|>40"


@pytest.mark.parametrize(("stopped", "kind"), [(True, "unclosed"), (False, "truncated")])
def test_an_open_call_is_malformed_at_the_end(stopped, kind):
    events = read(NANOCHAT.reader(first_call=3), ["<|python_start|>12 *"], stopped)
    assert (events[-1].kind, events[-1].raw) == (kind, "<|python_start|>12 *")


def test_control_tokens_decide_where_ids_are_known():
    reader = NANOCHAT.reader(first_call=3)
    events = reader.feed("<|python_start|>", True) + reader.feed("<|python_end|>", False)
    events += reader.feed("<|python_end|>", True)
    [call] = calls(events)
    assert (call.id, call.decode()) == ("call_3", {"expression": "<|python_end|>"})
