"""Anthropic's messages: what is written can be read again, and whatever is lost is said."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.capabilities import Loss
from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.errors import ConversationError
from ferrule.formats.anthropic import EXTRA, dump, load, make_wire_id
from tables import each_case

PIXEL = Image(b"\x89PNG not really")
PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PIXEL.data).decode()},
}


def said(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


REQUEST = {
    "system": [said("Be brief.")],
    "messages": [
        {"role": "user", "content": [said("Look."), PICTURE]},
        {
            "role": "assistant",
            "content": [
                {"type": "redacted_thinking", "data": "Zmlyc3Q="},
                {"type": "thinking", "thinking": "Hm.", "signature": "one"},
                {"type": "redacted_thinking", "data": "c2Vjb25k"},
                {"type": "thinking", "thinking": " Two.", "signature": "two"},
                said("Let me see."),
                {"type": "thinking", "thinking": "", "signature": "three"},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "it"}},
                {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {"_invalid": "{oops"}},
                {"type": "redacted_thinking", "data": "bGFzdA=="},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [said("This is it."), PICTURE]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": [said("no JSON")], "is_error": True},
                said("Go on."),
            ],
        },
    ],
}


def test_a_request_is_read_and_written_again() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    conversation = load(REQUEST, now=now)
    assert conversation.now == now
    assert [message.role for message in conversation.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    written, losses = dump(conversation)
    assert written == REQUEST
    assert losses == [Loss("call", "the arguments of 'toolu_2' are no JSON object, and go as text")]


def test_what_is_read() -> None:
    thought, text, call, invalid = load(REQUEST).messages[2].parts
    assert thought == Reasoning("Hm. Two.")
    assert text == Text("Let me see.")
    assert call == ToolCall("toolu_1", "look", '{"at": "it"}')
    assert invalid == ToolCall("toolu_2", "look", "{oops")


def test_strings_and_marks_for_the_cache_are_read() -> None:
    marked = {**said("Hello."), "cache_control": {"type": "ephemeral"}}
    data = {
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": [marked]}],
    }
    assert load(data).messages == (system("Be brief."), user("Hi."), assistant("Hello."))


@each_case(
    ("data", "told"),
    [
        ([], 'a list "messages"'),
        ({"messages": [{"role": "tool", "content": "x"}]}, "message 0: .*role"),
        ({"messages": [{"role": "user", "content": 1}]}, "message 0: the content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "needs a string 'text'"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]}, "answers no call"),
        ({"messages": [{"role": "assistant", "content": [{"type": "hologram"}]}]}, "'hologram'"),
        ({"messages": [{"role": "user", "content": [{**PICTURE, "source": {"type": "url"}}]}]}, "base64"),
        (
            {"messages": [{"role": "user", "content": [{**PICTURE, "source": {"type": "base64", "data": "?"}}]}]},
            "base64",
        ),
    ],
)
def test_what_can_not_be_read_is_told(data: object, told: str) -> None:
    with pytest.raises(ConversationError, match=told):
        load(data)


def test_users_are_joined_and_results_come_first() -> None:
    conversation = Conversation(
        (
            user("One."),
            user("", "Two."),
            assistant("A"),
            assistant("", ToolCall("c1", "f", "")),
            tool_message(ToolResult("c1", "f", (Text(""),))),
            user("Three."),
        )
    )
    messages = dump(conversation)[0]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[0]["content"] == [said("One."), said("Two.")]
    assert messages[1]["content"][1] == {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "c1", "content": []}, said("Three.")]


def test_a_late_word_of_the_system_is_told() -> None:
    written, losses = dump(Conversation((system("A"), system("B"), user("Hi."), system("C"))))
    assert written["system"] == [said("A"), said("B")]
    assert written["messages"] == [{"role": "user", "content": [said("Hi."), said("C")]}]
    assert [loss.kind for loss in losses] == ["system"]


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {EXTRA: [{"at": 0, "text": "Something else", "signature": "s"}]},
        {EXTRA: [{"at": 1, "text": "Hm.", "signature": "s"}]},
        {"google": {"pieces": [{"at": 0, "text": "Hm.", "signature": "s"}]}},
    ],
)
def test_what_anthropic_did_not_sign_is_left_out_and_told(extra: dict[str, object]) -> None:
    message = Message("assistant", (Reasoning("Hm."), Text("Yes.")), extra=extra)
    written, losses = dump(Conversation((user("?"), message)))
    assert written["messages"][1]["content"] == [said("Yes.")]
    assert {loss.kind for loss in losses} == {"reasoning"}


def test_images_that_are_not_taken_are_noted() -> None:
    odd = Image(b"II*\x00", "image/tiff")
    written, losses = dump(Conversation((user(odd),)))
    assert odd.hash in written["messages"][0]["content"][0]["text"]
    assert [loss.kind for loss in losses] == ["image"]


def test_a_malformed_call_must_be_fitted_first() -> None:
    with pytest.raises(ConversationError, match="adapt"):
        dump(Conversation((assistant(MalformedCall("c1", "oops", "truncated")),)))


@given(st.text(min_size=1), st.text(min_size=1))
def test_ids_are_taken_and_differ(one: str, other: str) -> None:
    taken = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert set(make_wire_id(one)) <= taken
    assert (make_wire_id(one) == make_wire_id(other)) == (one == other)
    assert make_wire_id(make_wire_id(one)) == make_wire_id(one)


WORDS = st.text(min_size=1, max_size=8)
OBJECTS = st.dictionaries(WORDS, st.integers() | WORDS | st.lists(st.booleans()), max_size=3)
THOUGHTS = st.builds(
    lambda text: {"type": "thinking", "thinking": text, "signature": f"of {text}"}, st.text(max_size=5)
)
HIDDEN = st.builds(lambda data: {"type": "redacted_thinking", "data": data}, WORDS)
SPOKEN = st.builds(said, WORDS)
CALLS = st.builds(lambda arguments: {"type": "tool_use", "name": "f", "input": arguments}, OBJECTS)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, object]:
    messages: list[dict[str, object]] = []
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        results: list[object] = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": draw(st.lists(SPOKEN, max_size=2))}
            for block in (messages[-1]["content"] if messages else ())
            if block["type"] == "tool_use"
        ]
        messages.append({"role": "user", "content": [*results, *draw(st.lists(SPOKEN, min_size=1, max_size=2))]})
        blocks = draw(st.lists(THOUGHTS | HIDDEN | SPOKEN | CALLS, min_size=1, max_size=5))
        for index, block in enumerate(blocks):
            if block["type"] == "tool_use":
                number += 1
                blocks[index] = {**block, "id": f"t{number}"}
        messages.append({"role": "assistant", "content": blocks})
    return {"messages": messages}


@given(requests())
def test_any_request_is_written_as_it_was_read(request: dict[str, object]) -> None:
    written, losses = dump(load(json.loads(json.dumps(request))))
    assert written == request
    assert losses == []
