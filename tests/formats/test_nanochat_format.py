"""The first seed's files: they load, save without loss, and say what is wrong with them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.conversation import Conversation, Image, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.dialects import get_dialect
from ferrule.errors import ConversationError
from ferrule.formats.nanochat import dump, load, read_jsonl
from tables import each_case

SEED = {
    "messages": [
        {"role": "user", "content": "What is 12 * 34?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see: "},
                {"type": "python", "text": "12 * 34"},
                {"type": "python_output", "text": "408"},
                {"type": "text", "text": "12 × 34 is 408."},
            ],
        },
    ]
}
EXTRAS = st.dictionaries(st.text(max_size=5).filter(lambda k: k not in ("role", "content", "messages")), st.integers())


def _part(kind):
    return st.fixed_dictionaries({"type": st.just(kind), "text": st.text(max_size=10)})


@st.composite
def _contents(draw, role):
    if draw(st.booleans()):
        return draw(st.text(max_size=20))
    if role != "assistant":
        return draw(st.lists(_part("text"), max_size=3))
    parts = []
    open_calls = 0
    for kind in draw(st.lists(st.sampled_from(["text", "python", "python_output"]), max_size=8)):
        if kind == "python_output" and not open_calls:
            continue
        open_calls += {"python": 1, "python_output": -1}.get(kind, 0)
        parts.append(draw(_part(kind)))
    return parts


@st.composite
def files(draw):
    roles = draw(st.lists(st.sampled_from(["system", "user", "assistant"]), max_size=6))
    entries = [{"role": role, "content": draw(_contents(role)), **draw(EXTRAS)} for role in roles]
    return {"messages": entries, **(draw(EXTRAS) if entries else {})}


@given(files())
def test_saving_what_was_loaded_gives_the_same_file(data):
    saved = dump(load(json.loads(json.dumps(data))))
    assert saved == data


def test_a_turn_becomes_messages_with_calls_and_results():
    conversation = load(SEED)
    conversation.check()
    question, call, result, answer = conversation.messages
    assert question.text == "What is 12 * 34?"
    assert call.parts == (
        Text("Let me see: "),
        ToolCall("call_1", "calculator", '{"expression": "12 * 34"}'),
    )
    assert (result.result.call_id, result.result.text, result.result.status) == ("call_1", "408", "ok")
    assert answer.text == "12 × 34 is 408."
    layout = get_dialect("nanochat").layout(conversation)
    assert layout.text.endswith(
        "Let me see: <|python_start|>12 * 34<|python_end|><|output_start|>408<|output_end|>"
        "12 × 34 is 408.<|assistant_end|>"
    )


def test_an_output_that_begins_with_error_is_a_failed_call():
    data = json.loads(json.dumps(SEED).replace('"408"', '"error: division by zero"'))
    assert load(data).messages[2].result.is_error


def test_a_conversation_made_here_is_saved():
    conversation = load(SEED)
    made = Conversation(tuple(type(m)(m.role, m.parts) for m in conversation.messages))
    assert dump(made) == SEED
    assert dump(Conversation((user("Hi"), assistant("Hello")))) == {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
        ]
    }


@each_case(
    ("data", "message"),
    [
        ([], 'object with a list "messages"'),
        ({"messages": ["Hi"]}, "message 0 must be an object"),
        ({"messages": [{"role": "robot", "content": ""}]}, "message 0: the role must be"),
        ({"messages": [{"role": "user", "content": 5}]}, "message 0: the content must be"),
        ({"messages": [{"role": "user", "content": [5]}]}, "message 0, part 0: a part is an object"),
        ({"messages": [{"role": "user", "content": [{"type": "python", "text": ""}]}]}, "only an assistant has python"),
        ({"messages": [{"role": "assistant", "content": [{"type": "image", "text": ""}]}]}, "part 0: a part has"),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "python_output", "text": "5"}]}]},
            "part 0: an output without a python part",
        ),
    ],
)
def test_a_broken_file_is_refused_by_place(data, message):
    with pytest.raises(ConversationError, match=message):
        load(data)


def test_what_the_format_cannot_hold_is_refused():
    for message in (
        assistant(ToolCall("call_1", "search", "{}")),
        assistant(Image(b"png")),
        user("See:", Image(b"png")),
    ):
        with pytest.raises(ConversationError, match="has no part for"):
            dump(Conversation((message,)))
    for arguments in ("{}", '{"expression": 5}', '{"expression": "5", "digits": 2}', "{"):
        with pytest.raises(ConversationError, match="call_1"):
            dump(Conversation((assistant(ToolCall("call_1", "calculator", arguments)),)))
    with pytest.raises(ConversationError, match="no assistant's turn"):
        dump(Conversation((tool_message(ToolResult("call_1", "calculator", (Text("5"),))),)))


def test_lines_are_read_and_a_bad_one_is_named(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text(f"{json.dumps(SEED)}\n\n{json.dumps(SEED)}\n", encoding="utf-8")
    assert [dump(conversation) for conversation in read_jsonl(path)] == [SEED, SEED]
    path.write_text(f"{json.dumps(SEED)}\nnot JSON\n", encoding="utf-8")
    with pytest.raises(ConversationError, match=r"data\.jsonl:2: not JSON"):
        list(read_jsonl(path))
    path.write_text('{"messages": 5}\n', encoding="utf-8")
    with pytest.raises(ConversationError, match=r"data\.jsonl:1: a nanochat conversation"):
        list(read_jsonl(path))


OFFER = [{"name": "note", "description": "", "parameters": {"type": "object", "properties": {"text": {}}}}]


def make_call(text: str) -> dict[str, object]:
    answer = {"role": "assistant", "content": [{"type": "python", "text": text}]}
    return {"messages": [{"role": "user", "content": "Hi"}, answer], "tools": OFFER}


@pytest.mark.parametrize(
    "text",
    [
        'note(text="a \\"b\\" \\\\ c\\nd", count=2, share=0.5, on=True, at=None, tags=["x", "y"])',
        "note()",
        'note(text="carriage return\\r, tab\\t, bell\\u0007, é")',
    ],
)
def test_calls_of_offered_tools_are_kept(text):
    data = make_call(text)
    loaded = load(data)
    assert loaded.messages[1].calls[0].name == "note"
    assert dump(loaded) == data


def test_a_nested_object_is_refused():
    conversation = load(make_call("note(text=[1, {'a': 2}])"))
    with pytest.raises(ConversationError, match="no nested objects in arguments"):
        dump(conversation)


@pytest.mark.parametrize(
    "text",
    ["note(text={1, 2})", "note(text=b'x')", "note(text={[]: 1})", "note(count=1e999)", f"note(count={'-' * 3000}1)"],
)
def test_a_call_whose_arguments_are_no_json_is_refused_by_place(text):
    with pytest.raises(ConversationError, match=r"message 1, part 0: .* is no call of 'note' with keywords"):
        load(make_call(text))
