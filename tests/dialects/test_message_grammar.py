"""What a message can be where it is kept to a tool's schema: all that a dialect writes, and nothing else."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator
from message_grammars import AWKWARD, TextMaker, find_ends, is_in

from ferrule.conversation import Conversation, Message, Text, ToolCall, ToolResult, tool_message, user
from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.catalogue import get_notation, load_families
from ferrule.dialects.message_grammar import make_message_grammar
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
        maker = TextMaker(7)
        for _ in range(60):
            pieces = maker.make(grammar)
            calls, text = read(notation, pieces, tools, by_id=by_id)
            shown = (name, "".join(piece for piece, _ in pieces), calls)
            assert [fits(call, tools) for call in calls] == [spec.name], shown
            assert not text.strip(), shown
            assert is_in(grammar, shown[1]), shown


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
            assert all(is_in(grammar, text) for grammar in grammars), text
        others = [one for one in tools if one is not spec]
        assert not any(is_in(describe(name, tools, one.name), text) for one in others for text in written)


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
    grammar, maker = describe(name, tools, "auto"), TextMaker(11)
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


def list_prompts(dialect, tools):
    """A question, and the same after a call and its result: the conversations that a model may go on with."""
    asked = Conversation((user("Is it raining?"),))
    arguments = json.dumps(ARGUMENTS[tools[-1].name][0])
    call = ToolCall("call00001", tools[-1].name, arguments)
    yield asked
    yield Conversation(
        (*asked.messages, Message("assistant", (call,)), tool_message(ToolResult(call.id, call.name, (Text("yes"),))))
    )


@pytest.mark.parametrize("name", list_dialects())
def test_a_message_goes_on_where_the_prompt_ended(name):
    dialect = get_dialect(name)
    tools = (EXPRESSION,) if name == "nanochat" else TOOLS[1:2] if name == "nanochat-tools" else TOOLS
    maker = TextMaker(3)
    for conversation in list_prompts(dialect, tools):
        layout = dialect.layout(conversation, tools)
        opens = layout.opens + "".join(segment.text for segment in layout.prompt)
        grammar = dialect.grammar(tools, "required", opens=opens)
        for _ in range(20):
            text = "".join(piece for piece, _ in maker.make(grammar))
            reader = dialect.reader(tools, opens=opens)
            events = reader.feed(text) + reader.close(stopped=True)
            calls = [one for one in events if isinstance(one, CallFinished | CallMalformed)]
            said = "".join(one.text for one in events if isinstance(one, TextDelta))
            assert (len(calls), said.strip()) == (1, ""), (opens, text, events)
            assert fits(calls[0], tools), (opens, text, events)
        answer = Message(
            "assistant", (ToolCall("call00002", tools[-1].name, json.dumps(ARGUMENTS[tools[-1].name][0])),)
        )
        whole = dialect.layout(replace(conversation, messages=(*conversation.messages, answer)), tools)
        written = whole.text.removeprefix("".join(one.text for one in layout.with_prompt))
        left = {written[end:] for end in find_ends((grammar,), written, 0)}
        assert any(not one or one.startswith(layout.stops) for one in left), (opens, written, left)
