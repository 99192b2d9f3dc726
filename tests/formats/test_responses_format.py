"""OpenAI's Responses items, read from files and written to them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from ferrule.formats.openai_responses import EXTRA, dump, load, write_items
from tables import each_case

PIXEL = "data:image/png;base64,iVBORw=="
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}],
    "encrypted_content": "c2VjcmV0",
}


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, **more}


def asks(text: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def call(call_id: str = "c1", name: str = "f", arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str = "c1", said: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": said}


FILE = [
    {"type": "message", "role": "system", "content": "Be brief."},
    {"type": "message", "role": "developer", "content": "In French."},
    asks([{"type": "input_text", "text": "Here:"}, {"type": "input_image", "image_url": PIXEL, "detail": "low"}]),
    THOUGHT,
    says("Let me see.", phase="commentary"),
    call("c1", "look", '{"at":  1}'),
    call("c2", "look"),
    output(
        "c1", [{"type": "input_text", "text": "It:"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"}]
    ),
    output("c2", "nothing"),
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
    says("A cat."),
    asks("And who are you?"),
    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I can't say."}]},
]


def test_a_file_is_read_and_written_back_as_it_was() -> None:
    conversation = load(FILE)
    first, second, question, said, one, two, answer, _, refusal = conversation.messages
    assert (first.role, second.role, second.extra) == ("system", "system", {"openai": {"role": "developer"}})
    assert isinstance(question.parts[1], Image)
    assert [type(part) for part in said.parts] == [Reasoning, Text, ToolCall, ToolCall]
    assert said.parts[0] == Reasoning("First.\n\nThen.")
    assert (said.calls[0].id, said.calls[0].arguments) == ("c1", '{"at":  1}')
    assert (one.result.call_id, two.result.text) == ("c1", "nothing")
    assert answer.parts == (Reasoning("Hm."), Text("A cat."))
    assert (refusal.text, refusal.extra) == ("I can't say.", {"openai": {"refusal": "I can't say."}})
    assert dump(conversation) == (FILE, [])


def test_what_a_request_may_not_hold_is_left_out_there_and_named() -> None:
    items, losses = write_items(load(FILE))
    assert THOUGHT in items
    assert [loss.detail for loss in losses] == [
        "message 6: 3 characters do not go back: another model's, or not encrypted"
    ]
    assert sum(item["type"] == "reasoning" for item in items) == 1


def test_requests_and_responses_are_read_as_they_are() -> None:
    response = {
        "instructions": "Be brief.",
        "input": "Who?",
        "output": [
            {"id": "rs", "type": "reasoning", "summary": [], "encrypted_content": "x", "status": None},
            {
                "id": "msg",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Me", "annotations": []}],
            },
        ],
    }
    conversation = load(response)
    assert conversation.messages[:2] == (system("Be brief."), user("Who?"))
    assert conversation.messages[2].parts == (Text("Me"),)
    assert conversation.messages[2].extra[EXTRA]["reasoning"] == [
        {"before": 0, "item": {"id": "rs", "type": "reasoning", "summary": [], "encrypted_content": "x"}}
    ]
    assert load([{"role": "user", "content": "Hi"}]).messages == (user("Hi"),)


def test_results_are_put_into_call_order_and_ids_that_come_again_are_replaced() -> None:
    items = [asks("x"), call("c1"), call("c2"), output("c2", "2"), output("c1", "1"), call("c1"), output("c1", "3")]
    conversation = load(items)
    assert [message.role for message in conversation.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]
    results = [message.result for message in conversation.messages if message.role == "tool"]
    assert [result.text for result in results] == ["1", "2", "3"]
    assert [result.call_id for result in results] == ["c1", "c2", "call_1"]


@each_case(
    ("data", "words"),
    [
        ({}, 'a list "input" or "output"'),
        ([7], "item 0 must be an object"),
        ([{"type": "item_reference", "id": "x"}], r"item 0 \(item_reference\) can't be held"),
        ([{"type": "web_search_call"}], "leave it out"),
        ([{"role": "robot", "content": "x"}], "the role must be system, developer, user or assistant"),
        ([asks(None)], "the content must be a text or a list of parts"),
        ([asks([{"type": "input_file", "file_id": "x"}])], "a file that was uploaded is not fetched"),
        ([asks([{"type": "input_video"}])], "a part of type 'input_video' can't be held"),
        ([asks([{"type": "input_image", "image_url": "https://x"}])], "is not fetched"),
        ([output()], "the output for 'c1' answers no open call"),
        ([{"type": "function_call", "call_id": "c"}], "a call needs the name"),
        ([call(), asks("x"), says("y")], "the call 'c1' before it has no result"),
    ],
)
def test_what_cannot_be_held_is_refused_with_its_place(data: Any, words: str) -> None:
    with pytest.raises(ConversationError, match=words):
        load(data)


def test_what_the_format_has_no_place_for_is_named() -> None:
    conversation = Conversation(
        (
            Message("user", (Text("Hi"),), None, {"openai": {"name": "Ann"}}),
            assistant("One."),
            assistant(MalformedCall("call_1", "<call", "tag")),
            tool_message(ToolResult("call_1", "", (Text("no"),), "invalid")),
        )
    )
    items, losses = dump(conversation)
    assert [loss.kind for loss in losses] == ["call", "extra", "text", "status"]
    assert "".join(part.text for part in load(items).messages[1].parts) == "One.<call"


TEXTS = st.text(min_size=1, max_size=5)
IMAGES = st.binary(min_size=1, max_size=3).map(lambda data: Image(data, "image/png"))
THOUGHTS = st.lists(st.one_of(TEXTS.map(Text), TEXTS.map(Reasoning)), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Conversations in which no assistant speaks twice in a row."""
    messages: list[Message] = []
    for round_ in range(draw(st.integers(0, 3))):
        messages.append(user(*draw(st.lists(st.one_of(TEXTS.map(Text), IMAGES), min_size=1, max_size=3))))
        for step in range(draw(st.integers(0, 2))):
            ids = [f"call_{round_}_{step}_{number}" for number in range(draw(st.integers(1, 2)))]
            calls = [
                ToolCall(name, draw(st.sampled_from("fg")), draw(st.sampled_from(["{}", '{"a": 1}']))) for name in ids
            ]
            messages.append(Message("assistant", (*draw(THOUGHTS), *calls)))
            messages += [tool_message(ToolResult(one.id, one.name, (Text(draw(TEXTS)),))) for one in calls]
        messages.append(Message("assistant", (*draw(THOUGHTS), Text("."))))
    return Conversation(tuple(messages))


@given(conversations())
def test_what_is_written_is_read_back(conversation: Conversation) -> None:
    items, losses = dump(conversation)
    assert losses == []
    assert load(items, now=conversation.now) == conversation
