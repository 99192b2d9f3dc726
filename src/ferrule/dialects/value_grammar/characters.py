"""The characters of a string as they are written in it: the same in JSON and in a Python literal, except for escapes
that only JSON reads as meant."""

from __future__ import annotations

from functools import cache

from ferrule.dialects.grammar import CharacterSet, Grammar, LiteralText
from ferrule.dialects.value_grammar.terms import choose, join

CONTROLS = "".join(map(chr, range(0x20)))
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
"""The characters that are written as an escape."""
_HEX = CharacterSet("0123456789abcdefABCDEF")


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
