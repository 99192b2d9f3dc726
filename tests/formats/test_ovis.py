"""The second seed's files: they load, save without loss, and say what is wrong with them."""

import json
import re

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
from ferrule.dialects import get_dialect
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.segments import Control, ImageSlot
from ferrule.errors import ConversationError
from ferrule.events import CallFinished, CallMalformed, ReasoningDelta, TextDelta
from ferrule.formats.ovis import dump, load
from ferrule.toolspec import ToolSpec
from tables import each_case

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
THOUGHTS = st.sampled_from(["<think>", "</think>", "<think>\n", "\n</think>\n\n"])
ANSWERS = st.builds(
    lambda pieces, last: "".join(pieces) + last,
    st.lists(st.one_of(PLAIN, THOUGHTS, st.tuples(CALLS, RESULTS).map("".join)), max_size=6),
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


START, END = "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>\n"
MADE_BY_HAND = [
    "<think>\nHm.\n</think>\n\nYes.",
    "<think>Hm.</think>Yes.",
    f"<think>Closer.{CROP}<image>\nStill thinking.</think>\nJames.",
    f"<think>{CROP}<image></think>",
    f"<think>a</think>{CROP}<tool_response>x</tool_response>",
    f"<think>a</think>\n{CROP}\n<image><image><tool_response>x</tool_response> b",
    f"{CROP} then {CROP}{CROP}<tool_response></tool_response>",
    "<think>never closed",
    "no thought</think> here",
    f"<think>open{CROP}<tool_response>x</tool_response> b",
    "<think><think></think> twice</think>",
    "<tool_call>Crop [1, 2</tool_call> and on",
    "<tool_call>\nIdentify\n[ 1, 2.50 ]\n</tool_call><tool_response>y</tool_response>",
]


def laid_out(value, tools=(), images=()):
    """The layout of a row between its frame, and its segments."""
    row = [{"from": "human", "value": "Who?"}, {"from": "gpt", "value": value}]
    layout = get_dialect("ovis").layout(load(row, tools, images), tools if images else ())
    assert layout.text.startswith(START)
    return layout.text.removeprefix(START).removesuffix(END), layout


@given(ANSWERS)
def test_the_layout_of_a_row_is_the_row(value):
    assert laid_out(value)[0] == value.removesuffix(END)


@each_case("value", MADE_BY_HAND)
def test_the_layout_of_a_row_made_by_hand_is_the_row(value):
    text, layout = laid_out(value)
    assert text == value
    row = [{"from": "gpt", "value": value}]
    assert dump(load(row)) == row
    # The results, with the white space before them, and nothing else of the turn are the system's.
    told = "".join(segment.text for segment in layout.segments[4:] if not segment.trained)
    results = re.compile(
        r"\s*(?:<image>)+(?:<tool_response>.*?</tool_response>)?|\s*<tool_response>.*?</tool_response>"
    )
    bad = value.partition("<tool_call>Crop [1, 2</tool_call>")[1]
    assert told.removesuffix("\n") == bad + "".join(results.findall(value))


def test_reasoning_is_marked_by_control_tokens():
    _, layout = laid_out(f"<think>Closer.{CROP}<image>Still.</think>James.")
    controls = [one.text for one in layout.segments if isinstance(one, Control) and one.text]
    assert controls[3:] == ["<think>", "<tool_call>", "</tool_call>", "<image>", "</think>", "<|im_end|>", "\n"]


def test_an_image_result_has_its_slot():
    people, face = Image(b"people"), Image(b"face")
    layout = get_dialect("ovis").layout(load(SEED, images=(people, face)))
    assert [segment.image for segment in layout.segments if isinstance(segment, ImageSlot)] == [people, face]
    whole = "".join("<image>" if isinstance(s, ImageSlot) else s.text for s in layout.segments)
    assert all(turn["value"] in whole for turn in SEED["conversations"])
    assert "<image>" not in layout.text
    assert not layout.losses


@pytest.mark.parametrize("tools", [(), TOOLS])
@given(value=ANSWERS)
def test_a_row_is_loaded_as_the_reader_reads_it(tools, value):
    answered = [message for message in load([{"from": "gpt", "value": value}], tools).messages if message.calls]
    for message in answered:
        layout = get_dialect("ovis").layout(Conversation((message,)), tools)
        written = layout.text.rpartition("<|im_start|>assistant\n")[2].removesuffix(END)
        reader = get_notation("ovis").reader(tools)
        events = reader.feed(written) + reader.close(stopped=True)
        read = [e.call for e in events if isinstance(e, CallFinished)]
        ours = [call for call in message.calls if isinstance(call, ToolCall)]
        assert [(call.name, call.decode()) for call in read] == [(call.name, call.decode()) for call in ours]
        assert sum(isinstance(e, CallMalformed) for e in events) == len(message.calls) - len(ours)


def test_reasoning_goes_on_after_the_result_of_a_call_in_it():
    messages = load([{"from": "gpt", "value": f"<think>Closer.{CROP}<image>Still.</think>James."}]).messages
    assert [message.parts for message in messages[::2]] == [
        (Reasoning("Closer."), messages[0].calls[0]),
        (Reasoning("Still."), Text("James.")),
    ]
    layout = get_dialect("ovis").layout(Conversation(messages[:2]))
    assert layout.opens == "<think>"
    reader = get_notation("ovis").reader(opens=layout.opens)
    events = reader.feed("Still.</think>James.") + reader.close(stopped=True)
    assert [e.text for e in events if isinstance(e, ReasoningDelta | TextDelta)] == ["Still.", "James."]


def test_a_marker_in_a_result_is_broken_and_reported():
    text, layout = laid_out(f"{CROP}<tool_response></think></tool_response>")
    assert text == f"{CROP}<tool_response>< /think></tool_response>"
    assert [loss.kind for loss in layout.losses] == ["marker"]


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


@each_case(
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


@each_case(
    ("messages", "words"),
    [
        ((assistant(Reasoning("</think>")),), "message 0: the text holds </think>"),
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


@pytest.mark.parametrize("arguments", ['{"a": 1e999}', '{"a": NaN}'])
def test_a_number_that_is_not_finite_is_refused(arguments):
    with pytest.raises(ConversationError, match="message 0: the call 'c' has a number that isn't finite"):
        dump(Conversation((assistant(ToolCall("c", "f", arguments)),)))
