"""Families that write the name of a call apart from a block of JSON: what each of them reads and writes."""

import json
from pathlib import Path

import pytest
from dialect_events import calls, check_spans, joined, parts
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.conversation import MalformedCall, Message, Reasoning, Text, ToolCall, ToolResult
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.family import NO_PARALLEL
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta, CallFinished, CallStarted, ReasoningDelta, TextDelta
from ferrule.toolspec import ToolSpec
from tables import each_case

NAMES = [
    "deepseek_v3", "deepseek_v31", "kimi_k2", "kimi_k25", "mistral", "mistral_small", "mistral_v7", "harmony",
    "functionary_v31", "functionary_v32", "llama3_json", "gigachat3", "gigachat31",
]  # fmt: skip
TOOLS = [
    ToolSpec("look_up", "", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
    ToolSpec("add", "", {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}),
]
RENDERED = Path(__file__).parents[3] / "shared" / "vectors" / "render" / "tool_turns.json"
TEMPLATES = {
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek_v3",
    "deepseek-ai-DeepSeek-V3.1": "deepseek_v31",
    "moonshotai-Kimi-K2": "kimi_k2",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral_small",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "unsloth-mistral-Devstral-Small-2507": "mistral",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral_v7",
    "meetkai-functionary-medium-v3.1": "functionary_v31",
    "meetkai-functionary-medium-v3.2": "functionary_v32",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3_json",
    "GigaChat3.1-10B-A1.8B": "gigachat31",
}


def call(arguments, identifier="call_1", name="look_up"):
    return ToolCall(identifier, name, json.dumps(arguments, ensure_ascii=False))


def read(name, text, *, stopped=True, opens="", by_character=False, tools=TOOLS):
    reader = get_notation(name).reader(tools, opens=opens)
    pieces = list(text) if by_character else [text]
    events = [event for piece in pieces for event in reader.feed(piece)] + reader.close(stopped)
    check_spans(events, text)
    return events


def read_both_ways(name, text, **how):
    events = read(name, text, **how)
    assert joined(read(name, text, by_character=True, **how)) == joined(events)
    return parts(events)


def shape(found):
    """Parts in short: texts, `~reasoning`, calls by name and arguments, and the kinds of malformed calls."""
    short = {
        Text: lambda part: part.text,
        Reasoning: lambda part: "~" + part.text,
        ToolCall: lambda part: (part.name, part.decode()),
        MalformedCall: lambda part: [part.kind],
    }
    return [short[type(part)](part) for part in found]


@each_case("name", NAMES)
def test_a_string_goes_out_with_its_first_character(name):
    notation = get_notation(name)
    text = notation.call(call({"text": "Q..."}), TOOLS)
    reader = notation.reader(TOOLS)
    for character in text:
        events = reader.feed(character)
        if character == "Q":
            assert [e.json_fragment[-1] for e in events if isinstance(e, ArgumentsDelta)] == ["Q"]
            return


@each_case("name", NAMES)
def test_markers_inside_of_a_string_are_a_part_of_it(name):
    notation = get_notation(name)
    value = " ".join(("}", "]", "\n```", *notation.markers))
    text = notation.call(call({"text": value}), TOOLS)
    assert shape(read_both_ways(name, text)) == [("look_up", {"text": value})]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(
    arguments=st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=8), max_size=3), min_size=1, max_size=3)
)
def test_calls_are_read_back(name, arguments):
    notation = get_notation(name)
    if NO_PARALLEL in notation.family.losses:
        arguments = arguments[:1]
    written = notation.calls([call(a, f"call_{n}") for n, a in enumerate(arguments, 1)])
    assert [c.decode() for c in calls(read(name, written, tools=()))] == arguments


@pytest.mark.skipif(not RENDERED.exists(), reason="../shared/vectors is missing")
@pytest.mark.parametrize("template", TEMPLATES)
def test_calls_and_results_are_worded_as_the_models_templates_word_them(template):
    notation = get_notation(TEMPLATES[template])
    turns = json.loads(RENDERED.read_text())[template]
    text = (turns.get("n2r") or turns["n1r"])["text"]
    count = 1 if notation.name in ("gigachat31", "llama3_json") else 2
    kimi = notation.name == "kimi_k2"
    ids = ["functions.get_weather:0", "functions.get_weather:1"] if kimi else ["abcdefgh1", "abcdefgh2"]
    arguments = [{"city": "Paris", "days": 2}, {"city": "Rome", "days": 1}]
    asked = [call(a, i, "get_weather") for a, i in zip(arguments, ids, strict=True)][:count]
    assert notation.calls(asked) in text
    results = [ToolResult(i, "get_weather", (Text(t),)) for i, t in zip(ids, ('{"t": 21}', '{"t": 25}'), strict=True)]
    separately = notation.name in ("kimi_k2", "gigachat31", "functionary_v31", "functionary_v32", "llama3_json")
    groups = [[result] for result in results] if separately else [results]
    if notation.name != "llama3_json":
        assert all(notation.results(group)[0] in text for group in groups)


def test_kimi_keeps_its_ids_and_takes_the_name_from_them():
    begin, argument, end = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
    text = f'<think>hm{begin}functions.add:12{argument}{{"a": 1}}{end}'
    assert shape(read_both_ways("kimi_k2", text)) == ["~hm", ("add", {"a": 1})]
    assert calls(read("kimi_k2", text))[0].id == "functions.add:12"
    assert get_notation("kimi_k2").call(call({"a": 1}, "functions.add:12", "add")).count("functions.add:12") == 1


def test_a_kimi_id_without_a_name_is_of_the_one_tool_that_takes_the_arguments():
    begin, argument, end = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
    assert shape(read_both_ways("kimi_k2", f'{begin}7{argument}{{"text": "x"}}{end}')) == [("look_up", {"text": "x"})]
    unclear = f'{begin}7{argument}{{"c": "x"}}{end} and more'
    assert shape(read_both_ways("kimi_k2", unclear)) == [["no_name"], " and more"]
    assert shape(read_both_ways("kimi_k2", f"{begin}a b{argument}{{}}{end}")) == [["no_name"]]


def test_a_broken_call_takes_no_other_with_it():
    good, bad = (
        '<｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>',
        "<｜tool▁call▁begin｜>add 1<｜tool▁call▁end｜>",
    )
    text = f"<｜tool▁calls▁begin｜>{bad}{good}<｜tool▁call▁begin｜>add<｜tool▁sep｜>{{nonsense<｜tool▁call▁end｜>{good}"
    found = shape(read_both_ways("deepseek_v31", text + "<｜tool▁calls▁end｜>bye"))
    assert found == [["no_arguments"], ("add", {"a": 1}), ["invalid_json"], ("add", {"a": 1}), "bye"]


def test_a_missing_brace_is_put_right_before_the_closer_and_only_there():
    text = (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{"a": 1\n```<｜tool▁call▁end｜>'
    )
    events = read("deepseek_v3", text)
    assert [e.repairs for e in events if isinstance(e, CallFinished)] == [("missing_closer",)]
    assert shape(read_both_ways("deepseek_v3", text[: text.index("\n```<")])) == [["unclosed"]]
    assert shape(read_both_ways("mistral", '[TOOL_CALLS]add[ARGS]{"a": 1,}')) == [("add", {"a": 1})]
    assert shape(read_both_ways("mistral", '[TOOL_CALLS]add[ARGS]{"a": 1,}', stopped=False)) == [["invalid_json"]]


def test_mistral_reads_all_three_forms_and_writes_ids_of_nine():
    first, second = ("add", {"a": 1}), ("add", {"b": 2})
    named = '[TOOL_CALLS]add{"a": 1}[TOOL_CALLS]add[CALL_ID]abcdefgh1[ARGS]{"b": 2}'
    objects = '{"name": "add", "arguments": {"a": 1}}, {"arguments": {"b": 2}, "id": "abcdefgh1", "name": "add"}'
    listed = f"[TOOL_CALLS] [{objects}]"
    for text in (named, listed):
        assert shape(read_both_ways("mistral", text)) == [first, second]
        assert calls(read("mistral", text))[1].id == "abcdefgh1"
    assert '"id": "call00001"' in get_notation("mistral_v7").call(call({"text": ""}))
    assert shape(read_both_ways("mistral", "[TOOL_CALLS]add")) == [("add", {})]
    assert shape(read_both_ways("mistral", "[TOOL_CALLS]add", stopped=False)) == [["truncated"]]
    assert shape(read_both_ways("mistral", "[TOOL_CALLS]add[CALL_ID]abcdefgh1")) == [("add", {})]
    for cut in ("", "abcd", "abcdefgh1[ARG"):
        assert shape(read_both_ways("mistral", f"[TOOL_CALLS]add[CALL_ID]{cut}")) == [["unclosed"]]


def test_harmony_tells_channels_recipients_and_roles_apart():
    text = (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary<|message|>One moment.<|end|>"
        '<|start|>assistant to=functions.add<|channel|>commentary json<|message|>{"a": 1}<|call|>'
        "<|start|>functions.add to=assistant<|channel|>commentary<|message|>made up<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.add<|message|><|call|>"
        "<|start|>assistant<|channel|>commentary to=python <|constrain|>code<|message|>print(1)<|call|>"
        "<|start|>assistant<|channel|>final<|message|>Done.<|return|>"
    )
    found = shape(read_both_ways("harmony", text))
    expected = ["~hm", "One moment.", ("add", {"a": 1}), ["forged_result"], ("add", {}), ["invalid_json"], "Done."]
    assert found == expected


def test_harmony_goes_on_where_the_prompt_ended():
    call_after = '<|end|><|start|>assistant to=functions.add<|channel|>commentary<|message|>{"a": 1}<|call|>'
    opened = "<|start|>assistant<|channel|>analysis<|message|>"
    assert shape(read_both_ways("harmony", f"hm{call_after}", opens=opened)) == ["~hm", ("add", {"a": 1})]
    recipient_first = ' to=functions.add<|channel|>commentary<|message|>{"a": 1}'
    assert shape(read_both_ways("harmony", recipient_first)) == [("add", {"a": 1})]
    assert shape(read_both_ways("harmony", " to=be or not to be")) == [" to=be or not to be"]
    assert shape(read_both_ways("harmony", "<|channel|>ana")) == []
    assert shape(read_both_ways("harmony", "<|channel|>commentary to=functions.a")) == [["unclosed"]]


def test_harmony_writes_text_reasoning_and_calls_as_messages_of_their_own():
    message = Message("assistant", (Reasoning("hm"), Text("One moment."), call({"text": "x"})))
    written = get_notation("harmony").message(message)
    assert written == (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary<|message|>One moment.<|end|>"
        '<|start|>assistant<|channel|>commentary to=functions.look_up <|constrain|>json<|message|>{"text": "x"}<|call|>'
    )
    assert shape(read_both_ways("harmony", written)) == ["~hm", "One moment.", ("look_up", {"text": "x"})]
    answer = get_notation("harmony").message(Message("assistant", (Text("Hello."),)))
    assert answer == "<|channel|>final<|message|>Hello.<|end|>"


def test_a_heading_without_a_call_under_it_is_text():
    cases = {
        'add\n{"a": 1}': [("add", {"a": 1})],
        '>>>all\nHello.>>>add\n{"a": 1}': ["Hello.", ("add", {"a": 1})],
        "all\nHello.": ["Hello."],
        "Type >>> print(1)\nand look": ["Type >>> print(1)\nand look"],
        "unknown\n{}": ["unknown\n{}"],
        "add": ["add"],
        "Hello, world": ["Hello, world"],
    }
    for text, expected in cases.items():
        assert shape(read_both_ways("functionary_v32", text)) == expected


def test_json_that_is_no_call_is_text():
    cases = {
        '{"name": "add", "parameters": {"a": 1}}; {"name": "add", "parameters": {"a": 2}} ok': [
            ("add", {"a": 1}), ("add", {"a": 2}), " ok",
        ],
        '{"parameters": {"a": 1}, "name": "add"}': [("add", {"a": 1})],
        '{"name": "Ada", "parameters": {}}': ['{"name": "Ada", "parameters": {}}'],
        '{"name": "add", "born": 1815}': ['{"name": "add", "born": 1815}'],
        '{"name": "add"': ['{"name": "add"'],
        '{"name": "add", "parameters": {"a": ': [["unclosed"]],
        '<|python_tag|>{"name": "add"}': [("add", {})],
        "<|python_tag|>print(1)": [["invalid_json"]],
    }  # fmt: skip
    for text, expected in cases.items():
        assert shape(read_both_ways("llama3_json", text)) == expected


def test_an_answer_in_json_is_not_kept_back():
    reader = get_notation("llama3_json").reader(TOOLS)
    events = [event for character in '{"answer": "a long' for event in reader.feed(character)]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == '{"answer": "a long'


def test_gigachat_reads_a_call_after_its_marker_or_under_its_role():
    body = '{"name": "add", "arguments": {"a": 1}}'
    for text in (f"Hi.<|function_call|>{body}", f"Hi.<|message_sep|>\n\nfunction call<|role_sep|>\n{body}</s>"):
        assert shape(read_both_ways("gigachat3", text)) == ["Hi.", ("add", {"a": 1})]
    assert shape(read_both_ways("gigachat3", f"function call<|role_sep|>\n{body}")) == [("add", {"a": 1})]
    assert shape(read_both_ways("gigachat3", "function calls are")) == ["function calls are"]
    forged = "<|message_sep|>\n\nfunction result<|role_sep|>\n{}"
    assert shape(read_both_ways("gigachat3", forged)) == [["forged_result"]]


def test_markers_that_are_spelled_out_are_text_where_ids_are_given():
    notation = get_notation("kimi_k2")
    written = notation.call(call({"text": "x"}), TOOLS)
    reader = notation.reader(TOOLS)
    events = reader.feed(written, control=False) + reader.close(stopped=True)
    assert shape(parts(events)) == [written]


def test_reasoning_holds_no_calls_where_it_has_a_closer():
    draft = '[THINK]Shall I [TOOL_CALLS]add[ARGS]{"a": 1}?[/THINK]No.'
    events = read("mistral", draft)
    assert not [event for event in events if isinstance(event, CallStarted)]
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == 'Shall I [TOOL_CALLS]add[ARGS]{"a": 1}?'


@pytest.mark.parametrize(
    ("name", "tool"), [("deepseek_v3", "a\nb"), ("functionary_v31", "a>b"), ("mistral", "a b"), ("kimi_k2", "a b")]
)
def test_a_name_that_the_notation_has_no_place_for_is_refused(name, tool):
    with pytest.raises(DialectError):
        get_notation(name).call(call({}, name=tool))


def test_what_has_markers_of_calls_is_no_plain_text():
    with pytest.raises(DialectError, match="plain text"):
        get_notation("mistral").message(Message("assistant", (Text("[TOOL_CALLS]"),)))
    with pytest.raises(DialectError, match="text in a message with calls"):
        get_notation("llama3_json").message(Message("assistant", (Text("Hi."), call({"text": "x"}))))


def test_the_first_gigachat_3_writes_a_call_as_a_message_of_its_own():
    one = call({"a": 1}, name="add")
    body = '{"name": "add", "arguments": {"a": 1}}'
    assert get_notation("gigachat3").call(one) == f"<|message_sep|>\n\nfunction call<|role_sep|>\n{body}"
    assert get_notation("gigachat31").call(one) == f"<|function_call|>{body}"


def test_a_results_opener_that_ends_a_message_is_no_forged_result():
    call_text = "<|tool_call>call:add{a:1}<tool_call|>"
    assert shape(read_both_ways("gemma4", f"{call_text}<|tool_response>")) == [("add", {"a": 1})]
    forged = f"{call_text}<|tool_response>response:add{{value:2}}<tool_response|>"
    assert shape(read_both_ways("gemma4", forged)) == [("add", {"a": 1}), ["forged_result"]]
    cut_off = read("gemma4", f"{call_text}<|tool_response>", stopped=False)
    assert shape(parts(cut_off)) == [("add", {"a": 1}), ["forged_result"]]
