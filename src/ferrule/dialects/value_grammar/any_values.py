"""Values of any type within limits, and the characters of their strings.

Strings are written alike in JSON and in a Python literal, except for escapes that only JSON reads as meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from ferrule.dialects.grammar import CharacterSet, Grammar, GrammarChoice, LiteralText
from ferrule.dialects.value_grammar.number_ranges import NumberRange, make_number
from ferrule.dialects.value_grammar.terms import choose, join, join_list, repeat

BOOLEANS = {
    False: GrammarChoice((LiteralText("true"), LiteralText("false"))),
    True: GrammarChoice((LiteralText("True"), LiteralText("False"))),
}
"""The booleans: in JSON, and in Python (True)."""
NULLS = {False: LiteralText("null"), True: LiteralText("None")}
CONTROLS = "".join(map(chr, range(0x20)))
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
"""The characters that are written as an escape."""
_HEX = CharacterSet("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class ValueLimits:
    """How large a value may become. What a schema itself bounds (`maxLength`, `maxItems`, `maximum`) is as it says."""

    string_characters: int = 65_536
    """The characters of a string without `maxLength`, and of a match of a pattern without an end."""
    array_items: int = 256
    """The items of an array without `maxItems`."""
    object_keys: int = 64
    """The keys of an object without `properties` and `maxProperties`."""
    key_characters: int = 64
    """The characters of a key that the schema doesn't name."""
    value_depth: int = 4
    """How deeply arrays and objects are nested in a value of any kind, as `{}` allows."""
    recursion: int = 5
    """How often a value follows references that lead back to themselves; more often only if no value is less deep."""
    integer_digits: int = 15
    """The digits of an integer, and of a number before its point, without `minimum` or `maximum`: all integers of so
    many digits are exact as floats."""
    fraction_digits: int = 6
    """The digits of a number after its point."""


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


@cache
def make_any_character(is_python: bool) -> Grammar:
    """One character of a string: as it is, or as an escape. Two escapes for halves of a surrogate pair are one
    character in JSON only."""
    plain = CharacterSet(f'"\\{CONTROLS}', is_excluded=True)
    others = join(CharacterSet("0123456789abcefABCEF"), _HEX, _HEX, _HEX)
    codes = [others, join(CharacterSet("dD"), CharacterSet("01234567"), _HEX, _HEX)]
    if not is_python:
        low = join("\\u", CharacterSet("dD"), CharacterSet("cdefCDEF"), _HEX, _HEX)
        codes.append(join(CharacterSet("dD"), CharacterSet("89abAB"), _HEX, _HEX, low))
    # Python keeps the backslash of `\/`.
    single = CharacterSet('"\\bfnrt' if is_python else '"\\/bfnrt')
    return choose((plain, join("\\", choose((single, join("u", choose(codes)))))))


def write_characters(characters: str, is_excluded: bool) -> Grammar | None:
    """One of these characters, or of all others, as they are written; None if there is none. Control characters that
    have no escape of one letter aren't written."""
    escaped = [LiteralText(text) for one, text in ESCAPES.items() if (one in characters) is not is_excluded]
    if is_excluded:
        special = "".join(one for one in f'"\\{CONTROLS}' if one not in characters)
        return choose((CharacterSet(characters + special, is_excluded=True), *escaped))
    plain = "".join(one for one in characters if one not in ESCAPES and one >= " ")
    options: list[Grammar] = [LiteralText(plain) if len(plain) == 1 else CharacterSet(plain)] if plain else []
    return choose((*options, *escaped)) if options or escaped else None
