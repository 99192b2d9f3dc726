"""Whether a text is one of a grammar, which is taken as what it says: values of a schema by the schema's own validator,
text up to the first closer."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from ferrule.dialects.grammar import (
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    MarkerText,
    Repetition,
    TextUntil,
)

_Ends = dict[tuple[int, int], frozenset[int]]


def is_text_of(grammar: Grammar, text: str) -> bool:
    """Whether a text is one of the grammar."""
    return len(text) in find_ends(grammar, text)


def find_ends(grammar: Grammar, text: str) -> frozenset[int]:
    """Where a text of the grammar that this one begins with may end."""
    return _find_ends(grammar, text, 0, {})


def _find_ends(term: Grammar, text: str, start: int, known: _Ends) -> frozenset[int]:
    if (id(term), start) not in known:
        known[id(term), start] = frozenset(_iterate_ends(term, text, start, known))
    return known[id(term), start]


def _iterate_ends(term: Grammar, text: str, start: int, known: _Ends) -> Iterator[int]:
    if isinstance(term, GrammarChoice):
        for option in term.options:
            yield from _find_ends(option, text, start, known)
    elif isinstance(term, GrammarSequence):
        ends = frozenset({start})
        for item in term.items:
            ends = _follow(item, text, ends, known)
        yield from ends
    elif isinstance(term, Repetition):
        yield from _iterate_repeated_ends(term, text, start, known)
    else:
        yield from _iterate_leaf_ends(term, text, start)


def _iterate_leaf_ends(term: Grammar, text: str, start: int) -> Iterator[int]:
    if isinstance(term, LiteralText | MarkerText):
        if text.startswith(term.text, start):
            yield start + len(term.text)
    elif isinstance(term, CharacterSet):
        if start < len(text) and (text[start] in term.characters) is not term.is_excluded:
            yield start + 1
    elif isinstance(term, TextUntil):
        found = [text.find(closer, start) for closer in term.closers]
        yield min((one for one in found if one >= 0), default=len(text))
    else:
        assert isinstance(term, JsonValue), term
        yield from _iterate_value_ends(term, text, start)


def _iterate_repeated_ends(term: Repetition, text: str, start: int, known: _Ends) -> Iterator[int]:
    ends = frozenset({start})
    count = 0
    while ends and (term.maximum is None or count <= term.maximum):
        if count >= term.minimum:
            yield from ends
        ends = _follow(term.item, text, ends, known)
        count += 1


def _follow(term: Grammar, text: str, starts: frozenset[int], known: _Ends) -> frozenset[int]:
    return frozenset(end for start in starts for end in _find_ends(term, text, start, known))


def _iterate_value_ends(term: JsonValue, text: str, start: int) -> Iterator[int]:
    validator = Draft202012Validator(term.schema)
    for value, end in _parse_values(text, start, is_python=term.is_python):
        if validator.is_valid(value) and not any(closer in text[start:end] for closer in term.closers):
            yield end


def _parse_values(text: str, start: int, *, is_python: bool) -> Iterator[tuple[Any, int]]:
    if not is_python:
        try:
            yield json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            return
    for end in range(start + 1, len(text) + 1) if is_python else ():
        try:
            yield ast.literal_eval(text[start:end]), end
        except (ValueError, SyntaxError):
            continue


def iterate_terms(grammar: Grammar) -> Iterator[Grammar]:
    """Every term, each object once."""
    seen: dict[int, Grammar] = {}
    waiting = [grammar]
    while waiting:
        term = waiting.pop()
        if id(term) in seen:
            continue
        seen[id(term)] = term
        yield term
        if isinstance(term, GrammarSequence):
            waiting += term.items
        elif isinstance(term, GrammarChoice):
            waiting += term.options
        elif isinstance(term, Repetition):
            waiting.append(term.item)
