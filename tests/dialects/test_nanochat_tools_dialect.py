"""Nanochat's frame with any tools: offers as signatures, calls as Python."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from grammar_checks import is_in, spec_of
from hypothesis import given
from hypothesis import strategies as st

from ferrule import tool
from ferrule.conversation import Conversation, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.dialects import get_dialect
from ferrule.dialects.call_grammar import make_call_grammar
from ferrule.dialects.segments import Content, Control
from ferrule.dialects.signatures import write_signature
from ferrule.errors import DialectError
from ferrule.events import CallFinished
from ferrule.toolspec import ToolSpec
from tables import each_case

DIALECT = get_dialect("nanochat-tools")
CALCULATOR = ToolSpec("calculator", "Computes.", {"type": "object", "properties": {"expression": {"type": "string"}}})
WEATHER = ToolSpec(
    "get_weather",
    "Weather forecast for a city. Updated hourly.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
    },
)
SIGNATURE = "get_weather(city: str, days: int = 1)  # Weather forecast for a city"
VALUES = st.one_of(
    st.text(max_size=12),
    st.integers(-(10**9), 10**9),
    st.floats(-1e6, 1e6),
    st.booleans(),
    st.none(),
    st.lists(st.one_of(st.text(max_size=5), st.integers(0, 99)), max_size=3),
)


def read_calls(text):
    reader = DIALECT.reader([CALCULATOR, WEATHER])
    events = [*reader.feed(text, None), *reader.close(True)]
    return [(e.call.name, json.loads(e.call.arguments)) for e in events if isinstance(e, CallFinished)]


def test_an_offer_stands_between_tokens_of_its_own():
    segments = DIALECT.layout(Conversation((user("Hi"),)), [CALCULATOR, WEATHER]).segments
    assert segments[:4] == (
        Control("<|bos|>"),
        Control("<|tools_start|>"),
        Content("calculator\n" + SIGNATURE),
        Control("<|tools_end|>"),
    )


@pytest.mark.parametrize("tools", [[], [CALCULATOR]])
def test_without_other_tools_a_conversation_is_nanochats(tools):
    call = ToolCall("call_1", "calculator", '{"expression": "6 * 7"}')
    conversation = Conversation(
        (user("?"), assistant(call), tool_message(ToolResult("call_1", "calculator", (Text("42"),))), assistant("42."))
    )
    assert DIALECT.layout(conversation, tools).segments == get_dialect("nanochat").layout(conversation).segments


def test_how_a_call_begins_decides_whose_it_is():
    opened, closed = "<|python_start|>", "<|python_end|>"
    assert read_calls(f'{opened}get_weather(city="Oslo", days=2){closed}') == [
        ("get_weather", {"city": "Oslo", "days": 2})
    ]
    assert read_calls(f"{opened}now(){closed}") == [("now", {})]
    assert read_calls(f'{opened}len("a=b") * (1 + 2){closed}') == [
        ("calculator", {"expression": 'len("a=b") * (1 + 2)'})
    ]


@given(arguments=st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, max_size=4))
def test_every_call_is_read_as_it_was_written(arguments):
    written = DIALECT.call(ToolCall("call_1", "any_tool", json.dumps(arguments)))
    if any(marker in written[16:-14] for marker in DIALECT.markers):
        return
    assert read_calls(written) == [("any_tool", arguments)]


@pytest.mark.parametrize("arguments", [{"expression": "f(a=1)"}, {"expression": "1 + 1", "style": "exact"}, {}])
def test_what_is_no_expression_is_written_with_the_calculators_name(arguments):
    written = DIALECT.call(ToolCall("call_1", "calculator", json.dumps(arguments)))
    assert written.startswith("<|python_start|>calculator(")
    assert read_calls(written) == [("calculator", arguments)]


@each_case(
    ("properties", "signature"),
    [
        ({}, "f()"),
        ({"a": {"type": "number"}, "b": {"type": "boolean", "default": False}}, "f(a: float, b: bool = False)"),
        ({"a": {"enum": ["x", "y"]}}, 'f(a: "x" | "y")'),
        ({"a": {"type": "array", "items": {"type": "integer"}}}, "f(a: list[int])"),
        ({"a": {"type": "array", "items": {"enum": ["x", "é"]}}}, 'f(a: list["x" | "é"])'),
        ({"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "f(a: str)"),
        ({"a": {}}, "f(a: str)"),
        ({"b": {"type": "string"}}, "f(b: str = None)"),
        ({"b": {"type": "array", "items": {"type": "string"}, "default": ["é"]}}, 'f(b: list[str] = ["é"])'),
    ],
)
def test_signatures(properties, signature):
    assert write_signature(spec_of(properties, ["a"] if "a" in properties else [])) == signature


def test_an_exact_number_is_a_number():
    @tool
    def pay(amount: Decimal) -> str:
        """Pay."""
        return f"{amount}"

    assert write_signature(pay.spec) == "pay(amount: float)  # Pay"


def test_a_signature_of_a_function_with_everything():
    @tool
    def search(words: list[str], where: str | None = None, exact: bool = False) -> str:
        """Search for words."""
        return f"{words} {where} {exact}"

    expected = "search(words: list[str], where: str = None, exact: bool = False)  # Search for words"
    assert write_signature(search.spec) == expected


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object"}, "'a' takes an object"),
        ({"type": "array", "items": {"type": "object"}}, "'a' takes a list of lists or of objects"),
        ({"type": "array", "items": {"type": "array"}}, "'a' takes a list of lists or of objects"),
        ({"type": "array", "prefixItems": [{"type": "integer"}]}, "'a' takes a list of fixed places"),
    ],
)
def test_nested_objects_are_refused_by_name(schema, says):
    with pytest.raises(DialectError, match=f"can't be offered the tool 'f': .*{says}"):
        DIALECT.layout(Conversation((user("Hi"),)), [spec_of({"a": schema}, ["a"])])


def test_an_optional_parameter_that_needs_an_object_is_left_out_and_told():
    spec = spec_of({"a": {"type": "string"}, "extra": {"type": "object"}, "$x": {"type": "string"}}, ["a"])
    assert write_signature(spec) == "f(a: str)"
    assert is_in(make_call_grammar(spec), 'f(a="x")')
    layout = DIALECT.layout(Conversation((user("Hi"),)), [spec])
    expected = "f is offered without extra, $x: a signature has no place for what they take"
    assert [(loss.kind, loss.detail) for loss in layout.losses] == [("tool", expected)]


@pytest.mark.parametrize("name", ["$filter", "first name", "a.b", "x=y", ""])
def test_a_parameter_whose_name_no_call_can_have_is_refused(name):
    with pytest.raises(DialectError, match=r"the name of its parameter .* has other signs"):
        DIALECT.offer([spec_of({name: {"type": "string"}}, [name])])


def test_another_tool_named_calculator_is_offered_and_called_as_itself():
    own = ToolSpec(
        "calculator", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    )
    assert DIALECT.offer([own]) == "<|tools_start|>calculator(a: int)  # Adds<|tools_end|>"
    assert [is_in(make_call_grammar(own), written) for written in ("calculator(a=1)", "1 + 2")] == [True, False]


def test_a_sentence_of_a_description_ends_before_a_capital():
    for first in ("The weather, e.g. for Oslo", "A city, e.g. Paris or Rome, in the atlas", "The results of A vs. B"):
        assert write_signature(ToolSpec("f", f"{first}. Updated hourly.", {})) == f"f()  # {first}"


def test_nine_tools_are_too_many():
    with pytest.raises(DialectError, match="at most 8"):
        DIALECT.offer([spec_of({})] * 9)


def test_a_long_description_is_cut():
    line = write_signature(ToolSpec("f", "word " * 60, {}))
    assert line.startswith("f()  # word word")
    assert line.endswith("…")
    assert len(line) == len("f()  # ") + 120
