"""Sets of characters, listed or excluded, and those of regular expressions that engines don't agree on."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

_codes: Any = import_module("re._constants")


@dataclass(frozen=True, slots=True)
class CharacterRange:
    """The characters with these codes; with `is_excluded`, all others."""

    codes: frozenset[int]
    is_excluded: bool = False


def unite(one: CharacterRange, other: CharacterRange) -> CharacterRange:
    """The characters of both."""
    if one.is_excluded and other.is_excluded:
        return CharacterRange(one.codes & other.codes, is_excluded=True)
    if one.is_excluded or other.is_excluded:
        excluded, listed = (one, other) if one.is_excluded else (other, one)
        return CharacterRange(excluded.codes - listed.codes, is_excluded=True)
    return CharacterRange(one.codes | other.codes)


def complement(one: CharacterRange) -> CharacterRange:
    """All other characters."""
    return CharacterRange(one.codes, not one.is_excluded)


def _list(characters: str) -> CharacterRange:
    return CharacterRange(frozenset(map(ord, characters)))


_ASCII = frozenset(range(128))
_DIGITS = _list(string.digits)
_WORDS = _list(f"{string.ascii_letters}{string.digits}_")
_SPACES = _list(" \t\n\r\f\v")
_ALL_SPACES = CharacterRange(
    frozenset(code for code in (*range(0x3001), 0xFEFF) if chr(code).isspace() or code == 0xFEFF)
)


def _invert_ascii(one: CharacterRange) -> CharacterRange:
    """Of ASCII, what isn't in it."""
    return CharacterRange(_ASCII - one.codes)


CATEGORIES: Mapping[Any, tuple[CharacterRange, CharacterRange]] = {
    _codes.CATEGORY_DIGIT: (_DIGITS, complement(_invert_ascii(_DIGITS))),
    _codes.CATEGORY_NOT_DIGIT: (_invert_ascii(_DIGITS), complement(_DIGITS)),
    _codes.CATEGORY_WORD: (_WORDS, complement(_invert_ascii(_WORDS))),
    _codes.CATEGORY_NOT_WORD: (_invert_ascii(_WORDS), complement(_WORDS)),
    _codes.CATEGORY_SPACE: (_SPACES, _ALL_SPACES),
    _codes.CATEGORY_NOT_SPACE: (complement(_ALL_SPACES), complement(_SPACES)),
}
"""The characters that every engine takes for one of the category, and those that some engine does."""
