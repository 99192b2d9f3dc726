"""Reads regular expressions, as far as they are regular: into the shapes of the texts in which they are found.

Python parses them (`re._parser`). Where it and ECMA-262, whose syntax JSON Schema has, differ on a character (`\\w`,
`\\d` and `\\s` beyond ASCII, `.`, the line break before `$`), only texts are taken in which both find the pattern.
"""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from ferrule.dialects.value_grammar.any_values import write_characters
from ferrule.dialects.value_grammar.text_shapes import (
    ANY_CHARACTER,
    EMPTY,
    UNBOUNDED,
    Characters,
    Shape,
    make_alternation,
    make_chain,
    make_repeated,
)

_parser: Any = import_module("re._parser")
_codes: Any = import_module("re._constants")

_MAX_ALTERNATIVES = 64
_MAX_CHARACTERS = 4_096
"""The maximum number of characters of a range: each is listed."""
_MAX_SIZE = 5_000
_NOT_LINE_BREAKS = Characters("\n\r\u2028\u2029", is_excluded=True)
_ANY_TEXT = make_repeated(ANY_CHARACTER, 0, UNBOUNDED)
_STARTS = (_codes.AT_BEGINNING, _codes.AT_BEGINNING_STRING)
_ENDS = (_codes.AT_END, _codes.AT_END_STRING)
_REASONS: Mapping[Any, str] = {
    _codes.ASSERT: "it has a lookaround",
    _codes.ASSERT_NOT: "it has a lookaround",
    _codes.GROUPREF: "it refers back to a group",
    _codes.GROUPREF_EXISTS: "it refers back to a group",
    _codes.AT: "it has a place that isn't its beginning or end",
}

_Nodes = Sequence[tuple[Any, Any]]


class PatternUnsupported(ValueError):  # noqa: N818 - the message continues the sentence
    """A regular expression that no shape is known for; the text says why."""


@lru_cache(256)
def read_pattern(pattern: str) -> Shape:
    """The texts in which a pattern is found anywhere. Raises `PatternUnsupported`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternUnsupported(f"it can't be read: {error}") from None
    flags = parsed.state.flags & ~re.UNICODE
    if flags & ~re.IGNORECASE:
        raise PatternUnsupported("it has a flag")
    alternatives = []
    for starts, nodes, ends in _split(list(parsed)):
        body = _read(nodes, bool(flags))
        alternatives.append(make_chain(((EMPTY if starts else _ANY_TEXT), body, (EMPTY if ends else _ANY_TEXT))))
    shape = make_alternation(alternatives)
    if shape.size > _MAX_SIZE:
        raise PatternUnsupported("it is too large")
    return shape


def _split(nodes: _Nodes) -> list[tuple[bool, _Nodes, bool]]:
    """The alternatives of a pattern: whether each is found only at the beginning, what it is, and if only at the
    end."""
    if nodes and _is_at(nodes[0], _STARTS):
        return [(True, inner, ends) for _, inner, ends in _split(nodes[1:])]
    if nodes and _is_at(nodes[-1], _ENDS):
        return [(starts, inner, True) for starts, inner, _ in _split(nodes[:-1])]
    found = None
    if nodes and _has_places(nodes[:1]):
        found = [_split([*option, *nodes[1:]]) for option in _list_options(nodes[0])]
    elif nodes and _has_places(nodes[-1:]):
        found = [_split([*nodes[:-1], *option]) for option in _list_options(nodes[-1])]
    if found is None:
        return [(False, nodes, False)]
    if sum(map(len, found)) > _MAX_ALTERNATIVES:
        raise PatternUnsupported("it has too many alternatives")
    return [alternative for alternatives in found for alternative in alternatives]


def _is_at(node: tuple[Any, Any], places: tuple[Any, ...]) -> bool:
    return node[0] is _codes.AT and node[1] in places


def _has_places(nodes: _Nodes) -> bool:
    """Whether a group or an alternative in a group is bound to a place."""
    return any(
        kind is _codes.AT
        or (kind is _codes.SUBPATTERN and _has_places(list(value[3])))
        or (kind is _codes.BRANCH and any(_has_places(list(option)) for option in value[1]))
        for kind, value in nodes
    )


def _list_options(node: tuple[Any, Any]) -> list[list[tuple[Any, Any]]]:
    kind, value = node
    if kind is _codes.BRANCH:
        return [list(option) for option in value[1]]
    if kind is _codes.SUBPATTERN and not value[1] and not value[2]:
        return [list(value[3])]
    raise PatternUnsupported(_REASONS[_codes.AT])


def _read(nodes: Iterable[tuple[Any, Any]], folds_case: bool) -> Shape:
    return make_chain(_read_node(kind, value, folds_case) for kind, value in nodes)


def _read_node(kind: Any, value: Any, folds_case: bool) -> Shape:
    if kind is _codes.LITERAL:
        return _make_characters(_fold(CharacterRange(frozenset({value})), folds_case))
    if kind is _codes.NOT_LITERAL:
        return _make_characters(_exclude(CharacterRange(frozenset({value})), folds_case))
    if kind is _codes.ANY:
        return _NOT_LINE_BREAKS
    if kind is _codes.IN:
        return _make_characters(_read_set(value, folds_case))
    if kind is _codes.BRANCH:
        return make_alternation(_read(option, folds_case) for option in value[1])
    if kind in (_codes.MAX_REPEAT, _codes.MIN_REPEAT):
        # Greedy or not makes no difference to whether there is a match.
        least, most, inner = value
        return make_repeated(_read(inner, folds_case), least, UNBOUNDED if most is _codes.MAXREPEAT else most)
    if kind is _codes.SUBPATTERN:
        _, added, removed, inner = value
        if (added | removed) & ~re.IGNORECASE:
            raise PatternUnsupported("it has a flag")
        return _read(inner, (folds_case or bool(added)) and not removed)
    raise PatternUnsupported(_REASONS.get(kind, "it has a group that isn't in ECMA-262"))


def _make_characters(found: CharacterRange) -> Characters:
    text = "".join(map(chr, sorted(found.codes)))
    if write_characters(text, found.is_excluded) is None:
        raise PatternUnsupported("it needs a character that isn't written")
    return Characters(text, found.is_excluded)


def _read_set(items: list[tuple[Any, Any]], folds_case: bool) -> CharacterRange:
    is_negated = items[0][0] is _codes.NEGATE
    listed: set[int] = set()
    found = CharacterRange(frozenset())
    for kind, value in items[is_negated:]:
        if kind is _codes.CATEGORY:
            # Of what is excluded, as much as may be meant; of what isn't, as little.
            found = unite(found, CATEGORIES[value][is_negated])
        elif kind is _codes.RANGE:
            if value[1] - value[0] > _MAX_CHARACTERS:
                raise PatternUnsupported("it has a range of too many characters")
            listed.update(range(value[0], value[1] + 1))
        else:
            listed.add(value)
    literals = CharacterRange(frozenset(listed))
    if is_negated:
        _exclude(literals, folds_case)
        return complement(unite(found, literals))
    return unite(found, _fold(literals, folds_case))


def _fold(found: CharacterRange, folds_case: bool) -> CharacterRange:
    """The same, with both cases of the letters of ASCII."""
    if not folds_case:
        return found
    letters = {ord(chr(code).swapcase()) for code in found.codes if code < 128}
    return CharacterRange(found.codes | letters)


def _exclude(found: CharacterRange, folds_case: bool) -> CharacterRange:
    """All others. Raises `PatternUnsupported` for letters of which any case is meant: some have more than two."""
    if folds_case and any(chr(code).lower() != chr(code).upper() for code in found.codes):
        raise PatternUnsupported("it excludes letters in any case")
    return complement(found)


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
