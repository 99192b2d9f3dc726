"""Values of any type, nested to a bounded depth."""

from __future__ import annotations

from functools import lru_cache

from ferrule.dialects.grammar import Grammar, GrammarChoice, LiteralText
from ferrule.dialects.value_grammar.characters import make_any_character
from ferrule.dialects.value_grammar.limits import ValueLimits
from ferrule.dialects.value_grammar.number_ranges import NumberRange, make_number
from ferrule.dialects.value_grammar.terms import choose, join, join_list, repeat

BOOLEANS = {
    False: GrammarChoice((LiteralText("true"), LiteralText("false"))),
    True: GrammarChoice((LiteralText("True"), LiteralText("False"))),
}
"""The booleans: in JSON, and in Python (True)."""
NULLS = {False: LiteralText("null"), True: LiteralText("None")}


@lru_cache(1024)
def make_string(minimum: int, maximum: int, is_python: bool) -> Grammar:
    """A string of `minimum` to `maximum` characters."""
    return join('"', repeat(make_any_character(is_python), minimum, maximum), '"')


@lru_cache(256)
def make_any_value(limits: ValueLimits, is_python: bool, depth: int) -> Grammar:
    """A value of any type, in which arrays and objects are nested `depth` deep."""
    scalars = (
        make_string(0, limits.string_characters, is_python),
        make_number(NumberRange(is_integer=False), limits.integer_digits, limits.fraction_digits),
        BOOLEANS[is_python],
        NULLS[is_python],
    )
    if depth == 0:
        return choose(scalars)
    inner = make_any_value(limits, is_python, depth - 1)
    key = make_string(0, limits.key_characters, is_python)
    containers = (
        join_list("[", inner, 0, limits.array_items, "]"),
        join_list("{", join(key, ": ", inner), 0, limits.object_keys, "}"),
    )
    return choose((*scalars, *containers))
