"""Nanochat's frame with any tools: offers as signatures, calls as Python."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule import tool
from ferrule.conversation import Conversation, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.dialects import get_dialect
from ferrule.dialects.copying import make_copy_grammar
from ferrule.dialects.grammar import ControlToken, GrammarSequence
from ferrule.dialects.notations.expression_or_call import make_expression_grammar
from ferrule.dialects.segments import Content, Control
from ferrule.dialects.signatures import make_call_grammar, make_copied_literals, write_signature
from ferrule.dialects.told_numbers import find_told_numbers, make_number_grammar
from ferrule.engines.constraints import GrammarMatcher, VocabularyIndex
from ferrule.errors import DialectError
from ferrule.events import CallFinished
from ferrule.formats.nanochat import load, read_offered_tools
from ferrule.tokens.render import render
from ferrule.tokens.tokenizer import ByteTokenizer, make_byte_tokenizer_json
from ferrule.toolspec import ToolSpec
from ferrule.training.synth import Mix, draw_examples, to_json

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


class Bytes:
    """The tokens are bytes, and one that ends."""

    control: ClassVar = {"<end>": 256}
    vocabulary_size = 257

    def decode_token(self, token):
        return bytes([token])


def is_in(grammar, text):
    matcher = GrammarMatcher(GrammarSequence((grammar, ControlToken("<end>"))), VocabularyIndex(Bytes()))
    for token in (*text.encode(), 256):
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return True


def spec_of(properties, required=()):
    return ToolSpec("f", "", {"type": "object", "properties": properties, "required": list(required)})


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


@pytest.mark.parametrize(
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
    with pytest.raises(DialectError, match=f"the tool 'f' can't be offered.*{says}"):
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
    grammar = DIALECT.make_grammar([own], ["1"])
    assert grammar is not None
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


FORECAST = ToolSpec(
    "forecast",
    "",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 1},
            "unit": {"enum": ["celsius", "a.b", 3], "default": "celsius"},
            "share": {"type": "number"},
            "alerts": {"type": "boolean", "default": False},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["city", "share"],
    },
)
GIVEN = st.fixed_dictionaries(
    {"city": st.text(max_size=12), "share": st.integers(-99, 99) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))},
    optional={
        "days": st.integers(-(10**12), 10**12),
        "unit": st.sampled_from(["celsius", "a.b", 3]),
        "alerts": st.booleans(),
        "tags": st.lists(st.text(max_size=6), max_size=3),
    },
)


@given(GIVEN)
def test_a_call_that_fits_the_signature_is_in_the_grammar(given_arguments):
    in_order = {name: given_arguments[name] for name in FORECAST.parameters["properties"] if name in given_arguments}
    written = DIALECT.write_call(ToolCall("1", "forecast", json.dumps(in_order)))
    assert is_in(make_call_grammar(FORECAST), written)


@pytest.mark.parametrize(
    "written",
    [
        "forecast()",
        'forecast(city="Oslo")',
        'forecast(share=1.5, city="Oslo")',
        'forecast(city="Oslo", share="1")',
        'forecast(city="Oslo", share=1, days=1.5)',
        'forecast(city="Oslo", unit="axb", share=1)',
        'forecast(city="Oslo", unit=celsius, share=1)',
        'forecast(city="Oslo", share=1, alerts=true)',
        'forecast(city="Oslo", share=1, tags=["a", 2])',
        'forecast(city="Oslo", share=1, tags=["a",])',
        'forecast(city="Oslo", share=1, color="red")',
        'forecast(city="Oslo", share=1',
        'forecast(city="Oslo, share=1)',
        "forecast(city='Oslo', share=1)",
    ],
)
def test_a_call_that_does_not_is_not(written):
    assert not is_in(make_call_grammar(FORECAST), written)


def test_optional_arguments_may_all_be_left_out():
    grammar = make_call_grammar(spec_of({"a": {"type": "integer"}, "b": {"type": "boolean"}, "c": {}}))
    fitting = ["f()", "f(a=1)", "f(b=True)", "f(a=1, b=False)", 'f(a=1, c="x")', 'f(b=True, c="")', 'f(c="\\"")']
    assert all(is_in(grammar, written) for written in fitting)
    assert not any(is_in(grammar, written) for written in ["f(, a=1)", "f(b=True, a=1)", "f(a=1,)"])
    assert is_in(make_call_grammar(spec_of({})), "f()")


@pytest.mark.parametrize(
    "expression",
    ["12 * (3 + 4)", "((1))", '"strawberry".count("r")', '"a=b()".count("=")', "'it\\'s'[::-1]", "len( 'é' )"],
)
def test_an_expression_is_one_and_no_call(expression):
    assert is_in(make_expression_grammar(), expression)


@pytest.mark.parametrize(
    "call",
    ["get_weather()", 'get_weather( city="Oslo")', "f(a=1)", "f( )", "1 = 1", "", "find(città", "len()", "x + 1"],
)
def test_a_call_by_name_is_no_expression(call):
    assert not is_in(make_expression_grammar(), call)


def test_every_message_of_the_training_data_is_in_the_grammar(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(make_byte_tokenizer_json(DIALECT.markers)))
    tokenizer = ByteTokenizer(tmp_path / "tokenizer.json")
    index, seen = VocabularyIndex(tokenizer), 0
    for example in draw_examples(8, 100, mix=Mix(tools=1.0)):
        data = to_json(example)
        conversation, tools = load(data), read_offered_tools(data)
        trace = render(conversation, DIALECT, tokenizer, tools=tools)
        ends = {tokenizer.control[name] for name in ("<|assistant_end|>", "<|python_end|>")}
        matcher = None
        # What was asked in later turns makes no call of an earlier one illegal.
        grammar = DIALECT.make_grammar(tools, [turn.user for turn in example.turns])
        for token, is_trained in zip(trace.ids, trace.mask, strict=True):
            if not is_trained:
                continue
            matcher = matcher or GrammarMatcher(grammar, index)
            assert matcher.allows(token), (tokenizer.decode_token(token), example)
            matcher.advance(token)
            if token in ends:
                matcher, seen = None, seen + 1
    assert seen > 150


COPY = make_copy_grammar(['Café A-17,  please\nsay "hi"', "Oslo"])


@pytest.mark.parametrize(
    "text", ["Oslo", "Café", "A-17", "A", "-", "Café A-17,  please", "17,  please\nsay", 'say "hi"', '"']
)
def test_whole_words_in_a_row_are_a_copy(text):
    assert is_in(COPY, json.dumps(text, ensure_ascii=False)[1:-1])


@pytest.mark.parametrize(
    "text", ["", "Osl", "slo", "oslo", "Caf", "Café ", " please", "A17", "please Oslo", "Oslo Oslo", "1"]
)
def test_anything_else_is_none(text):
    assert not is_in(COPY, text)


def test_combining_marks_stay_in_their_word():
    copy = make_copy_grammar(["un cafe\u0301s noir"])
    assert is_in(copy, "cafe\u0301s")
    assert not any(is_in(copy, part) for part in ("cafe", "cafe\u0301", "s noir"))


def test_scripts_without_spaces_are_copied_by_the_character():
    assert is_in(make_copy_grammar(["東京の天気は"]), "東京")


def test_what_utf8_cannot_hold_is_copied_as_it_is_shown():
    assert is_in(make_copy_grammar(["a \ud800 b"]), "a ? b")


def test_there_may_be_nothing_to_copy():
    assert make_copy_grammar([]) is make_copy_grammar(["", " \n"]) is None


def test_a_long_text_can_be_copied():
    text = " ".join(map(str, range(3_000)))
    assert is_in(make_copy_grammar([text]), text)


def copy_literals(text):
    return make_copied_literals([text], make_copy_grammar([text]))


def test_texts_of_calls_are_copies_or_defaults():
    unit = {"type": "string", "default": "km"}
    spec = spec_of({"city": {"type": "string"}, "unit": unit, "days": {"type": "integer"}})
    grammar = make_call_grammar(spec, copy_literals("from Oslo to Rome"))
    for arguments in (
        'city="Oslo", days=9',
        'city="Oslo to Rome", unit="km", days=9',
        'city="to", unit="Rome", days=1',
    ):
        assert is_in(grammar, f"f({arguments})")
    for arguments in ('city="Paris", days=9', 'city="km", days=9', 'city="", days=1'):
        assert not is_in(grammar, f"f({arguments})")


def test_numbers_of_calls_are_copied():
    spec = spec_of({"kilos": {"type": "number"}, "vintage": {"type": "integer"}})
    grammar = make_call_grammar(spec, copy_literals("7.25 kg of the 1,934, a dozen, for three thousand twenty"))
    for kilos, vintage in (("7.25", "1934"), ("3020", "12"), ("7", "-25"), ("7.0", "934"), ("2", "3000"), ("12", "0")):
        assert is_in(grammar, f"f(kilos={kilos}, vintage={vintage})")
    for kilos, vintage in (("1.25", "1934"), ("7.25", "1935"), ("7.25", "7.25"), ("7.2", "12")):
        assert not is_in(grammar, f"f(kilos={kilos}, vintage={vintage})")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("89,000 miles", "89000"),
        ("3.5k", "3500"),
        ("2.5 million", "2500000"),
        ("forty-two", "42"),
        ("two hundred and five", "205"),
        ("half a dozen", "6"),
        ("one and a half", "1.5"),
        ("the third one", "3"),
        ("two point five", "2.5"),
        ("minus 40%", "40"),
        ("A17", "17"),
        ("a hundred", "100"),
        ("twelve thousand three hundred and one", "12301"),
        ("9" * 5000, "9" * 5000),
    ],
    ids=lambda value: value[:20],
)
def test_numbers_are_found_as_people_write_them(text, number):
    assert Decimal(number) in find_told_numbers(text)


def test_a_long_number_is_copied_to_its_last_digit():
    long = "1234567890" * 5 + ".25"
    assert is_in(make_number_grammar(find_told_numbers(long), is_whole=False), long)
    make_number_grammar(find_told_numbers("9" * 5000), is_whole=True)  # more digits than Python reads as an int


def test_texts_of_expressions_are_copies_or_characters():
    grammar = make_expression_grammar(make_copy_grammar(["how many Ts in 'kitten'"]))
    assert all(is_in(grammar, written) for written in ['"kitten".count("t")', 'len("many Ts")', "3 * 4", '""'])
    assert not any(is_in(grammar, written) for written in ['"kittten".count("t")', "'kitten'[::-1]", '"itten"'])


def test_the_calculator_alone_copies_too():
    grammar = DIALECT.make_grammar([CALCULATOR], ["spell kitten"])
    assert grammar is not None
