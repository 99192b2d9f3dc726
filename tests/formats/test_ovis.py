"""The second seed's files: they load, save without loss, and say what is wrong with them."""

import json

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
from ferrule.formats.ovis import dump, load
from ferrule.toolspec import ToolSpec

CROP = "<tool_call>Crop [100,100,300,400]</tool_call>"
SEED = {
    "image": "people.png",
    "conversations": [
        {"from": "human", "value": "<image>\nWho is this?"},
        {
            "from": "gpt",
            "value": f"Let me see. {CROP}<image>\nThe person is wearing blue."
            "<tool_call>Identify [100,100,300,400]</tool_call><tool_response>James</tool_response>\nThis is James.",
        },
    ],
}
BOX = {"type": "number"}
TOOLS = (
    ToolSpec("Crop", "Crop.", {"type": "object", "properties": dict.fromkeys(("x", "y", "x2", "y2"), BOX)}),
    ToolSpec("Identify", "Identify.", {"type": "object", "properties": {"box": {"type": "array"}}}),
)

PLAIN = st.text(alphabet="ab<>/ \n", max_size=8)
VALUES = st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4), max_size=4)
CALLS = st.builds(
    lambda name, values, space: f"<tool_call>{space}{name} {values}</tool_call>",
    st.sampled_from(["Crop", "identify_2"]),
    VALUES.map(json.dumps) | st.sampled_from(["", "[1", "2 + 2", "[1] x", "[[1, 2]]"]),
    st.sampled_from(["", "\n"]),
).filter(lambda text: text.count("</tool_call>") == 1)
RESULTS = st.builds(
    lambda space, images, text: space + images * "<image>" + ("" if text is None else text),
    st.sampled_from(["", " ", "\n"]),
    st.integers(0, 2),
    st.none() | PLAIN.map(lambda text: f"<tool_response>{text}</tool_response>"),
)
ANSWERS = st.builds(
    lambda pieces, last: "".join(pieces) + last,
    st.lists(st.one_of(PLAIN, st.tuples(CALLS, RESULTS).map("".join)), max_size=5),
    st.sampled_from(["", "", "<tool_call>Crop [1,"]),
)
KEYS = st.dictionaries(st.sampled_from(["id", "weight", "image"]), st.integers(), max_size=2)


@st.composite
def files(draw):
    turns = []
    for name in draw(st.lists(st.sampled_from(["human", "gpt", "system"]), max_size=5)):
        value = draw(ANSWERS if name == "gpt" else PLAIN | st.just("<image>\nLook <tool_call>here"))
        turns.append({"from": name, "value": value, **draw(KEYS)})
    return (draw(st.booleans()) and turns) or {"conversations": turns, **(draw(KEYS) if turns else {})}


@given(files())
def test_saving_what_was_loaded_gives_the_same_file(data):
    assert dump(load(json.loads(json.dumps(data)))) == data


@given(files())
def test_tools_and_images_change_what_is_loaded_and_not_what_is_saved(data):
    outer = data if isinstance(data, dict) else {"conversations": data}
    pictured = {"image": "people.png", **outer}
    assert dump(load(pictured, TOOLS, [Image(b"1"), Image(b"2")])) == pictured or not outer["conversations"]


def test_a_turn_becomes_messages_with_calls_and_results():
    conversation = load(SEED)
    conversation.check()
    question, call, image, then, text, answer = conversation.messages
    assert question.text == "<image>\nWho is this?"
    assert call.parts == (
        Text("Let me see. "),
        ToolCall("call_1", "Crop", '{"values": [100,100,300,400]}', CROP),
    )
    assert image.result == ToolResult("call_1", "Crop", (Text("<image>"),))
    assert [type(part) for part in then.parts] == [Text, ToolCall]
    assert text.result == ToolResult("call_2", "Identify", (Text("James"),))
    assert answer.parts == (Text("\nThis is James."),)


def test_values_are_bound_to_the_parameters_of_the_tools_given():
    calls = [call for message in load(SEED, TOOLS).messages for call in message.calls]
    assert [json.loads(call.arguments) for call in calls] == [
        {"x": 100, "y": 100, "x2": 300, "y2": 400},
        {"box": [100, 100, 300, 400]},
    ]
    (_, answer) = load(
        [{"from": "human", "value": "?"}, {"from": "gpt", "value": CROP.replace("]", ",5]")}], TOOLS
    ).messages
    assert answer.calls[0].kind == "too_many_arguments"


def test_images_take_the_places_of_their_markers():
    people, face = Image(b"people"), Image(b"face")
    conversation = load(SEED, images=(people, face))
    assert conversation.messages[0].parts == (people, Text("\nWho is this?"))
    assert conversation.messages[2].result.content == (face,)
    assert dump(conversation) == SEED


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("<tool_call>Crop [1,</tool_call>", "invalid_json"),
        ("<tool_call>Calculate 2 + 2</tool_call>", "invalid_json"),
        ("<tool_call>[1]</tool_call>", "no_name"),
        ("<tool_call>Crop [1, 2", "truncated"),
    ],
)
def test_what_cannot_be_read_is_kept_and_answered(written, kind):
    result = "" if kind == "truncated" else "<tool_response>error: write it again</tool_response>"
    data = {"conversations": [{"from": "gpt", "value": written + result}]}
    conversation = load(data)
    assert conversation.messages[0].parts == (MalformedCall("call_1", written, kind),)
    if result:
        assert conversation.messages[1].result.status == "error"
    assert dump(conversation) == data


def test_a_result_that_shows_a_call_is_a_result():
    value = f"{CROP}<tool_response>write {CROP}</tool_response>done{CROP}<image>"
    conversation = load({"conversations": [{"from": "gpt", "value": value}]})
    assert [len(message.calls) for message in conversation.messages] == [1, 0, 1, 0]
    assert conversation.messages[1].result.text == f"write {CROP}"


def test_a_conversation_made_here_is_saved():
    crop = ToolCall("a", "Crop", '{"x": 1, "y": 2.5}', '<tool_call>\n{"name": "Crop"}\n</tool_call>')
    made = Conversation(
        (
            system("Look."),
            user(Image(b"1"), "Who?"),
            assistant("See: ", crop, ToolCall("b", "Name", "")),
            tool_message(ToolResult("a", "Crop", (Image(b"2"),))),
            tool_message(ToolResult("b", "Name", (Text("James"), Text("Jim")))),
            assistant("It's James."),
        )
    )
    value = "See: <tool_call>Crop [1,2.5]</tool_call><image>"
    value += "<tool_call>Name</tool_call><tool_response>James\nJim</tool_response>It's James."
    assert dump(made, ["1.png"]) == {
        "image": "1.png",
        "conversations": [
            {"from": "system", "value": "Look."},
            {"from": "human", "value": "<image>Who?"},
            {"from": "gpt", "value": value},
        ],
    }
    assert dump(made, ["1.png", "2.png"])["image"] == ["1.png", "2.png"]
    with pytest.raises(ConversationError, match="give paths"):
        dump(made)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (7, "an object with a list"),
        ({"conversations": 7}, "an object with a list"),
        ([7], "turn 0 must be an object"),
        ([{"from": "bot", "value": ""}], "turn 0: from must be human, gpt or system, not 'bot'"),
        ([{"from": "gpt", "value": ["x"]}], "turn 0: value must be a string"),
        ([{"from": "gpt", "value": "It is <image>"}], "turn 0: <image> at character 6 of a text"),
        ([{"from": "gpt", "value": "<tool_response>x</tool_response>"}], "turn 0: <tool_response> at character 0"),
        ([{"from": "gpt", "value": f"{CROP}<tool_response>x"}], "turn 0: <tool_response>"),
    ],
)
def test_a_file_of_something_else_is_refused(data, words):
    with pytest.raises(ConversationError, match=words):
        load(data)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ((assistant(Reasoning("hm")),), "message 0: the Ovis format has no Reasoning"),
        ((assistant("<image>"),), "message 0: the text holds <image>"),
        ((user(Image(b"1")), Message("user", (Reasoning("x"),))), "message 1: the Ovis format has no Reasoning"),
        ((assistant(ToolCall("a", "Crop", "[")),), "the arguments of 'a' are not JSON"),
        ((assistant(ToolCall("a", "Crop", "[1]")),), "the arguments of 'a' are no object"),
        ((assistant(ToolCall("a", "Crop it", "{}")),), "the call 'a' has a name or value"),
        ((assistant(ToolCall("a", "Crop", '{"x": "</tool_call>"}')),), "the call 'a' has a name or value"),
        ((assistant(MalformedCall("a", "{x", "invalid_json")),), "'a' was not written in the Ovis format"),
        ((tool_message(ToolResult("a", "Crop", ())),), "the result for 'a' follows no call"),
        (
            (
                assistant(ToolCall("a", "Crop", "{}")),
                tool_message(ToolResult("a", "Crop", (Text("</tool_response>"),))),
            ),
            "a result holds </tool_response>",
        ),
    ],
)
def test_what_the_format_cannot_hold_is_refused(messages, words):
    with pytest.raises(ConversationError, match=words):
        dump(Conversation(messages))
