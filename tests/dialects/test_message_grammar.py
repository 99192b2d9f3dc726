"""What a message can be where it is kept to a tool's schema: all that a dialect writes, and nothing else."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from grammar_matching import find_ends, is_text_of
from grammar_texts import AWKWARD, TextMaker
from jsonschema import Draft202012Validator
from template_cases import ALL as TEMPLATES

from ferrule.conversation import Conversation, Message, Reasoning, Text, ToolCall, ToolResult, tool_message, user
from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.dialects.family import NO_TEXT_BESIDE
from ferrule.dialects.message_grammar import make_message_grammar
from ferrule.dialects.notation import make_notation_without_calls
from ferrule.errors import DialectError
from ferrule.events import CallFinished, CallMalformed, TextDelta
from ferrule.toolspec import ToolSpec

PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "at": {"type": "array", "items": {"type": "number"}, "maxItems": 2}},
    "required": ["city"],
}
FORECAST = ToolSpec(
    "forecast",
    "The weather.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"enum": ["celsius", "a <b>", "it's"]},
            "share": {"type": "number"},
            "alerts": {"type": "boolean"},
            "note": {"type": ["string", "null"]},
            "level": {"enum": ["low", 3, None]},
        },
        "required": ["days"],
    },
)
NOW = ToolSpec("now", "The time.", {"type": "object", "properties": {}})
OPTIONAL = ToolSpec(
    "fore",
    "All may be left out.",
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}, "text": {}}},
)
NESTED = ToolSpec(
    "forecast_all",
    "Places.",
    {
        "type": "object",
        "properties": {
            "places": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
            "home": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "by": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        },
        "required": ["places"],
        "$defs": {"Place": PLACE},
    },
)
TOOLS = (OPTIONAL, FORECAST, NESTED, NOW)
EXPRESSION = ToolSpec(
    "calculator", "", {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
)
CODE = ToolSpec("python", "", {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]})
ONLY_TOOLS = {"nanochat": (EXPRESSION,), "fenced_code": (CODE,)}
# Its tokenizer has one token, which begins all of the markers.
SPELLED_OUT = {"minimax_m3": ("]<]minimax[>[",)}
NAMES = [*load_families()]


def get_tools(name):
    return ONLY_TOOLS.get(name, TOOLS)


def describe(name, tools, choice, **options):
    return make_message_grammar(load_families()[name], tools, choice, **options)


def read(notation, pieces, tools, *, by_id):
    """(the calls that are read, the text beside them)."""
    tokens = SPELLED_OUT.get(notation.name, notation.markers)
    spelled_out = dict.fromkeys(notation.markers, tokens) if notation.name in SPELLED_OUT and by_id else ()
    reader = notation.reader(tools, spelled_out=spelled_out)
    events = []
    pattern = re.compile(f"({'|'.join(map(re.escape, sorted(tokens, key=len, reverse=True)))})")
    for text, is_marker in pieces:
        for at, part in enumerate(pattern.split(text) if is_marker and by_id else [text]):
            events += reader.feed(part, (at % 2 == 1) if by_id else None)
    events += reader.close(stopped=True)
    calls = [one for one in events if isinstance(one, CallFinished | CallMalformed)]
    return calls, "".join(one.text for one in events if isinstance(one, TextDelta))


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_allowed_is_read_as_one_call_that_fits(name, by_id):
    notation, tools = get_notation(name), get_tools(name)
    for spec in tools:
        grammar = describe(name, tools, spec.name)
        maker = TextMaker(Random(7))
        for _ in range(60):
            pieces = maker.make(grammar)
            calls, text = read(notation, pieces, tools, by_id=by_id)
            shown = (name, "".join(piece for piece, _ in pieces), calls)
            assert [fits(call, tools) for call in calls] == [spec.name], shown
            assert not text.strip(), shown
            assert is_text_of(grammar, shown[1]), shown


ARGUMENTS = {
    "now": [{}],
    "fore": [{}, {"a": ""}, {"b": True}, {"a": "x", "b": False}, {"a": "\n", "text": "it's"}],
    "forecast": [
        {"days": 3},
        *({"city": text, "days": -1} for text in AWKWARD),
        *({"days": 0, "unit": unit} for unit in ("celsius", "a <b>", "it's")),
        *({"days": 2, "level": level} for level in ("low", 3, None)),
        *({"days": 2, "note": note} for note in ("", "a\nb", "[1", None)),
        {"days": 7, "share": 2.5, "alerts": True},
        {"city": "Zürich", "days": 10**12, "unit": "celsius", "share": -1, "alerts": False, "note": None, "level": 3},
    ],
    "forecast_all": [
        {"places": []},
        {"places": [{"city": "Oslo"}, {"city": 'a "b"', "at": [1, 2.5]}], "home": None},
        {"places": [], "home": {"city": "<x>"}, "tags": ["", "</parameter>", "it's", "\\"]},
        {"places": [], "by": "day"},
        {"places": [], "by": ["day", "week\n"]},
    ],
    "calculator": [{"expression": text} for text in ("12 * 34", '"strawberry".count("r")', "(1+2)*3")],
    "python": [{"code": text} for text in ("print(1)", "", "a = 1\n\nif a < 2:\n    print('`')\n", "</x>")],
}


@pytest.mark.parametrize("name", NAMES)
def test_what_a_dialect_writes_is_allowed(name):
    notation, tools = get_notation(name), get_tools(name)
    for spec in tools:
        grammars = [describe(name, tools, choice) for choice in (spec.name, "required", None)]
        written = [*write_all(notation, spec, tools)]
        assert len(written) >= len(ARGUMENTS[spec.name]) * 0.4
        for text in written:
            assert all(is_text_of(grammar, text) for grammar in grammars), text
        others = [one for one in tools if one is not spec]
        assert not any(is_text_of(describe(name, tools, one.name), text) for one in others for text in written)


def write_all(notation, spec, tools):
    """The messages that only consist of a call of a tool, without those that the notation can't write."""
    for arguments in ARGUMENTS[spec.name]:
        call = ToolCall("call_1", spec.name, json.dumps(arguments, ensure_ascii=False))
        with suppress(DialectError):
            yield notation.message(Message("assistant", (call,)), tools)


def fits(call, tools):
    """The name of the tool of a call that could be read as it was written, and fits that tool's schema."""
    if not isinstance(call, CallFinished) or set(call.repairs) > {"null_as_text"}:
        return None
    spec = next(one for one in tools if one.name == call.call.name)
    return spec.name if Draft202012Validator(spec.parameters).is_valid(call.call.decode()) else None


@pytest.mark.parametrize("name", NAMES)
def test_without_a_choice_any_text_may_come_before_a_call(name):
    notation, tools = get_notation(name), get_tools(name)
    grammar, maker = describe(name, tools, "auto"), TextMaker(Random(11))
    counts = Counter()
    for _ in range(150):
        pieces = maker.make(grammar)
        for by_id in (False, True):
            calls, _text = read(notation, pieces, tools, by_id=by_id)
            shown = (name, by_id, "".join(piece for piece, _ in pieces), calls)
            assert len(calls) < 2, shown
            assert all(fits(call, tools) for call in calls), shown
            counts[len(calls)] += 1
    assert counts[0] > 20
    assert counts[1] > 20


CALL_TOOLS = {"nanochat": (EXPRESSION,), "nanochat-tools": (FORECAST, NOW, EXPRESSION)}


def make_call(spec, identifier):
    return ToolCall(identifier, spec.name, json.dumps(ARGUMENTS[spec.name][0]))


def list_prompts(dialect, tools):
    """The end of the prompt after a question, and after a call and its result: (how it ends, the conversation)."""
    call = make_call(tools[0], "call00001")
    asked = Conversation((user("Is it raining?"),))
    called = (Message("assistant", (call,)), tool_message(ToolResult(call.id, call.name, (Text("yes"),))))
    for conversation in (asked, replace(asked, messages=(*asked.messages, *called))):
        layout = dialect.layout(conversation, tools)
        yield layout.opens + "".join(segment.text for segment in layout.prompt), conversation


def read_answer(dialect, text, tools, opens):
    """(the calls that are read, the text beside them)."""
    reader = dialect.reader(tools, opens=opens)
    events = reader.feed(text) + reader.close(stopped=True)
    calls = [one for one in events if isinstance(one, CallFinished | CallMalformed)]
    return calls, "".join(one.text for one in events if isinstance(one, TextDelta))


def check_answers(dialect, tools):
    maker = TextMaker(Random(3))
    for opens, _ in list_prompts(dialect, tools):
        for choice, least in (("required", 1), ("auto", 0)):
            grammar = dialect.grammar(tools, choice, opens=opens)
            for _ in range(30):
                text = "".join(piece for piece, _ in maker.make(grammar))
                calls, said = read_answer(dialect, text, tools, opens)
                assert least <= len(calls) <= 1, (choice, opens, text, calls)
                assert all(fits(call, tools) for call in calls), (choice, opens, text, calls)
                assert not (least and said.strip()), (choice, opens, text)


@pytest.mark.parametrize("name", list_dialects())
def test_a_message_goes_on_where_the_prompt_ended(name):
    check_answers(get_dialect(name), CALL_TOOLS.get(name, TOOLS))


@pytest.mark.parametrize("name", list_dialects())
def test_the_messages_that_a_dialect_lays_out_are_allowed(name):
    dialect = get_dialect(name)
    tools = CALL_TOOLS.get(name, TOOLS)
    call = make_call(tools[-1], "call00002")
    answers = [(call,), (Text("It is."),), (Reasoning("Is it?"), Text("It is.")), (Reasoning("Is it?"), call)]
    if NO_TEXT_BESIDE not in dialect.family.losses:
        answers += [(Text("Let me see."), call), (Reasoning("Is it?"), Text("Let me see."), call)]
    for opens, conversation in list_prompts(dialect, tools):
        grammars = {choice: dialect.grammar(tools, choice, opens=opens) for choice in ("auto", "required")}
        before = dialect.layout(conversation, tools)
        for parts in answers:
            whole = replace(conversation, messages=(*conversation.messages, Message("assistant", parts)))
            written = dialect.layout(whole, tools).text.removeprefix("".join(one.text for one in before.with_prompt))
            for choice in grammars if parts == (call,) else ("auto",):
                left = {written[end:] for end in find_ends(grammars[choice], written)}
                assert any(not one or one.startswith(before.stops) for one in left), (choice, opens, written)


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_answers_after_a_chat_template_are_those_of_its_notation(name):
    check_answers(TEMPLATES[name], (EXPRESSION,) if name == "embedded" else TOOLS)


def test_a_command_may_stand_alone_where_the_notation_writes_it_so():
    bash = ToolSpec("bash", "", {"type": "object", "properties": {"command": {"type": "string"}}})
    notation, grammar = get_notation("cwm"), describe("cwm", (bash,), "bash")
    for command in ("ls -l", "echo '</x>'\ncat a", '["', "", " ls"):
        text = notation.call(ToolCall("1", "bash", json.dumps({"command": command})))
        assert is_text_of(grammar, text)
        assert ('"command"' in text) is (command in ('["', "", " ls"))
    maker = TextMaker(Random(5))
    for _ in range(60):
        calls, said = read(notation, maker.make(grammar), (bash,), by_id=False)
        assert [fits(call, (bash,)) for call in calls] == ["bash"]
        assert not said.strip()


def test_a_tool_that_is_not_offered_or_not_expressible_is_named():
    with pytest.raises(DialectError, match="must call the tool 'later', and the offered tools are: fore, forecast"):
        describe("hermes", TOOLS, "later")
    with pytest.raises(DialectError, match="must call a tool, and the offered tools are: none"):
        describe("hermes", (), "required")
    with pytest.raises(DialectError, match="calls of 'now' can't be described in the fenced_code notation"):
        describe("fenced_code", (CODE, NOW), "required")
    with pytest.raises(DialectError, match="the tool 'forecast_all': its parameter 'places' takes a list of lists"):
        get_dialect("nanochat-tools").grammar((NESTED,), "required")
    marked = ToolSpec("a<tool_call>", "", {"type": "object", "properties": {}})
    with pytest.raises(DialectError, match="the name 'a<tool_call>' holds one of its markers"):
        describe("hermes", (marked,), "auto")
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    with pytest.raises(DialectError, match=r"calls of 'f' .*: an argument takes objects or lists .* without end"):
        describe("gemma4", (ToolSpec("f", "", tree),), "f")
    unnamed = ToolSpec("f", "", {"type": "object", "required": ["x"]})
    with pytest.raises(DialectError, match=r"calls of 'f' .*: its schema requires x without describing it"):
        describe("glm45", (unnamed,), "f")
    cut = ToolSpec("f", "", {"type": "object", "properties": {"a": {"enum": ["x</arg_value>"]}}})
    with pytest.raises(DialectError, match=r"calls of 'f' .*x</arg_value>"):
        describe("glm45", (cut,), "f")
    with pytest.raises(DialectError, match=r'calls of .* an argument\'s schema refers to "#", and can only'):
        describe("qwen3_coder", (ToolSpec("f", "", tree),), "f")


def test_any_text_is_allowed_without_calls():
    assert describe("hermes", TOOLS, "none") is None
    assert describe("hermes", (), "auto") is None
    assert make_message_grammar(make_notation_without_calls("it has none").family, TOOLS, "auto") is None
