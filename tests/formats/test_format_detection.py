"""A file's format is told by its own shape, and by nothing else."""

import json

import pytest

from ferrule.conversation import Conversation, Image, Message, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.errors import ConversationError
from ferrule.formats.conversation_json import to_json
from ferrule.formats.detection import FORMATS, detect_format, dump, load, load_row
from tables import each_case

CALL = ToolCall("call_1", "calculator", '{"expression": "12 * 34"}')
CONVERSATION = Conversation(
    (
        user("What is 12 * 34?"),
        assistant(CALL),
        tool_message(ToolResult("call_1", "calculator", (Text("408"),))),
        assistant("It is 408."),
    )
)


def bare(conversation: Conversation) -> list[object]:
    """What every format has a place for: roles, texts, names and values."""
    return [
        (message.role, message.text, [(call.name, values(call)) for call in message.calls], answers(message))
        for message in conversation.messages
    ]


def values(call: object) -> list[object]:
    assert isinstance(call, ToolCall)
    (held,) = call.decode().values()
    return held if isinstance(held, list) else [held]


def answers(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, ToolResult)]


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_recognised_and_read(name: str) -> None:
    data, losses = dump(CONVERSATION, name)
    data = json.loads(json.dumps(data))
    assert losses == []
    assert detect_format(data) == name
    assert bare(load(data)) == bare(load(data, name)) == bare(CONVERSATION)


def _said(content: object, **keys: object) -> dict[str, object]:
    return {"role": "assistant", "content": content, **keys}


@each_case(
    ("data", "name"),
    [
        (to_json(Conversation()), "ferrule"),
        ([], "nanochat"),
        ({"messages": []}, "nanochat"),
        ([{"role": "user", "content": "Hi"}, _said([{"type": "text", "text": "Ho"}])], "nanochat"),
        ([_said([{"type": "python", "text": "1"}])], "nanochat"),
        ([{"role": "developer", "content": "Be brief."}], "openai"),
        ([_said(None, tool_calls=[])], "openai"),
        ([_said("Ho", reasoning_content="Hm.")], "openai"),
        ([_said([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}])], "openai"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "openai"),
        ({"messages": [], "tools": [{"type": "function", "function": {}}]}, "openai"),
        ({"messages": [], "tools": [{"name": "x", "input_schema": {}}]}, "anthropic"),
        ({"messages": [], "system": "Be brief."}, "anthropic"),
        ([_said([{"type": "thinking", "thinking": "Hm.", "signature": "s"}])], "anthropic"),
        ([_said([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}])], "anthropic"),
        ([_said([{"type": "text", "text": "x", "cache_control": {}}], tool_calls=[])], "openai"),
        ([{"type": "message", "role": "user", "content": "Hi"}], "openai-responses"),
        ([{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}], "openai-responses"),
        ([{"role": "developer", "content": "x"}, {"type": "reasoning", "summary": []}], "openai-responses"),
        ([{"type": "message", "role": "developer", "content": "Be brief."}], "openai-responses"),
        ([_said([{"type": "refusal", "refusal": "No."}], type="message")], "openai-responses"),
        ([{"type": "function_call_output", "call_id": "c", "output": "x"}], "openai-responses"),
        ({"model": "m", "input": "Hi"}, "openai-responses"),
        ({"object": "response", "output": []}, "openai-responses"),
        ([_said([{"type": "text", "text": "x"}], type="message")], "nanochat"),
        ([_said([{"type": "tool_use", "id": "x"}], type="message")], "anthropic"),
        ({"conversations": []}, "ovis"),
        ([{"from": "human", "value": "Hi"}], "ovis"),
    ],
)
def test_what_tells_a_format(data: object, name: str) -> None:
    assert detect_format(data) == name


@pytest.mark.parametrize("data", [7, None, "x", {}, {"messages": 7}, {"turns": []}, {"conversations": {}}])
def test_what_looks_like_none_is_refused_with_what_was_looked_for(data: object) -> None:
    with pytest.raises(ConversationError, match='a list "messages" or "conversations"'):
        load(data)


def test_what_looks_like_two_is_refused_with_both_reasons() -> None:
    mixed = [_said(None, tool_calls=[]), _said([{"type": "tool_use", "id": "x"}])]
    with pytest.raises(ConversationError) as refused:
        load(mixed)
    assert 'anthropic (message 1 has a part of type "tool_use") and openai (message 0 has no content)' in str(
        refused.value
    )


def test_the_reason_of_the_format_that_it_looks_like_is_told() -> None:
    with pytest.raises(ConversationError, match=r"turn 0: from must be human.* \(read as ovis"):
        load([{"from": "bot", "value": "x"}])
    with pytest.raises(ConversationError, match="message 0: the role must be system, user or assistant"):
        load([{"role": "robot", "content": "x"}])
    with pytest.raises(ConversationError, match=r"message 0: the role must be.*[^)]$"):
        load([{"role": "robot", "content": "x"}], "nanochat")


def test_a_format_that_is_not_known_is_refused() -> None:
    for use in (load, dump):
        with pytest.raises(
            ConversationError,
            match="unknown format 'word'; expected one of ferrule, openai, openai-responses, anthropic",
        ):
            use(CONVERSATION if use is dump else [], "word")


def test_what_a_format_cannot_hold_is_a_loss_or_refused() -> None:
    shown = Conversation((user(Image(b"x", "image/tiff")), assistant("A picture.")))
    assert [loss.kind for loss in dump(shown, "anthropic")[1]] == ["image"]
    with pytest.raises(ConversationError, match="Image"):
        dump(shown, "nanochat")


def test_one_call_gives_a_rows_conversation_its_tools_and_what_it_ignores() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    offered = {"name": "weather", "description": "The weather.", "parameters": schema}
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho", "weight": 0, "trained": False}]
    row = load_row({"messages": said, "tools": [offered], "source": "x"})
    assert row.conversation == load({"messages": said, "tools": [offered], "source": "x"})
    assert [(spec.name, spec.description, spec.parameters) for spec in row.tools] == [
        ("weather", "The weather.", schema)
    ]
    assert row.ignored == ("weight of message 1",)
    assert not row.conversation.messages[1].is_trained
    assert load_row(said[:1], "openai").tools == ()
    with pytest.raises(ConversationError, match=r"tools\[0\] is not a function"):
        load_row({"messages": said, "tools": [{"type": "web_search"}]}, "openai")
    with pytest.raises(ConversationError, match="unknown format"):
        load_row(said, "word")
