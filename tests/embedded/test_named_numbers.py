"""Numbers belong to the parameters whose names stand beside them."""

from __future__ import annotations

import pytest
from grammar_checks import is_in, spec_of

from ferrule.dialects.call_grammar import make_call_grammar
from ferrule.embedded.copy_source import CopySource
from ferrule.embedded.named_numbers import find_amounts, find_named_numbers
from tables import each_case

NUMBER, TEXT = {"type": "integer"}, {"type": "string"}
REFUND = spec_of({"bottles": NUMBER, "cans": NUMBER}, ["bottles", "cans"])
TANK = spec_of({"length_cm": NUMBER, "width_cm": NUMBER, "pH": {"type": "number"}})


@each_case(
    ("spec", "request_", "named"),
    [
        (REFUND, "14 bottles and 9 cans", {"bottles": 14, "cans": 9}),
        (REFUND, "six bottles, four empty cans", {"bottles": 6, "cans": 4}),
        (REFUND, "bottles: 3; cans = 2", {"bottles": 3, "cans": 2}),
        (REFUND, "3 and 4 bottles", {"bottles": 4}),
        (REFUND, "seven point five bottles", {}),
        (REFUND, "bottles seven point five, 2 million cans", {}),
        (REFUND, "bottles at 7:30, the 2nd can", {}),
        (TANK, "length 60 and width is 30, ph 6.5", {"length_cm": 60, "width_cm": 30, "pH": 6.5}),
        (TANK, "80 x 35 cm", {}),
        (spec_of({"bottles": TEXT}), "14 bottles", {}),
    ],
)
def test_the_word_beside_a_number_names_it(spec, request_, named):
    found = find_named_numbers(spec, request_)
    assert {name: list(map(float, values)) for name, values in found.items()} == {
        name: [float(value)] for name, value in named.items()
    }


def test_amounts_are_no_times_dates_or_names():
    found = find_amounts("2 at 19:30 on the 3rd, 2024-05-12, room B12, 1,500 or twenty-two or 5kg")
    assert [amount[0] for amount in found] == ["2", "1,500", "twenty-two", "5"]


def test_a_call_has_the_numbers_where_they_are_named():
    def may_be(spec, told, written):
        return is_in(make_call_grammar(spec, CopySource([told], told).choose_literals(spec)), written)

    told = "14 bottles and 9 cans"
    assert may_be(REFUND, told, "f(bottles=14, cans=9)")
    assert not may_be(REFUND, told, "f(bottles=9, cans=14)")
    # One that is named belongs to nothing else, unless there is nothing else that it could be.
    assert not may_be(REFUND, "9 cans and 14", "f(bottles=9, cans=9)")
    assert may_be(REFUND, "9 cans and 14", "f(bottles=14, cans=9)")
    assert may_be(REFUND, "9 cans", "f(bottles=9, cans=9)")
    optional = spec_of({"bottles": NUMBER, "cans": NUMBER}, ["cans"])
    assert may_be(optional, "9 cans", "f(cans=9)")
    assert not may_be(optional, "9 cans", "f(bottles=9, cans=9)")
    assert may_be(optional, "9 bottles and 9 more", "f(bottles=9, cans=9)")


@pytest.mark.parametrize(
    ("told", "is_signed"), [("at -4 degrees", True), ("4 below zero", True), ("to 4 - or 3-4", False)]
)
def test_a_number_below_zero_was_told_to_be(told, is_signed):
    spec = spec_of({"degrees": NUMBER})
    grammar = make_call_grammar(spec, CopySource([told]).choose_literals(spec))
    assert is_in(grammar, "f(degrees=4)")
    assert is_in(grammar, "f(degrees=-4)") is is_signed


def test_a_day_is_for_the_parameter_of_days():
    def may_be(properties, written):
        spec, told = spec_of(properties, properties), "Book Rex on Friday"
        return is_in(make_call_grammar(spec, CopySource([told], told).choose_literals(spec)), written)

    assert may_be({"pet": TEXT, "day": TEXT}, 'f(pet="Rex", day="Friday")')
    assert not may_be({"pet": TEXT, "day": TEXT}, 'f(pet="Friday", day="Friday")')
    assert may_be({"pet": TEXT}, 'f(pet="Friday")')
