"""Calls as tags with attributes: what is particular to each family of them."""

import json

import pytest
from dialect_events import calls, check_spans, joined, parts, read
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.conversation import MalformedCall, Reasoning, Text, ToolCall
from ferrule.dialects.catalogue import get_notation
from ferrule.errors import DialectError
from ferrule.events import ArgumentsDelta, CallFinished, CallMalformed
from ferrule.toolspec import ToolSpec
from tables import each_case

NAMES = [
    "minimax_m2", "minimax_m3", "dots", "anthropic_xml", "deepseek_v32", "deepseek_v4", "muse_glimmer", "minicpm5",
    "kimi_k3", "step3", "native", "native_3",
]  # fmt: skip
SAVE = ToolSpec(
    "save",
    "Save a note.",
    {
        "type": "object",
        "properties": {
            "note": {"type": "string", "description": 'What to save: "all"'},
            "times": {"type": "integer"},
            "at": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
            },
        },
        "required": ["note"],
    },
)
DEEPSEEK = "<｜DSML｜"


def call_of(**arguments):
    return ToolCall("call_1", "save", json.dumps(arguments, ensure_ascii=False))


def read_of(name, text, tools=(SAVE,)):
    events = read(get_notation(name).reader(tools), list(text))
    check_spans(events, text)
    assert joined(read(get_notation(name).reader(tools), [text])) == joined(events)
    return events


@each_case("name", [name for name in NAMES if name != "native_3"])
def test_a_string_streams_as_it_comes(name):
    notation = get_notation(name)
    written = notation.call(call_of(note="a long note"), [SAVE])
    reader = notation.reader([SAVE])
    cut = written.index("long")
    reader.feed(written[:cut])
    found = [event.json_fragment for event in reader.feed("lo") if isinstance(event, ArgumentsDelta)]
    assert found == ["lo"]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(
    note=st.one_of(
        st.text(max_size=20),
        st.lists(st.sampled_from(["<", "&", "&lt;", "</", ">", "\n", '"', " "]), max_size=6).map("".join),
    ),
    tags=st.lists(st.sampled_from(["a", "b c", "<b>"]), min_size=1, max_size=3),
)
def test_what_is_written_is_read_back(name, note, tags):
    call = call_of(note=note, times=3, at={"x": 1, "tags": tags})
    [found] = calls(read_of(name, get_notation(name).call(call, [SAVE])))
    assert found.decode() == call.decode()


@pytest.mark.parametrize(
    ("name", "closer"),
    [
        ("minimax_m2", "</parameter>"),
        ("deepseek_v4", f"{DEEPSEEK}parameter"),
        ("step3", "</steptml:parameter>"),
        ("kimi_k3", "<|close|>argument<|sep|>"),
        ("minimax_m3", "]<]minimax[>[</note>"),
        ("minicpm5", "<]]>"),
    ],
)
def test_a_value_that_holds_its_closer_is_refused(name, closer):
    with pytest.raises(DialectError, match="call_1"):
        get_notation(name).call(call_of(note=f"a {closer} b"), [SAVE])


@pytest.mark.parametrize("name", ["minicpm5", "native", "native_3"])
def test_notations_with_an_escape_refuse_no_closer(name):
    for closer in ("</param>", "</parameter>", "</tool-call>", "&amp;"):
        [found] = calls(read_of(name, get_notation(name).call(call_of(note=closer), [SAVE])))
        assert found.decode() == {"note": closer}


@each_case("name", NAMES)
def test_a_call_that_is_cut_off_is_malformed(name):
    written = get_notation(name).call(call_of(note="abc", times=2), [SAVE])
    for end in range(len(written) // 2, written.index("abc") + 5):
        events = read_of(name, written[:end])
        assert not calls(events)
        assert [event for event in events if isinstance(event, CallMalformed)]


def test_one_call_that_cannot_be_read_does_not_cost_the_next():
    text = (
        '<minimax:tool_call><invoke name=""></invoke> what? <invoke name="save"><parameter name="note">x</parameter>'
        "</invoke></minimax:tool_call> Done."
    )
    first, second, third, last = parts(read_of("minimax_m2", text))
    assert isinstance(first, MalformedCall)
    assert first.kind == "no_name"
    assert isinstance(second, MalformedCall)
    assert second.raw.strip() == "what?"
    assert third.decode() == {"note": "x"}
    assert last == Text(" Done.")


def test_a_section_that_only_lacks_its_closer_keeps_its_calls():
    text = '<function_calls>\n<invoke name="save">\n<parameter name="note">x</parameter>\n</invoke>\n'
    [event] = [event for event in read_of("anthropic_xml", text) if isinstance(event, CallFinished)]
    assert event.repairs == ()


def test_a_call_closed_by_its_section_is_repaired_where_the_schema_accepts_it():
    head = '<minimax:tool_call><invoke name="save">'
    tail = "</minimax:tool_call>"
    text = f'{head}<parameter name="note">x</parameter>{tail}'
    [event] = [event for event in read_of("minimax_m2", text) if isinstance(event, CallFinished)]
    assert event.repairs == ("missing_closer",)
    assert not calls(read_of("minimax_m2", f'{head}<parameter name="times">2</parameter>{tail}'))
    assert not calls(read(get_notation("minimax_m2").reader([SAVE], repair=False), [text]))


def test_the_type_that_a_call_tells_counts_where_the_schema_is_silent():
    inside = f'{DEEPSEEK}parameter name="v" string="true">1</｜DSML｜parameter>'
    text = f'{DEEPSEEK}tool_calls>{DEEPSEEK}invoke name="any">{inside}</｜DSML｜invoke></｜DSML｜tool_calls>'
    assert calls(read_of("deepseek_v4", text))[0].decode() == {"v": "1"}
    assert calls(read_of("deepseek_v4", text.replace("true", "false")))[0].decode() == {"v": 1}
    assert calls(read_of("deepseek_v4", text.replace("true", "false").replace(">1<", '>"1"<')))[0].decode() == {
        "v": "1"
    }


def test_arguments_in_one_object_are_opened_only_where_the_schema_knows_them():
    def text(inside):
        return f'<function name="save"><param name="arguments">{inside}</param></function>'

    assert calls(read_of("minicpm5", text('{"note": "x", "times": 2}')))[0].decode() == {
        "note": "x",
        "times": 2,
    }
    assert calls(read_of("minicpm5", text('{"other": 1}')))[0].decode() == {"arguments": {"other": 1}}
    assert calls(read_of("minicpm5", text('{"note": NaN}')))[0].decode() == {"arguments": '{"note": NaN}'}


def test_a_word_that_begins_like_a_call_is_text():
    text = "The <functional> and the <function> tag, <｜DSML｜tool> too."
    assert parts(read_of("minicpm5", text)) == [Text(text)]
    assert parts(read_of("deepseek_v4", text)) == [Text(text)]


def test_calls_in_a_turn_for_the_user_or_for_itself_are_never_run():
    notation = get_notation("muse_glimmer")
    call = notation.call(call_of(note="x"), [SAVE])
    inside = call.removeprefix(" to=save<|message|>")
    found = parts(
        read_of("muse_glimmer", f" to=self<|message|>{inside}<|eom|><|start|>assistant to=user<|message|>{inside}")
    )
    assert found == [Reasoning(inside), Text(inside)]
    assert calls(read_of("muse_glimmer", f" to=self<|message|>a<|eom|><|start|>assistant{call}"))


def test_tokens_that_are_parts_of_tags_are_read_as_their_characters():
    notation = get_notation("deepseek_v32")
    spelled_out = [
        marker for marker in notation.markers if marker not in ("<think>", "</think>", "<｜end▁of▁sentence｜>")
    ]
    pieces = notation.call(call_of(note="a ｜ b"), [SAVE]).split("｜DSML｜")
    reader = notation.reader([SAVE], spelled_out=spelled_out)
    events = reader.feed(pieces[0], False)
    for piece in pieces[1:]:
        events += reader.feed("｜DSML｜", True) + reader.feed(piece, False)
    events += reader.feed("<｜end▁of▁sentence｜>", True) + reader.close(True)
    assert calls(events)[0].decode() == {"note": "a ｜ b"}


def test_tags_without_their_token_are_text_where_ids_are_known():
    notation = get_notation("deepseek_v32")
    token = "｜DSML｜"
    spelled_out = {
        marker: (token,) if token in marker else ()
        for marker in notation.markers
        if marker not in ("<think>", "</think>", "<｜end▁of▁sentence｜>")
    }
    written = notation.call(call_of(note="x"), [SAVE])
    reader = notation.reader([SAVE], spelled_out=spelled_out)
    events = [event for character in written for event in reader.feed(character, False)] + reader.close(True)
    assert not calls(events)
    assert "".join(event.text for event in events) == written
    # In a value too, and the true closer after it is one.
    head, tail = written.split("x</")
    closer = f"</{token}parameter>"
    reader = notation.reader([SAVE], spelled_out=spelled_out)
    events = []
    for part in (head, f"say {closer} twice", f"</{tail}"):
        pieces = part.split(token) if part.startswith(("<", "\n")) else [part]
        events += reader.feed(pieces[0], False)
        for piece in pieces[1:]:
            events += reader.feed(token, True) + reader.feed(piece, False)
    events += reader.feed("<｜end▁of▁sentence｜>", True) + reader.close(True)
    assert calls(events)[0].decode() == {"note": f"say {closer} twice"}


def test_nested_tags_are_typed_by_the_schema_and_have_an_end():
    token = "]<]minimax[>["
    head = f'{token}<tool_call>{token}<invoke name="save">'
    tail = f"{token}</invoke>{token}</tool_call>"
    inside = f"{token}<at>{token}<x>7{token}</x>{token}<tags>{token}<item>8{token}</item>{token}</tags>{token}</at>"
    assert calls(read_of("minimax_m3", head + inside + tail))[0].decode() == {"at": {"x": 7, "tags": ["8"]}}
    deep = f"{token}<a>" * 200 + f"{token}</a>" * 200
    assert not calls(read_of("minimax_m3", head + deep + tail))


@pytest.mark.parametrize("value", ["[1e999]", "9" * 5000, "[" * 2000 + "]" * 2000, '{"x": ' * 900 + "1" + "}" * 900])
@pytest.mark.parametrize("name", ["minimax_m2", "minimax_m3", "native", "minicpm5"])
def test_values_beyond_what_json_holds_never_raise(name, value):
    written = get_notation(name).call(call_of(at={"x": 777}), [SAVE])
    inside = {"minimax_m3": "777", "minicpm5": "{'x': 777}"}.get(name, '{"x": 777}')
    text = written.replace(inside, value)
    assert value in text
    assert [event for event in read_of(name, text) if isinstance(event, CallFinished | CallMalformed)]


def test_what_looks_like_an_entity_and_is_none_stays():
    inside = '<parameter name="note">a &amp b &copy=1; &#65;&lt;&x</parameter>'
    text = f'<tool-calls><tool-call tool="save" function="save">{inside}</tool-call></tool-calls>'
    assert calls(read_of("native", text))[0].decode() == {"note": "a &amp b &copy=1; A<&x"}
