"""The families of 2026: what their models write, and what is written for them."""

from __future__ import annotations

import json

import pytest
from dialect_events import calls, check_spans, joined, parts, read

from ferrule.conversation import (
    Conversation,
    MalformedCall,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects.catalogue import get_dialect, get_notation
from ferrule.dialects.segments import Content, Control
from ferrule.errors import DialectError
from ferrule.events import CallFinished, ReaderEvent
from ferrule.toolspec import ToolSpec
from tables import each_case

DSML, GCML = "｜DSML｜", "｜GCML｜"
BEAM = " to=look_up<|channel|>analysis <|constrain|>xml<|message|>"
TOOLS = [
    ToolSpec(
        "look_up",
        "Look something up.",
        {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}},
    ),
    ToolSpec("stop", "Stop.", {"type": "object", "properties": {}}),
    ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}}),
]
ARGUMENTS = {"text": "5 < 6", "count": 2}


def tag(mark: str, section: str) -> str:
    """A call in tags that begin with a mark."""
    return (
        f'<{mark}{section}>\n<{mark}invoke name="look_up">\n<{mark}parameter name="text" string="true">5 < 6'
        f'</{mark}parameter>\n<{mark}parameter name="count" string="false">2</{mark}parameter>\n</{mark}invoke>\n'
        f"</{mark}{section}>"
    )


def plamo(name: str) -> str:
    return f"<|plamo:{name}:plamo|>"


ONE = {
    "deepseek_v41": tag(f"{DSML} ", "calls"),
    "gigachat35": tag(GCML, "tool_calls"),
    "iquest_q1": (
        "<iquest_tool_call>look_up<arg_key>text</arg_key><arg_value>5 < 6</arg_value><arg_key>count</arg_key>"
        "<arg_value>2</arg_value></iquest_tool_call>"
    ),
    "solar_open2": (
        "<|tool_call:start|>look_up\n<|tool_arg:start|>text<|tool_arg:value|>5 < 6<|tool_arg:end|>\n"
        "<|tool_arg:start|>count<|tool_arg:value|>2<|tool_arg:end|>\n<|tool_call:end|>"
    ),
    "openpangu_v2": (
        f'<|tool_call_start|>[{{"name": "look_up", "arguments": {json.dumps(ARGUMENTS)}}}]<|tool_call_end|>'
    ),
    "plamo3": (
        f"{plamo('begin_tool_requests')}{plamo('begin_tool_request')}{plamo('begin_tool_name')}look_up"
        f"{plamo('end_tool_name')}{plamo('begin_tool_arguments')}<|plamo:constrain|>json<|plamo:msg|>"
        f"{json.dumps(ARGUMENTS)}{plamo('end_tool_arguments')}{plamo('end_tool_request')}{plamo('end_tool_requests')}"
    ),
    "beam": (
        f'{BEAM}<rfl:parameter name="text">\n5 < 6\n</rfl:parameter>\n<rfl:parameter name="count">\n2\n'
        "</rfl:parameter><|call|>"
    ),
    "cwm": f"<tool: look_up>\n{json.dumps(ARGUMENTS)}\n</tool>",
    "glm4": f"<|assistant|>look_up\n{json.dumps(ARGUMENTS)}",
}


def read_of(name: str, text: str, tools: list[ToolSpec] = TOOLS) -> list[ReaderEvent]:
    """The events of a text, which are the same in pieces of one character."""
    whole = read(get_notation(name).reader(tools), [text])
    check_spans(whole, text)
    assert joined(read(get_notation(name).reader(tools), text)) == joined(whole)
    return whole


def get_parts(name: str, text: str) -> list[Part]:
    """The parts, without the text of calls."""
    return [
        ToolCall(part.id, part.name, part.arguments) if isinstance(part, ToolCall) else part
        for part in parts(read_of(name, text))
    ]


@each_case("name", ONE)
def test_a_call_is_written_and_read(name: str) -> None:
    call = ToolCall("call_1", "look_up", json.dumps(ARGUMENTS))
    assert get_notation(name).call(call, TOOLS) == ONE[name]
    [found] = calls(read_of(name, ONE[name]))
    assert (found.name, found.decode()) == ("look_up", ARGUMENTS)
    [event] = [event for event in read_of(name, ONE[name]) if isinstance(event, CallFinished)]
    assert not event.repairs


@each_case("name", ONE)
def test_a_call_without_arguments(name: str) -> None:
    written = get_notation(name).call(ToolCall("call_1", "stop", "{}"), TOOLS)
    assert [(call.name, call.decode()) for call in calls(read_of(name, written))] == [("stop", {})]


@each_case("name", sorted(set(ONE) - {"glm4"}))
def test_a_call_that_is_cut_off_is_no_call(name: str) -> None:
    cut = ONE[name].replace("2", "2\x00").partition("\x00")[0]
    assert calls(read_of(name, cut)) == []
    assert isinstance(parts(read_of(name, cut))[-1], MalformedCall)


@pytest.mark.parametrize(
    ("name", "text", "thought"),
    [
        ("solar_open2", "<|think:start|>So.<|think:end|>", "So."),
        ("plamo3", f"{plamo('begin_think')}So.{plamo('end_think')}", "So."),
        ("iquest_q1", "<think>So.</think>", "So."),
        ("gigachat35", "<think>So.</think>\n\n", "So."),
        ("deepseek_v41", "<think>So.</think>\n\n", "So."),
        ("beam", "<|channel|>analysis<|message|>So.<|end|><|start|>assistant", "So."),
    ],
)
def test_reasoning_comes_before_a_call(name: str, text: str, thought: str) -> None:
    first, second = get_parts(name, text + ONE[name])
    assert first == Reasoning(thought)
    assert isinstance(second, ToolCall)


def test_each_version_of_deepseeks_tags_is_read_by_the_other() -> None:
    for name, other in (("deepseek_v4", "deepseek_v41"), ("deepseek_v41", "deepseek_v4")):
        written = get_notation(other).call(ToolCall("call_1", "look_up", json.dumps(ARGUMENTS)), TOOLS)
        assert [call.decode() for call in calls(read_of(name, written))] == [ARGUMENTS]


def test_a_json_object_in_deepseeks_tags_is_read() -> None:
    text = f'<{DSML} calls>\n<{DSML} invoke name="look_up">\n{json.dumps(ARGUMENTS)}\n</{DSML} invoke>\n</{DSML} calls>'
    assert [call.decode() for call in calls(read_of("deepseek_v41", text))] == [ARGUMENTS]


def test_the_beginning_of_a_marker_inside_a_value_is_text() -> None:
    text = ONE["solar_open2"].replace("5 < 6", "a <|tool_arg: b <|tool_arg:end")
    assert calls(read_of("solar_open2", text))[0].decode()["text"] == "a <|tool_arg: b <|tool_arg:end"


def test_blanks_of_a_string_are_kept() -> None:
    text = ONE["iquest_q1"].replace("5 < 6", " 5 ")
    assert calls(read_of("iquest_q1", text))[0].decode()["text"] == " 5 "


def test_the_words_before_arguments_may_be_missing() -> None:
    text = ONE["plamo3"].replace("<|plamo:constrain|>json<|plamo:msg|>", "")
    assert calls(read_of("plamo3", text))[0].decode() == ARGUMENTS


@pytest.mark.parametrize("end", ["<|end|>", "<|call|>", ""])
def test_a_message_to_a_tool_without_tags_is_a_call_without_arguments(end: str) -> None:
    text = f"{BEAM.replace('look_up', 'stop')}{end}"
    assert [(call.name, call.decode()) for call in calls(read_of("beam", text))] == [("stop", {})]
    events = read(get_notation("beam").reader(TOOLS), [BEAM], stopped=False)
    assert calls(events) == [], "it may be cut off"


@each_case(
    ("text", "found"),
    [
        ("<tool: function>\nbash grep -n 'a b' *.py\n</tool>", ("bash", {"command": "grep -n 'a b' *.py"})),
        ("<tool: bash>\ncd src\n ls\n</tool>", ("bash", {"command": "cd src\n ls"})),
        ("<tool: bash>ls -l</tool>", ("bash", {"command": "ls -l"})),
        ("<tool: bash ls -l </tool>", ("bash", {"command": "ls -l"})),
        ('<tool: look_up>{"text": "a"}</tool>', ("look_up", {"text": "a"})),
        ('<tool: look_up>\n{"text": "</tool>"}\n</tool>', ("look_up", {"text": "</tool>"})),
        ("<tool: look_up>\n{'text': 'a'}\n</tool>", ("look_up", {"text": "a"})),
        ("<tool: stop>\n</tool>", ("stop", {})),
        ("<tool: function>\nstop\n</tool>", ("stop", {})),
    ],
)
def test_a_block_contains_a_command_or_json(text: str, found: tuple[str, dict[str, str]]) -> None:
    assert [(call.name, call.decode()) for call in calls(read_of("cwm", text))] == [found]


def test_a_mention_of_a_block_is_text() -> None:
    for text in ("Write <tool: bash> and then\nthe command.", "<tool:>", "A <tool: bash", "See <tool: bash> {x}"):
        assert parts(read_of("cwm", text)) == [Text(text)]


@each_case("command", ["ls -l", "{ ls; }", " ls", "ls\n", "", "echo '</tool>'", '"quoted"', "a\n\nb"])
def test_any_command_is_written_and_read(command: str) -> None:
    call = ToolCall("call_1", "bash", json.dumps({"command": command}))
    written = get_notation("cwm").call(call, TOOLS)
    assert [call.decode() for call in calls(read_of("cwm", written))] == [{"command": command}]


def test_a_name_that_ends_the_tag_is_refused() -> None:
    with pytest.raises(DialectError, match="can't express"):
        get_notation("cwm").call(ToolCall("call_1", "a>b", "{}"))


def test_text_after_a_name_is_no_call() -> None:
    for text in ("look_up\nis a tool.", "look_up", "other\n{}", "Hello."):
        assert parts(read_of("glm4", text)) == [Text(text)]
    assert parts(read_of("glm4", "\nHello.")) == [Text("Hello.")], "text is under an empty name"


def test_the_turns_of_new_families() -> None:
    call, result = ToolCall("1", "stop", "{}"), ToolResult("1", "stop", (Text("DONE"),))
    messages = (system("SYS"), user("USER"), assistant(call), tool_message(result), assistant("ANSWER"), user("AGAIN"))

    def lay_out(name: str) -> str:
        written = get_dialect(name).layout(Conversation(messages)).with_prompt
        return "".join(segment.text for segment in written if isinstance(segment, Control | Content))

    assert lay_out("glm4") == (
        "[gMASK]<sop><|system|>\nSYS<|user|>\nUSER<|assistant|>stop\n{}<|observation|>\nDONE<|assistant|>\nANSWER"
        "<|user|>\nAGAIN<|assistant|>"
    )
    assert lay_out("cwm").partition("SYS<|eot_id|>")[2] == (
        "<|start_header_id|>user<|end_header_id|>\n\nUSER<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
        "<tool: stop>\n{}\n</tool><|eot_id|><|start_header_id|>tool: stop<|end_header_id|>\n\nDONE<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nANSWER<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nAGAIN<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    )
    assert lay_out("solar_open2") == (
        "<|im:start|>system<|im:content|>## System Prompt\n\nSYS<|im:end|>\n<|im:start|>user<|im:content|>USER"
        "<|im:end|>\n<|im:start|>assistant<|im:content|><|think:start|><|think:end|><|tool_call:start|>stop\n"
        "<|tool_call:end|>\n<|im:end|>\n<|im:start|>tool<|im:content|><|tool_response:start|>DONE<|tool_response:end|>"
        "\n<|im:end|>\n<|im:start|>assistant<|im:content|><|think:start|><|think:end|>ANSWER\n<|im:end|>\n"
        "<|im:start|>user<|im:content|>AGAIN<|im:end|>\n<|im:start|>assistant<|im:content|><|think:start|>"
    )
    assert lay_out("deepseek_v41") == (
        "<｜begin▁of▁sentence｜><｜System｜>SYS<｜User｜>USER<｜Assistant｜><think></think>\n\n"
        f'<{DSML} calls>\n<{DSML} invoke name="stop">\n</{DSML} invoke>\n</{DSML} calls><｜end▁of▁sentence｜>'
        "<｜User｜><tool_result>DONE</tool_result><｜Assistant｜><think></think>ANSWER<｜end▁of▁sentence｜>"
        "<｜User｜>AGAIN<｜Assistant｜><think>"
    )


def test_names_of_models_whose_notation_another_family_has() -> None:
    for name, family in (("step5", "step3p5"), ("nanbeige", "qwen3_coder"), ("trinity", "hermes")):
        assert get_notation(name).family.name == family
