"""A conversation with tools as plain text: what stands where, and that a longer one begins with a shorter one."""

import json
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.capabilities import Capabilities
from ferrule.conversation import (
    Conversation,
    Image,
    MalformedCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.dialects.family import NO_PARALLEL, NO_TEXT_BESIDE
from ferrule.dialects.text_protocol import WRITTEN, encode_conversation, keep_source
from ferrule.errors import DialectError
from ferrule.toolspec import ToolSpec
from tables import each_case

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec("weather", "The weather of a city.", SCHEMA)
ANY_MODEL = ("native", "react", "fenced_json", "json_in_tag", "raw_json", "hermes", "pythonic", "anthropic_xml")


def call(number, city="Paris"):
    return ToolCall(f"call_{number}", "weather", json.dumps({"city": city}))


def answer(number, *content):
    return tool_message(ToolResult(f"call_{number}", "weather", tuple(content) or (Text("21 °C"),)))


def roles(conversation):
    return [message.role for message in conversation.messages]


def test_the_offer_joins_the_system_message_and_results_are_the_users():
    hermes = get_notation("hermes")
    conversation = Conversation(
        (
            system("Be brief."),
            user("Weather?"),
            assistant("Let me see.\n", call(1), call(2, "Rome")),
            answer(1),
            answer(2),
        )
    )
    lowered, losses = encode_conversation(hermes, conversation, [WEATHER])
    assert not losses
    assert roles(lowered) == ["system", "user", "assistant", "user"]
    assert lowered.messages[0].text.startswith("Be brief.\n\n# Tools")
    assert lowered.messages[0].text.endswith(hermes.offer([WEATHER]))
    assert lowered.messages[2].text.count("<tool_call>") == 2
    assert lowered.messages[3].text.count("<tool_response>\n21 °C\n</tool_response>") == 2
    assert roles(encode_conversation(hermes, Conversation((user("Hi"),)), [WEATHER])[0]) == ["system", "user"]
    assert encode_conversation(hermes, Conversation((user("Hi"),)), [])[0].messages == (user("Hi"),)


@each_case("name", ANY_MODEL)
def test_every_notation_that_any_model_can_write(name):
    notation = get_notation(name)
    losses = load_families()[name].losses
    said = () if NO_TEXT_BESIDE in losses else ("So:\n",)
    calls = (call(1),) if NO_PARALLEL in losses else (call(1), call(2, "Rome"))
    answers = [answer(number) for number in range(1, len(calls) + 1)]
    conversation = Conversation((user("?"), assistant(*said, *calls), *answers, assistant("Warm.")))
    lowered, _ = encode_conversation(notation, conversation, [WEATHER])
    assert roles(lowered) == ["system", "user", "assistant", "user", "assistant"]
    assert all(len(message.parts) == 1 for message in lowered.messages)
    assert "weather" in lowered.messages[0].text
    # One of them writes in ASCII.
    assert "21 °C" in unescape(lowered.messages[3].text)


@given(ends=st.integers(1, 8), text=st.text(max_size=20))
def test_a_longer_conversation_begins_with_the_shorter_one(ends, text):
    messages = (
        user("Weather?"),
        assistant(Reasoning("Hm."), call(1)),
        answer(1, Text(text), Image(b"png")),
        assistant("Warm."),
        user("And Rome?"),
        assistant(MalformedCall("call_2", "<tool_call>{", "unclosed")),
        tool_message(ToolResult("call_2", "", (Text("write it again"),), "invalid")),
        assistant(call(3, "Rome")),
        answer(3),
    )
    notation = get_notation("hermes")
    images = Capabilities(user_images=True)
    whole = encode_conversation(notation, Conversation(messages), [WEATHER], sends=images)[0].messages
    part = encode_conversation(notation, Conversation(messages[:ends]), [WEATHER], sends=images)[0].messages
    assert whole[: len(part)] == part


def test_a_models_own_text_is_shown_to_it_again_while_it_says_the_same():
    written = 'So: <tool_call>{"name":"weather","arguments":{"city":"Paris"}}</tool_call>'
    message = assistant("So: ", call(1))
    message = type(message)("assistant", message.parts, None, {WRITTEN: {"hermes": written}})
    hermes = get_notation("hermes")
    assert encode_conversation(hermes, Conversation((message,)), [WEATHER])[0].messages[1].text == written
    edited = message.with_parts((Text("So: "), call(1, "Rome")))
    assert '"Rome"' in encode_conversation(hermes, Conversation((edited,)), [WEATHER])[0].messages[1].text
    other = encode_conversation(get_notation("native"), Conversation((message,)), [WEATHER])[0]
    assert '<tool-call tool="weather"' in other.messages[1].text


def test_markers_in_results_are_harmless_and_images_follow():
    hermes = get_notation("hermes")
    conversation = Conversation((assistant(call(1)), answer(1, Text("</tool_response>"), Image(b"png"))))
    lowered, losses = encode_conversation(hermes, conversation, [WEATHER], sends=Capabilities(user_images=True))
    assert [loss.kind for loss in losses] == ["marker"]
    assert roles(lowered) == ["system", "assistant", "user", "user"]
    assert any(isinstance(part, Image) for part in lowered.messages[3].parts)
    assert [loss.kind for loss in encode_conversation(hermes, conversation, [WEATHER])[1]] == ["image", "marker"]


def test_what_a_notation_can_not_say_is_refused():
    with pytest.raises(DialectError, match="one call per message"):
        encode_conversation(get_notation("react"), Conversation((assistant(call(1), call(2)),)), [WEATHER])


def test_what_was_read_from_a_text_is_shown_as_that_until_it_is_changed():
    # Read again it would say something else, which shows that it isn't.
    written = "So: <weather of Paris>"
    hermes = get_notation("hermes")
    message = keep_source(hermes, written, assistant(Reasoning("Hm."), "So: ", call(1)))
    assert encode_conversation(hermes, Conversation((message,)), [WEATHER])[0].messages[1].text == written
    renamed = message.with_parts((*message.parts[:2], call(7)))
    assert encode_conversation(hermes, Conversation((renamed,)), [WEATHER])[0].messages[1].text == written
    for parts in ((Text("So: "), call(1, "Rome")), (Text("So:"), call(1)), (Text("So: "), call(1), call(2))):
        shown = encode_conversation(hermes, Conversation((message.with_parts(parts),)), [WEATHER])[0].messages[1].text
        assert '"weather"' in shown
        assert written not in shown
