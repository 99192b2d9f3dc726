"""Numbers, words, expressions and noise: what is drawn, how it is said, and what is held out."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.arithmetic.evaluate import calculate
from ferrule.training.synth.expressions import draw_expression
from ferrule.training.synth.grammar import REPLY_FORMS
from ferrule.training.synth.noise import Piece, add_noise
from ferrule.training.synth.number_words import write_in_words, write_number
from ferrule.training.synth.numbers import HINT_KINDS, Hint, Number, draw_number, group_thousands
from ferrule.training.synth.parsing import parse_fields
from ferrule.training.synth.replies import write_call, write_reply
from ferrule.training.synth.words import (
    count_call,
    draw_letter,
    draw_phrase,
    draw_word,
    list_names,
    list_real_words,
    list_things,
    number_fits,
)
from tables import each_case

SEEDS = st.integers(0, 2**32)


@each_case(
    ("number", "words"),
    [
        (0, "zero"),
        (21, "twenty-one"),
        (100, "one hundred"),
        (342, "three hundred and forty-two"),
        (1005, "one thousand and five"),
        (12_300, "twelve thousand three hundred"),
        (2_000_000, "two million"),
        (10**12 + 1, "one trillion and one"),
    ],
)
def test_numbers_in_words(number: int, words: str) -> None:
    assert write_in_words(number) == words


@given(SEEDS, st.sampled_from(HINT_KINDS), st.booleans(), st.booleans())
def test_a_drawn_number_is_plain_and_on_its_side_of_the_split(
    seed: int, kind: str, held_out: bool, sayable: bool
) -> None:
    number = draw_number(random.Random(seed), Hint(kind), held_out=held_out, sayable=sayable)
    assert number.shown.replace(",", "") == number.call
    assert number_fits(number.call.lstrip("-"), held_out)
    assert calculate(f"{number.call} * 1") == calculate(number.call)


@given(SEEDS, st.integers(-50, 50), st.integers(0, 100))
def test_a_range_is_kept(seed: int, low: int, width: int) -> None:
    for kind in ("int", "decimal", "money"):
        number = draw_number(random.Random(seed), Hint(kind, low, low + width))
        assert low <= number.value <= low + width


def test_a_number_is_said_in_many_ways() -> None:
    rng = random.Random(1)
    ways = {write_number(rng, Number("2500000"), sayable=wordy) for wordy in (True, False) for _ in range(400)}
    assert {"2500000", "2,500,000", "2.5 million", "2.5m"} <= ways
    assert "a dozen" in {write_number(rng, Number("12"), sayable=True) for _ in range(200)}
    assert {"negative five", "minus five", "-5"} <= {write_number(rng, Number("-5"), sayable=True) for _ in range(400)}
    assert "three point five" in {write_number(rng, Number("3.5"), sayable=True) for _ in range(200)}


def test_beside_a_sign_a_number_stays_in_digits() -> None:
    rng = random.Random(2)
    for before, after in (("$", " "), ("", "%"), ("*", ""), (" ", "+")):
        said = {write_number(rng, Number("12"), before=before, after=after, sayable=True) for _ in range(200)}
        assert said == {"12"}


@pytest.mark.parametrize(
    ("plain", "shown"),
    [("1234", "1,234"), ("-1234567.8901", "-1,234,567.8901"), ("0.1234", "0.1234"), ("1" * 13, "1" * 13)],
)
def test_grouping(plain: str, shown: str) -> None:
    assert group_thousands(plain) == shown


@given(SEEDS)
def test_held_out_words_are_never_drawn_in_training(seed: int) -> None:
    rng = random.Random(seed)
    training = {draw_word(rng).lower() for _ in range(20)}
    held_out = {draw_word(rng, held_out=True).lower() for _ in range(20)}
    assert not training & held_out


def test_the_lists_are_long_and_their_words_single() -> None:
    assert len(list_real_words(True)) + len(list_real_words(False)) >= 1500
    assert not set(list_real_words(True)) & set(list_real_words(False))
    assert len(list_names()) >= 150
    assert len(list_things()) >= 200
    assert all(singular and plural != singular for plural, singular in list_things())


@given(SEEDS)
def test_nothing_drawn_breaks_out_of_a_quoted_string(seed: int) -> None:
    rng = random.Random(seed)
    text = draw_phrase(rng) if seed % 2 else draw_word(rng)
    letter = draw_letter(rng, text)
    assert '"' not in text
    assert "\\" not in text
    assert calculate(f'len("{text}")') == str(len(text))
    counted = text.lower().count(letter.lower())
    assert calculate(count_call(text, letter)) == str(counted)


def test_letters_are_counted_in_the_cases_that_occur() -> None:
    assert count_call("Anna", "a") == '"Anna".count("a") + "Anna".count("A")'
    assert count_call("ANNA", "a") == '"ANNA".count("A")'
    assert count_call("banana", "A") == '"banana".count("a")'
    assert count_call("hello", "Z") == '"hello".count("z")'
    assert count_call("1101", "1") == '"1101".count("1")'


@given(SEEDS)
def test_an_expression_is_one_that_the_calculator_reads(seed: int) -> None:
    expression = draw_expression(random.Random(seed))
    result = calculate(expression.call)
    assert not result.startswith("error") or "zero" in result
    tidy = expression.said.replace(" ", "").replace(",", "").replace("−", "-")
    for spoken, python in (("^", "**"), ("×", "*"), ("x", "*"), ("X", "*"), ("·", "*"), ("÷", "/"), (":", "/")):
        tidy = tidy.replace(spoken, python)
    implicit = expression.call.replace(" ", "").replace("*(", "(")
    assert tidy in (expression.call.replace(" ", ""), implicit) or tidy.replace("*(", "(") == implicit


@given(SEEDS, st.text("abcXYZ019.-' ", min_size=1, max_size=12))
def test_noise_leaves_what_stands_in_a_slot_alone(seed: int, value: str) -> None:
    value = " ".join(value.split())
    pieces = [Piece("Please reverse the following word, will you: "), Piece(value, fixed=True), Piece(" for me?")]
    assert value in add_noise(random.Random(seed), pieces, "reverse")


def test_replies_are_in_the_users_terms() -> None:
    times = parse_fields('The letter "{letter}" appears {r} times in "{word}".', REPLY_FORMS)
    assert (
        write_reply(times, {"letter": "e", "word": "hen"}, {"r": "1"}, raw=False)
        == 'The letter "e" appears once in "hen".'
    )
    assert write_reply(parse_fields("{r} letters", REPLY_FORMS), {}, {"r": "1"}, raw=False) == "1 letter"
    assert (
        write_reply(parse_fields("It is {r}.", REPLY_FORMS), {}, {"r": "1234567.5"}, raw=False) == "It is 1,234,567.5."
    )
    assert write_reply(parse_fields("It is {r}.", REPLY_FORMS), {}, {"r": "1234"}, raw=True) == "It is 1234."
    assert write_reply(parse_fields("${r:money}", REPLY_FORMS), {}, {"r": "1063.5"}, raw=False) == "$1,063.50"
    assert write_reply(parse_fields("${r:money}", REPLY_FORMS), {}, {"r": "63"}, raw=False) == "$63"


def test_a_negative_base_is_put_in_parentheses() -> None:
    assert write_call(parse_fields("{a} ** {b}", REPLY_FORMS), {"a": "-5", "b": "2"}) == "(-5) ** 2"
    assert write_call(parse_fields("{a} - {b}", REPLY_FORMS), {"a": "-5", "b": "-2"}) == "-5 - -2"
