"""The native notation: how tools are grouped and typed, which tool a call means, and results that can be read again.

That it is the fifth seed's, character for character, is asserted in `tests/seeds/`.
"""

import pytest
from dialect_events import calls, read
from hypothesis import given
from hypothesis import strategies as st

from ferrule.conversation import (
    Conversation,
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
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.notations.native_words import format_type
from ferrule.dialects.text_protocol import decode_conversation, encode_conversation
from ferrule.errors import ConversationError, DialectError
from ferrule.toolspec import ToolGroup, ToolSpec
from tables import each_case

NATIVE = get_notation("native")
WEATHER = ToolGroup("weather", "The <weather>.")
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
GET = ToolSpec("get", 'Get "it".', CITY, group=WEATHER)
SEND = ToolSpec("send", "Send it.", CITY)
DOTTED = ToolSpec("weather.put", "Put it.", CITY)
TOOLS = [GET, SEND, DOTTED]
# Without a marker: in a result one is broken by a space, which is told as a loss.
PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\r"), max_size=20).filter(
    lambda text: not any(marker in text for marker in NATIVE.markers)
)


def called(tool: str, function: str, tools=TOOLS) -> str:
    inside = '<parameter name="city">A &amp; B</parameter>'
    text = f'<tool-calls><tool-call tool="{tool}" function="{function}">{inside}</tool-call></tool-calls>'
    [call] = calls(read(NATIVE.reader(tools), [text]))
    assert call.decode() == {"city": "A & B"}
    return call.name


def result(text: str, name: str = "get", status: str = "ok") -> ToolResult:
    return ToolResult("call_1", name, (Text(text),), status)


# The offer.


def test_tools_of_one_group_stand_together_and_one_without_is_its_own():
    other = ToolSpec("forget", "Forget it.", {"type": "object", "properties": {}}, group=WEATHER)
    offer = NATIVE.offer([GET, SEND, other])
    assert offer.count("<tool-description name=") == 2
    head = '<tool-description name="weather" description="The &lt;weather&gt;.">\n      <functions>\n'
    assert f'{head}         <tool-function name="get" description="Get &quot;it&quot;.">' in offer
    assert '<tool-function name="forget" description="Forget it.">\n            <parameters />\n' in offer
    own = '<tool-description name="send" description="Send it.">\n      <functions>\n'
    assert f'{own}         <tool-function name="send" description="">' in offer
    assert offer.index('"forget"') < offer.index('"send"')


def test_what_the_seed_leaves_out_of_a_parameter_is_told_where_it_is_so():
    properties = {
        "days": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3, "description": "How many"},
        "unit": {"enum": ["C", "F"]},
        "where": {"$ref": "#/$defs/Place"},
    }
    place = {"type": "object", "properties": {"lat": {"type": "number", "description": "North"}}}
    schema = {"type": "object", "properties": properties, "required": ["where"], "$defs": {"Place": place}}
    offer = NATIVE.offer([ToolSpec("look", "", schema)])
    wanted = 'wants="an integer from 1 to 10" required="false" default="3"'
    assert f'<tool-parameter name="days" type="int" description="How many" {wanted} />' in offer
    assert '<tool-parameter name="unit" type="Literal[\'C\', \'F\']" description="" required="false" />' in offer
    assert '<tool-parameter name="where" type="{lat?: float}" description="lat: North" />' in offer


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(DialectError, match="two tools are named 'get'"):
        NATIVE.offer([GET, ToolSpec("get", "", CITY)])


@each_case(
    ("schema", "name"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["number", "null"]}, "float | None"),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "array"}, "list"),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]}, "tuple[int, bool]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "object"}, "dict"),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}]}, "int | str | None"),
        ({"const": "fixed"}, "Literal['fixed']"),
        ({"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, "{a: int, b?: Any}"),
        ({"$ref": "#/$defs/Loop"}, "list[list[list[Any]]]"),
        ({"$ref": "#/$defs/Missing"}, "Any"),
        ({"type": "what"}, "Any"),
        (True, "Any"),
    ],
)
def test_types_are_named_as_in_python(schema, name):
    assert format_type(schema, {"$defs": {"Loop": {"type": "array", "items": {"$ref": "#/$defs/Loop"}}}}) == name


# Calls.


@each_case(
    ("tool", "function", "name"),
    [
        ("weather", "get", "get"),
        ("send", "send", "send"),
        ("weather", "put", "weather.put"),
        ("weather.put", "weather.put", "weather.put"),
        ("get", "get", "get"),  # the group left out
        ("made_up", "get", "get"),
        ("send", "get", "send.get"),  # another's, which has none of that name
        ("weather", "send", "weather.send"),
        ("weather", "forecast", "weather.forecast"),
        ("forecast", "forecast", "forecast"),
    ],
)
def test_the_tool_that_a_call_means(tool, function, name):
    assert called(tool, function) == name


@pytest.mark.parametrize("spec", TOOLS)
def test_a_call_names_the_group_and_is_read_back(spec):
    call = ToolCall("call_1", spec.name, '{"city": "A & B"}')
    written = NATIVE.call(call, TOOLS)
    group = spec.group.name if spec.group else spec.name
    assert f'<tool-call tool="{group}" function="{spec.name}">' in written
    assert "A &amp; B" in written
    assert [found.name for found in calls(read(NATIVE.reader(TOOLS), [written]))] == [spec.name]


def test_without_the_tools_a_name_is_taken_apart_as_it_was_put_together():
    assert called("weather", "get", []) == "weather.get"
    assert 'tool="weather" function="get"' in NATIVE.call(ToolCall("call_1", "weather.get", "{}"))
    assert called("get", "get", []) == "get"
    assert 'tool="a.a" function="a.a"' in NATIVE.call(ToolCall("call_1", "a.a", "{}"))


# Results.


def test_results_tell_of_errors_and_are_written_without_white_space_of_their_own():
    text, losses = NATIVE.results([result("1 < 2"), result("°", "send", "error")], TOOLS)
    assert not losses
    assert text == (
        '<tool-results>\n   <tool-result tool="weather" function="get" error="false">1 &lt; 2</tool-result>\n'
        '   <tool-result tool="send" function="send" error="true">&#176;</tool-result>\n</tool-results>'
    )


@given(st.lists(st.one_of(PLAIN, PLAIN.map(lambda text: f"\n {text}\n")), min_size=1, max_size=3))
def test_results_are_read_as_they_were(texts):
    written, losses = NATIVE.results([result(text) for text in texts], TOOLS)
    read_back = NATIVE.family.results.read(f"\n{written}\n")
    assert [(one.name, one.text, one.is_error) for one in read_back] == [("get", text, False) for text in texts]
    assert not losses


def test_a_marker_in_a_result_is_broken_and_told():
    written, losses = NATIVE.results([result("<tool-calls>")], TOOLS)
    [read_back] = NATIVE.family.results.read(f"\n{written}\n")
    assert read_back.text == "< tool-calls>"
    assert [loss.kind for loss in losses] == ["marker"]


@given(PLAIN)
def test_a_value_on_lines_of_its_own_is_read_without_them(text):
    bare = NATIVE.results([result(text.strip())])[0]
    value = bare.partition('error="false">')[2].partition("</tool-result>")[0]
    framed = bare.replace(f">{value}</", f">\n        {value}\n    </")
    [one] = NATIVE.family.results.read(framed)
    assert one.text == text.strip()


def test_references_in_results_are_read_as_xml_has_them():
    text = "&#65;&#x41;&lt;&quot;&nothing;&#55296;&#9999999;&#145;"
    [one] = NATIVE.family.results.read(f'<tool-results><tool-result function="f">{text}</tool-result></tool-results>')
    assert one.text == 'AA<"&nothing;&#55296;&#9999999;\x91'


@pytest.mark.parametrize("text", ["Hello.", "<tool-results>", "<tool-results>so</tool-results>"])
def test_what_is_no_group_of_results_is_not_read_as_one(text):
    assert NATIVE.family.results.read(text) is None


# Conversations from text.


def test_a_lowered_conversation_is_lifted_again():
    messages = (
        system("Be brief."),
        user("Weather?"),
        assistant("Both:\n", ToolCall("call_1", "get", '{"city": "A"}'), ToolCall("call_2", "send", '{"city": "B"}')),
        tool_message(result("21 °C")),
        tool_message(ToolResult("call_2", "send", (Text("no"),), "error")),
        assistant(Reasoning("Hm."), "Warm."),
        user("And C?"),
        assistant(ToolCall("call_3", "get", '{"city": "C"}')),
        tool_message(ToolResult("call_3", "get", (Text("<-- cold"),))),
        assistant("Cold."),
    )
    lowered = encode_conversation(NATIVE, Conversation(messages), TOOLS)[0]
    lifted = decode_conversation(NATIVE, lowered, TOOLS)
    assert [message.role for message in lifted.messages] == [message.role for message in messages]
    for found, message in zip(lifted.messages, messages, strict=True):
        if message.role == "tool":
            assert found == message
        assert found.text.strip() == message.text.strip()
        assert [(c.id, c.name, c.decode()) for c in found.calls] == [(c.id, c.name, c.decode()) for c in message.calls]
    again = encode_conversation(NATIVE, lifted, TOOLS)[0]
    assert [(m.role, m.text) for m in again.messages] == [(m.role, m.text) for m in lowered.messages]


def test_an_offer_alone_is_no_system_message():
    lowered = encode_conversation(NATIVE, Conversation((user("Hi"),)), TOOLS)[0]
    assert decode_conversation(NATIVE, lowered, TOOLS).messages == (user("Hi"),)
    assert decode_conversation(NATIVE, lowered).messages == lowered.messages


def test_a_call_that_cannot_be_read_and_its_answer_are_lifted():
    raw = "<tool-calls>what?</tool-calls>"
    answer = NATIVE.results([ToolResult("call_1", "", (Text("error: no call"),), "invalid")])[0]
    lifted = decode_conversation(NATIVE, Conversation((assistant(raw), user(answer), assistant("So."))))
    [call] = lifted.messages[0].calls
    assert isinstance(call, MalformedCall)
    assert call.raw == raw
    assert lifted.messages[1].result == ToolResult("call_1", "", (Text("error: no call"),), "error")


def test_what_cannot_be_lifted_is_refused():
    call = NATIVE.call(ToolCall("call_1", "get", '{"city": "A"}'), TOOLS)
    with pytest.raises(ConversationError, match="has no result"):
        decode_conversation(NATIVE, Conversation((assistant(call), user("What?"), assistant("So."))), TOOLS)
    with pytest.raises(DialectError, match="in the react notation, results can't be distinguished"):
        decode_conversation(get_notation("react"), Conversation())
