"""Gemini's contents: what is written can be read again, and whatever is lost is said."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest

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
from ferrule.formats.google import EXTRA, UNSIGNED, dump, load
from tables import each_case

PIXEL = Image(b"\x89PNG not really")
PICTURE = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PIXEL.data).decode()}}


def called(name: str, identifier: str, arguments: object, **more: str) -> dict[str, object]:
    return {"functionCall": {"id": identifier, "name": name, "args": arguments}, **more}


def answered(name: str, identifier: str, response: object, *parts: object) -> dict[str, object]:
    written = {"id": identifier, "name": name, "response": response}
    return {"functionResponse": {**written, "parts": list(parts)} if parts else written}


REQUEST = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Look."}, PICTURE]},
        {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True, "thoughtSignature": "one"},
                {"text": "Let me "},
                {"text": "see.", "thoughtSignature": "two"},
                called("look", "c1", {"at": "it"}, thoughtSignature="three"),
                called("look", "c2", {"_invalid": "{oops"}),
                {"text": "", "thoughtSignature": "four"},
            ],
        },
        {
            "role": "user",
            "parts": [
                answered("look", "c1", {"output": "This is it."}, PICTURE),
                answered("look", "c2", {"error": "no JSON"}),
            ],
        },
        {"role": "user", "parts": [{"text": "Go on."}]},
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
    thought, text, call, invalid = conversation.messages[2].parts
    assert (thought, text) == (Reasoning("Hm."), Text("Let me see."))
    assert (call, invalid) == (ToolCall("c1", "look", '{"at": "it"}'), ToolCall("c2", "look", "{oops"))
    written, losses = dump(conversation)
    assert written == REQUEST
    assert [loss.kind for loss in losses] == ["call"]


def test_calls_without_ids_are_answered_in_their_order() -> None:
    made = [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g", "f")]
    answers = [{"functionResponse": {"name": name, "response": {"value": 1}}} for name in ("f", "g", "f")]
    data = {"contents": [{"role": "model", "parts": made}, {"role": "user", "parts": answers}]}
    results = [message.result for message in load(data).messages[1:]]
    assert [result.call_id for result in results] == ["call_1", "call_2", "call_3"]
    assert results[0].text == '{"value": 1}'


@each_case(
    ("data", "told"),
    [
        ({}, 'a list "contents"'),
        ({"contents": [{"role": "tool", "parts": []}]}, "content 0: .*role"),
        ({"contents": [{"role": "user"}]}, "content 0: .*list of parts"),
        ({"contents": [{"role": "user", "parts": [{"fileData": {}}]}]}, "only texts and inlineData"),
        ({"contents": [{"role": "user", "parts": [{"inlineData": {"data": "?"}}]}]}, "base64"),
        ({"contents": [{"role": "user", "parts": [answered("f", "c1", {})]}]}, "answers no open call"),
        ({"contents": [{"role": "model", "parts": [{"functionCall": {}}]}]}, "needs a name"),
        ({"contents": [{"role": "model", "parts": [{"executableCode": {}}]}]}, "executableCode"),
    ],
)
def test_what_can_not_be_read_is_told(data: object, told: str) -> None:
    with pytest.raises(ConversationError, match=told):
        load(data)


ELSEWHERE = Conversation(
    (
        user("?"),
        assistant(Reasoning("unsigned"), ToolCall("toolu_1", "f", "{}"), ToolCall("toolu_2", "f", "{}")),
        tool_message(ToolResult("toolu_1", "f", (Text("1"),))),
        tool_message(ToolResult("toolu_2", "f", (Text("2"),))),
    )
)


def test_calls_of_others_are_signed_in_googles_own_words_where_they_must_be() -> None:
    for must_sign, signature in ((True, UNSIGNED), (False, None)):
        written, losses = dump(ELSEWHERE, must_sign=must_sign)
        first, second = written["contents"][1]["parts"]
        assert first.get("thoughtSignature") == signature
        assert "thoughtSignature" not in second
        assert [loss.kind for loss in losses] == ["reasoning"]


def test_a_changed_text_goes_without_its_signature() -> None:
    extra = {EXTRA: {"pieces": [{"at": 0, "text": "Yes.", "signature": "s"}]}}
    written, losses = dump(Conversation((user("?"), Message("assistant", (Text("No."),), extra=extra))))
    assert written["contents"][1]["parts"] == [{"text": "No."}]
    assert [loss.kind for loss in losses] == ["reasoning"]


def test_a_late_word_of_the_system_is_told() -> None:
    written, losses = dump(Conversation((system("A"), user("Hi."), system("C"), user(""))))
    assert written["systemInstruction"]["parts"] == [{"text": "A"}]
    assert [content["parts"] for content in written["contents"]] == [[{"text": "Hi."}], [{"text": "C"}]]
    assert [loss.kind for loss in losses] == ["system"]


def test_a_malformed_call_must_be_fitted_first() -> None:
    with pytest.raises(ConversationError, match="adapt"):
        dump(Conversation((assistant(MalformedCall("c1", "oops", "truncated")),)))
