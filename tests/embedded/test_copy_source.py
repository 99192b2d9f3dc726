"""What the arguments of a call are copied from: the words and numbers that a model was given."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from grammar_checks import is_in, spec_of

from ferrule.dialects import get_dialect
from ferrule.dialects.call_grammar import make_call_grammar
from ferrule.dialects.notations.expression import make_expression_grammar
from ferrule.embedded.copy_source import CopySource
from ferrule.embedded.copying import make_copy_grammar
from ferrule.embedded.guide import EmbeddedGuide
from ferrule.embedded.missing import has_what_is_needed
from ferrule.embedded.told_numbers import find_told_numbers, make_number_grammar
from ferrule.engines.constraints import GrammarMatcher, VocabularyIndex
from ferrule.formats.nanochat import load, read_offered_tools
from ferrule.tokens.render import render
from ferrule.tokens.tokenizer import ByteTokenizer, make_byte_tokenizer_json
from ferrule.toolspec import ToolSpec
from ferrule.training.synth import Mix, draw_examples, to_json
from tables import each_case

GUIDE = EmbeddedGuide()
DIALECT = get_dialect("nanochat-tools")
CALCULATOR = ToolSpec("calculator", "Computes.", {"type": "object", "properties": {"expression": {"type": "string"}}})


def test_almost_every_message_of_the_training_data_is_in_the_grammar(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(make_byte_tokenizer_json(DIALECT.markers)))
    tokenizer = ByteTokenizer(tmp_path / "tokenizer.json")
    index, seen, refused = VocabularyIndex(tokenizer), 0, 0
    for example in draw_examples(8, 100, mix=Mix(tools=1.0)):
        data = to_json(example)
        conversation, tools = load(data), read_offered_tools(data)
        trace = render(conversation, DIALECT, tokenizer, tools=tools)
        ends = {tokenizer.control[name] for name in ("<|assistant_end|>", "<|python_end|>")}
        # What was asked in later turns makes no call of an earlier one illegal.
        grammar = GUIDE.make_grammar(tools, [turn.user for turn in example.turns], "")
        matcher = None
        for token, is_trained in zip(trace.ids, trace.mask, strict=True):
            if not is_trained:
                continue
            if matcher is None:
                matcher, seen = GrammarMatcher(grammar, index), seen + 1
            if not matcher.allows(token):
                refused += 1
                break
            matcher.advance(token)
            matcher = None if token in ends else matcher
    assert seen > 150
    assert refused < seen / 25  # what people don't call a thing (see `find_boundaries`) is now and then meant


COPY = make_copy_grammar(['Café A-17,  please\nsay "hi"', "Oslo"])


@each_case("text", ["Oslo", "Café", "A-17", "A", "-", "Café A-17,  please", "17,  please\nsay", 'say "hi"', '"'])
def test_whole_words_in_a_row_are_a_copy(text):
    assert is_in(COPY, json.dumps(text, ensure_ascii=False)[1:-1])


@each_case("text", ["", "Osl", "slo", "oslo", "Caf", "Café ", " please", "A17", "please Oslo", "Oslo Oslo", "1"])
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


def told_grammar(spec, told, request=""):
    return make_call_grammar(spec, CopySource([told], request).choose_literals(spec))


def test_texts_of_calls_are_copies_or_defaults():
    unit = {"type": "string", "default": "km"}
    spec = spec_of({"city": {"type": "string"}, "unit": unit, "days": {"type": "integer"}})
    grammar = told_grammar(spec, "from Oslo to Rome for 9 days")
    for arguments in (
        'city="Oslo", days=9',
        'city="Oslo to Rome", unit="km", days=9',
        'city="Rome", unit="Rome", days=1',
    ):
        assert is_in(grammar, f"f({arguments})")
    for arguments in ('city="Paris", days=9', 'city="km", days=9', 'city="", days=9', 'city="to", days=9'):
        assert not is_in(grammar, f"f({arguments})")


TEXT = spec_of({"x": {"type": "string"}}, ["x"])


def list_copies(told, spec=TEXT, request="", after=""):
    """All that the text argument `x` may be, of the words and signs in a row of what was told."""
    grammar = told_grammar(spec, told, request)
    words = list(re.finditer(r"\w+|[^\w\s]", told))
    found = {told[first.start() : last.end()] for first in words for last in words if first.start() < last.end()}
    return {text for text in found if is_in(grammar, f"{spec.name}(x={json.dumps(text)}{after})")}


def test_a_copy_has_no_small_words_at_its_ends():
    assert list_copies("feed the red panda of it") == {
        "feed",
        "red",
        "panda",
        "feed the red",
        "feed the red panda",
        "red panda",
    }


def test_a_name_is_not_cut_in_two():
    found = list_copies("when is Edith Crane at B-77")
    assert {"Edith Crane", "B-77"} <= found
    assert not found & {"Edith", "Crane", "B", "77"}
    assert {"Oslo", "Monday"} <= list_copies("so Oslo Monday")
    assert {"Ann"} <= list_copies("Call Ann")
    assert {"EDITH", "CRANE"} <= list_copies("IS EDITH CRANE IN")
    assert list_copies("WEATHER IN BERLIN") == {"WEATHER", "BERLIN", "WEATHER IN BERLIN"}
    found = list_copies("sun in Frankfurt am Main")
    assert found == {"sun", "Frankfurt am Main", "sun in Frankfurt am Main"}
    assert {"Ann", "Monday"} <= list_copies("so Ann of Monday")


def test_a_quotation_is_copied_whole():
    for told in ('say "the end" now', "say 'the end' now", "say ‘the end’ now", "I don't say 'the end'"):
        assert "the end" in list_copies(told)
        assert not {"end", "the", 'say "the', "say 'the"} & list_copies(told)
    assert "cats' names" in list_copies("the cats' names")


def test_the_words_of_a_tool_lead_to_a_value():
    feed = replace(TEXT, name="feed_fish", description="Feeds a tank.")
    assert list_copies("feed tank T2", feed) == {"T2"}
    # Where nothing else was told, they may be one.
    assert list_copies("feed the fish", feed) >= {"fish"}


def test_numbers_that_are_all_needed_are_in_no_text():
    told = "3 kilos of chard"
    sized = spec_of({"x": {"type": "string"}, "n": {"type": "integer"}}, ["x", "n"])
    assert list_copies(told, sized, request=told, after=", n=3") == {"kilos", "chard", "kilos of chard"}
    assert {"3", "3 kilos"} <= list_copies(told, sized, after=", n=3")
    assert {"3", "3 kilos"} <= list_copies(told, request=told)


def test_numbers_of_calls_are_copied():
    spec = spec_of({"kilos": {"type": "number"}, "vintage": {"type": "integer"}})
    grammar = told_grammar(spec, "7.25 kg of the 1,934, a dozen, for three thousand twenty")
    for kilos, vintage in (("7.25", "1934"), ("3020", "12"), ("3000", "20"), ("12.0", "3")):
        assert is_in(grammar, f"f(kilos={kilos}, vintage={vintage})")
    for kilos, vintage in (("1.25", "1934"), ("7.25", "1935"), ("7.25", "7.25"), ("7", "12"), ("12", "934")):
        assert not is_in(grammar, f"f(kilos={kilos}, vintage={vintage})")


def test_without_a_number_none_is_written():
    number, numbers = {"type": "integer"}, {"type": "array", "items": {"type": "integer"}}
    optional = told_grammar(spec_of({"a": number, "b": {"type": "integer", "default": 3}}), "at 12:30")
    assert is_in(optional, "f()")
    assert is_in(optional, "f(b=3)")
    assert not any(is_in(optional, f"f({written})") for written in ("a=12", "a=", "b=30", "a=0"))
    assert is_in(told_grammar(spec_of({"a": numbers}, ["a"]), "at 12:30"), "f(a=[])")
    assert not has_what_is_needed(spec_of({"a": number}, ["a"]), CopySource(["at 12:30"]))


def test_a_tool_is_not_called_before_it_was_told_what_it_needs():
    text, number = {"type": "string"}, {"type": "integer"}

    def is_callable(told, properties):
        return has_what_is_needed(spec_of(properties, properties), CopySource(told))

    assert is_callable(["for an hour", "12"], {"a": number, "b": number})
    assert not is_callable(["for an hour"], {"a": number, "b": number})
    assert not is_callable(["the f of it"], {"a": text})
    assert is_callable(["the red panda"], {"a": text, "b": {"type": "array", "items": text}})
    assert not is_callable(["the panda"], {"a": text, "b": {"type": "array", "items": text}})
    assert is_callable(["send 🎉"], {"a": text, "b": text})
    assert is_callable(["the"], {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}})
    assert is_callable([], {"a": text, "b": number})
    grammar = GUIDE.make_grammar([spec_of({"a": number}, ["a"])], ["so"], "so")
    assert "f(" not in repr(grammar)


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
        ("10 000 crowns", "10000"),
        ("1.234,56", "1234.56"),
        ("1,5 kg", "1.5"),
        ("1e3", "1000"),
        ("-.75", "0.75"),
        ("10kg", "10"),
        ("30x40", "40"),
        ("rated 4/5", "4"),
        ("1,2,3", "3"),
        ("pages 100 200", "200"),
        ("half a million", "500000"),
        ("both", "2"),
        ("a fortnight", "14"),
        ("a hundred", "100"),
        ("twelve thousand three hundred and one", "12301"),
        ("9" * 5000, "9" * 5000),
    ],
    ids=lambda value: value[:20],
)
def test_numbers_are_found_as_people_write_them(text, number):
    assert Decimal(number) in find_told_numbers(text)


@each_case(
    ("text", "number"),
    [
        ("19:30", "19"),
        ("2,300", "300"),
        ("10 000", "10"),
        ("1.234,56", "1.234"),
        ("2024-05-12", "12"),
        ("12/05/2024", "5"),
        ("10.0.0.1:80", "80"),
        ("A17", "17"),
        ("v2", "2"),
        ("0x10", "10"),
        ("1e999999999", "1"),
        ("1e-999999999", "1"),
        ("7.25", "7"),
        ("the usual amount", "1"),
    ],
)
def test_no_number_is_cut_out_of_something_else(text, number):
    assert Decimal(number) not in find_told_numbers(text)


def test_a_long_number_is_copied_to_its_last_digit():
    long = "1234567890" * 5 + ".25"
    assert is_in(make_number_grammar(find_told_numbers(long), is_whole=False), long)
    make_number_grammar(find_told_numbers("9" * 5000), is_whole=True)  # more digits than Python reads as an int


def test_texts_of_expressions_are_copies_or_characters():
    grammar = make_expression_grammar(make_copy_grammar(["how many Ts in 'kitten'"]))
    assert all(is_in(grammar, written) for written in ['"kitten".count("t")', 'len("many Ts")', "3 * 4", '""'])
    assert not any(is_in(grammar, written) for written in ['"kittten".count("t")', "'kitten'[::-1]", '"itten"'])


def test_the_calculator_alone_copies_too():
    grammar = GUIDE.make_grammar([CALCULATOR], ["spell kitten"], "")
    assert grammar is not None
