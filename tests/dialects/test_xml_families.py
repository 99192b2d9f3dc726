"""Families whose arguments are plain text between tags: `function_xml` and `key_values`."""

import json
from typing import Any

import pytest
from dialect_events import calls, check_spans, joined, parts, read
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors import FOLDER, IS_MISSING

from ferrule.conversation import MalformedCall, Reasoning, Text, ToolCall, ToolResult
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.protocol import Reader
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta, CallFinished, CallMalformed, ReaderEvent, TextDelta
from ferrule.toolspec import ToolSpec
from tables import each_case

TAGS = ("qwen3_coder", "step3p5", "mimo", "seed_oss")
PAIRS = ("glm45", "glm47", "poolside_v1", "spark", "hy_v3_preview", "k2_horizon")
NOTE = ToolSpec(
    "note",
    "",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "times": {"type": "integer"},
            "title": {"type": ["string", "null"]},
            "more": {"type": "object"},
        },
    },
)
RENDERED = {
    "qwen3_coder": "Qwen3-Coder",
    "qwen35": "Qwen3.5-4B",
    "step3p5": "StepFun3.5-Flash",
    "seed_oss": "ByteDance-Seed-OSS",
    "glm45": "GLM-4.6",
    "glm47": "GLM-4.7-Flash",
    "spark": "Spark2.5",
}


def reader(name: str, tools: tuple[ToolSpec, ...] = (NOTE,), *, repair: bool = True) -> Reader:
    return get_notation(name).reader(tools, repair=repair)


def call_of(**arguments: Any) -> ToolCall:
    return ToolCall("call_1", "note", json.dumps(arguments, ensure_ascii=False))


def every_way(name: str, text: str) -> list[ReaderEvent]:
    """The events of a text, having made sure that its pieces don't matter."""
    whole = read(reader(name), [text])
    check_spans(whole, text)
    assert joined(read(reader(name), text)) == joined(whole)
    return joined(whole)


@pytest.mark.parametrize("name", TAGS + PAIRS)
@settings(max_examples=40, deadline=None)
@given(
    text=st.text() | st.sampled_from(["\n", "\na\n", " a ", "null", "1", "</think>", "<tool_call>", '"', "\\n"]),
    times=st.integers(),
    title=st.none() | st.text("abc ", min_size=1),
    more=st.dictionaries(st.text(), st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.none()),
)
def test_what_is_written_is_read_back(
    name: str, text: str, times: int, title: str | None, more: dict[str, Any]
) -> None:
    call = call_of(text=text, times=times, title=title, more=more)
    try:
        written = get_notation(name).calls([call, call], [NOTE])
    except DialectError:
        return
    found = calls(every_way(name, written))
    assert [each.decode() for each in found] == [call.decode()] * 2


@each_case("name", TAGS + PAIRS)
def test_a_string_streams_and_other_values_wait(name: str) -> None:
    written = get_notation(name).call(call_of(text="spring", times=12, title="x"), [NOTE])
    reading = reader(name)
    value = written.index("spring")
    reading.feed(written[:value])
    assert [e.json_fragment for e in reading.feed("s") if isinstance(e, ArgumentsDelta)] == ["s"]
    number = written.index("12")
    reading.feed(written[value + 1 : number])
    assert not [e for e in reading.feed("12") if isinstance(e, ArgumentsDelta)]
    events = reading.feed(written[number + 2 :])
    assert '"times": 12' in "".join(e.json_fragment for e in events if isinstance(e, ArgumentsDelta))
    assert [e for e in events if isinstance(e, CallFinished)]


@pytest.mark.parametrize("name", TAGS)
def test_a_string_that_holds_its_closer_is_refused(name: str) -> None:
    with pytest.raises(DialectError, match="can't express call 'call_1'"):
        get_notation(name).call(call_of(text="a</parameter>b"))


@pytest.mark.parametrize("name", PAIRS)
def test_a_string_that_holds_the_closer_of_values_is_refused(name: str) -> None:
    closer = "</ifm|arg_value>" if name == "k2_horizon" else "</arg_value>"
    with pytest.raises(DialectError, match="can't express call 'call_1'"):
        get_notation(name).call(call_of(text=f"a{closer}b"))


@each_case("name", TAGS + PAIRS)
def test_an_object_that_holds_the_closer_is_written_with_an_escape(name: str) -> None:
    call = call_of(more={"a": "</parameter></arg_value></ifm|arg_value>"})
    written = get_notation(name).call(call, [NOTE])
    assert r"\u003c/" in written
    assert calls(every_way(name, written))[0].decode() == call.decode()


def test_the_next_tag_ends_a_value_that_was_not_closed() -> None:
    value = "a\n<parameter=times>\n3"
    text = f"<tool_call>\n<function=note>\n<parameter=text>\n{value}\n</parameter>\n</function>\n</tool_call>"
    (finished,) = (e for e in every_way("qwen3_coder", text) if isinstance(e, CallFinished))
    assert finished.call.decode() == {"text": "a", "times": 3}
    assert finished.repairs == ("unclosed_tag",)
    assert calls(read(reader("qwen3_coder", repair=False), [text]))[0].decode() == {"text": value}


def test_a_tag_of_no_parameter_is_a_part_of_the_value() -> None:
    value = "a\n<parameter=nothing>\n</function>\nb"
    (call,) = calls(every_way("qwen3_coder", get_notation("qwen3_coder").call(call_of(text=value), [NOTE])))
    assert call.decode() == {"text": value}


def test_both_closers_end_a_value_that_was_not_closed() -> None:
    text = "<tool_call>\n<function=note>\n<parameter=text>\na\n</function>\n</tool_call> and on"
    events = every_way("qwen3_coder", text)
    assert calls(events)[0].decode() == {"text": "a"}
    assert events[-1] == TextDelta(" and on", (len(text) - 7, len(text)))


@each_case("end", ["</function>", "</function>\n", "</function>\n</tool_call>"])
@each_case("begin", ["<tool_call>", "<tool_call>\n", ""])
def test_outer_tags_may_be_missing(begin: str, end: str) -> None:
    text = f"So:\n{begin}<function=note>\n<parameter=text>\na\n</parameter>\n{end}"
    events = every_way("qwen3_coder", text)
    assert calls(events)[0].decode() == {"text": "a"}
    assert parts(events)[0] == Text("So:")


def test_the_mention_of_a_tag_takes_no_answer_with_it() -> None:
    events = every_way("qwen3_coder", "Write <function=note> first, then the rest.")
    assert [type(e) for e in parts(events)] == [Text, MalformedCall, Text]
    assert parts(events)[-1] == Text("first, then the rest.")


def test_line_breaks_around_a_value_are_framing_in_pairs() -> None:
    for value, meant in [("\na\n", "a"), ("a\n", "a\n"), ("\n\na\n\n", "\na\n"), ("\n\n", ""), ("\n", ""), ("", "")]:
        text = f"<tool_call>\n<function=note>\n<parameter=text>{value}</parameter>\n</function>\n</tool_call>"
        assert calls(every_way("qwen3_coder", text))[0].decode() == {"text": meant}
        assert calls(every_way("mimo", text))[0].decode() == {"text": value}


def test_reasoning_of_seed_and_no_draft_in_it() -> None:
    notation = get_notation("seed_oss")
    call = notation.call(call_of(text="a"), [NOTE])
    events = every_way("seed_oss", f"<seed:think>maybe {call}</seed:think>\n{call}<seed:eos>")
    assert [type(e) for e in parts(events)] == [Reasoning, ToolCall]


@pytest.mark.parametrize("name", PAIRS)
def test_no_arguments_at_all(name: str) -> None:
    written = get_notation(name).call(call_of(), [NOTE])
    assert calls(every_way(name, written))[0].decode() == {}
    if name == "glm47":
        assert written == "<tool_call>note</tool_call>"


def test_a_key_without_a_value_is_left_out_and_said_to_be() -> None:
    text = "<tool_call>note\n<arg_key>text</arg_key><arg_key>times</arg_key><arg_value>3</arg_value></tool_call>"
    (finished,) = (e for e in every_way("glm45", text) if isinstance(e, CallFinished))
    assert (finished.call.decode(), finished.repairs) == ({"times": 3}, ("key_without_value",))
    assert calls(read(reader("glm45", repair=False), [text])) == []


def test_a_section_goes_on_after_a_call_that_cannot_be_read() -> None:
    good = "<tool_call>note<tool_sep><arg_key>times</arg_key><arg_value>3</arg_value></tool_call>"
    bad = "<tool_call>note<tool_sep>what?</tool_call>"
    events = every_way("hy_v3", f"<tool_calls>\n{good}\n{bad}\n{good}\n</tool_calls>")
    kinds = [type(e) for e in parts(events)]
    assert kinds == [ToolCall, MalformedCall, ToolCall]
    (malformed,) = (e for e in events if isinstance(e, CallMalformed))
    assert (malformed.kind, malformed.raw) == ("unexpected_text", bad)


def test_a_result_cannot_end_itself() -> None:
    result = ToolResult("1", "note", (Text("a</tool_response></tool_responses><tool_calls>"),))
    text, losses = get_notation("hy_v3_preview").result(result)
    assert text.count("</tool_response>") == text.count("</tool_responses>") == len(losses) - 2 == 1
    assert "<tool_calls>" not in text


def test_argument_types_speak_where_the_schema_is_silent() -> None:
    pair = "<ifm|arg_key>zip</ifm|arg_key><ifm|arg_type>string</ifm|arg_type><ifm|arg_value>0123</ifm|arg_value>"
    whole = "<ifm|arg_key>times</ifm|arg_key><ifm|arg_value>7</ifm|arg_value>"
    in_json = '<ifm|tool_call>\n{"name": "note", "arguments": {"times": 1}}\n</ifm|tool_call>'
    text = f"<ifm|tool_calls><ifm|tool_call>note{pair}{whole}</ifm|tool_call>{in_json}</ifm|tool_calls>"
    found = [call.decode() for call in calls(every_way("k2_horizon", text))]
    assert found == [{"zip": "0123", "times": 7}, {"times": 1}]


@pytest.mark.parametrize("name", TAGS + PAIRS)
def test_every_cut_is_malformed_and_loses_nothing(name: str) -> None:
    written = get_notation(name).call(call_of(text="a", times=1), [NOTE])
    closers = ("</function>", "</tool_call>", "</ifm|tool_call>")
    for cut in range(1, len(written)):
        text = written[:cut]
        events = read(reader(name), [text], stopped=False)
        check_spans(events, text)
        assert bool(calls(events)) == any(closer in text for closer in closers)


def test_with_ids_a_turn_that_ends_inside_of_a_value_ends_the_call() -> None:
    reading = reader("glm45")
    events = reading.feed("<tool_call>", True) + reading.feed("note\n", False)
    events += reading.feed("<arg_key>", True) + reading.feed("text", False) + reading.feed("</arg_key>", True)
    events += reading.feed("<arg_value>", True) + reading.feed("a</arg_value> is text here", False)
    events += reading.feed("<|user|>", True) + reading.close()
    (malformed,) = (e for e in events if isinstance(e, CallMalformed))
    assert malformed.kind == "unclosed"
    assert malformed.raw.endswith("is text here")


@IS_MISSING
@pytest.mark.parametrize("name", RENDERED)
def test_calls_and_results_are_written_as_the_template_writes_them(name: str) -> None:
    turns = json.loads((FOLDER / "render" / "tool_turns.json").read_text())
    rendered = turns[RENDERED[name]]["n2r"]["text"]
    notation = get_notation(name)
    both = [
        ToolCall("1", "get_weather", '{"city": "Paris", "days": 2}'),
        ToolCall("2", "get_weather", '{"city": "Rome", "days": 1}'),
    ]
    assert notation.calls(both) in rendered
    results = [
        ToolResult("1", "get_weather", (Text('{"t": 21}'),)),
        ToolResult("2", "get_weather", (Text('{"t": 25}'),)),
    ]
    texts = [notation.result(result)[0] for result in results] if name == "seed_oss" else [notation.results(results)[0]]
    assert all(text in rendered for text in texts)


def test_hunyuan_3_is_read_with_the_suffix_of_the_released_checkpoints_and_without() -> None:
    released, preview = get_notation("hy_v3"), get_notation("hy_v3_preview")
    call = call_of(text="a", times=1)
    written = released.call(call, [NOTE])
    assert written.startswith("<tool_calls:opensource>\n<tool_call:opensource>note<tool_sep:opensource>\n")
    assert preview.call(call, [NOTE]) == written.replace(":opensource", "")
    for text in (written, preview.call(call, [NOTE])):
        events = every_way("hy_v3", text)
        assert [read.decode() for read in calls(events)] == [{"text": "a", "times": 1}]
    marker = "</tool_call:opensource>"
    text, losses = released.result(ToolResult("1", "note", (Text(marker),)))
    assert marker not in text
    assert losses
