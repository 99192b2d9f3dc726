"""Texts of a grammar of plain terms: at random, the shortest one, and whether a text is one."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from jsonschema import Draft202012Validator

from ferrule.dialects.grammar import (
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    JsonValue,
    LiteralText,
    Repetition,
)
from ferrule.dialects.value_grammar.schema_values import lower_values

OTHERS = 'aZ09 _-/.,:;{}[]"\\é漢😀\u2028\x7f@'
"""Characters for sets that exclude some."""


def write_random(term: Grammar, random: Random) -> str:
    """A text at random; repetitions are short, unless they end at a small number, which is then tried too."""
    if isinstance(term, LiteralText):
        return term.text
    if isinstance(term, CharacterSet):
        return random.choice(list_characters(term))
    if isinstance(term, GrammarSequence):
        return "".join(write_random(item, random) for item in term.items)
    if isinstance(term, GrammarChoice):
        return write_random(random.choice(term.options), random)
    assert isinstance(term, Repetition), term
    assert term.maximum is not None
    few = min(term.maximum, term.minimum + random.choice((0, 1, 2, 5)))
    times = random.choice((term.minimum, few, term.maximum)) if term.maximum < 20 else few
    return "".join(write_random(term.item, random) for _ in range(times))


def list_characters(term: CharacterSet) -> str:
    if not term.is_excluded:
        return term.characters
    return "".join(one for one in OTHERS if one not in term.characters) or "\u2603"


def write_shortest(term: Grammar, known: dict[int, str] | None = None) -> str:
    """The first one of the shortest texts."""
    known = {} if known is None else known
    if id(term) not in known:
        known[id(term)] = _write_shortest(term, known)
    return known[id(term)]


def _write_shortest(term: Grammar, known: dict[int, str]) -> str:
    if isinstance(term, LiteralText):
        return term.text
    if isinstance(term, CharacterSet):
        return list_characters(term)[0]
    if isinstance(term, GrammarSequence):
        return "".join(write_shortest(item, known) for item in term.items)
    if isinstance(term, GrammarChoice):
        return min((write_shortest(option, known) for option in term.options), key=len)
    assert isinstance(term, Repetition)
    item = write_shortest(term.item, known)
    assert item, "what is repeated must not be empty"
    return item * term.minimum


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


def is_text_of(grammar: Grammar, text: str) -> bool:
    """Whether a text is one of the grammar."""
    return len(text) in _find_ends(grammar, text, 0, {})


def _find_ends(term: Grammar, text: str, start: int, known: dict[tuple[int, int], frozenset[int]]) -> frozenset[int]:
    """The places where a text of the term that starts here may end."""
    if (id(term), start) not in known:
        known[id(term), start] = frozenset(_iterate_ends(term, text, start, known))
    return known[id(term), start]


def _iterate_ends(term: Grammar, text: str, start: int, known: dict[tuple[int, int], frozenset[int]]) -> Iterator[int]:
    if isinstance(term, LiteralText):
        if text.startswith(term.text, start):
            yield start + len(term.text)
    elif isinstance(term, CharacterSet):
        if start < len(text) and (text[start] in term.characters) is not term.is_excluded:
            yield start + 1
    elif isinstance(term, GrammarChoice):
        for option in term.options:
            yield from _find_ends(option, text, start, known)
    elif isinstance(term, GrammarSequence):
        ends = frozenset({start})
        for item in term.items:
            ends = _follow(item, text, ends, known)
        yield from ends
    else:
        assert isinstance(term, Repetition)
        yield from _iterate_repeated_ends(term, text, start, known)


def _iterate_repeated_ends(
    term: Repetition, text: str, start: int, known: dict[tuple[int, int], frozenset[int]]
) -> Iterator[int]:
    assert term.maximum is not None
    ends = frozenset({start})
    for count in range(term.maximum + 1):
        if count >= term.minimum:
            yield from ends
        ends = _follow(term.item, text, ends, known)
        if not ends:
            break


def _follow(
    term: Grammar, text: str, starts: frozenset[int], known: dict[tuple[int, int], frozenset[int]]
) -> frozenset[int]:
    return frozenset(end for start in starts for end in _find_ends(term, text, start, known))


def parse(text: str, is_python: bool) -> Any:
    """The value that a text of a value is read as."""
    return ast.literal_eval(text) if is_python else json.loads(text)


def find_problems(schema: Any, is_python: bool, count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """The texts, of some at random and the shortest one, that aren't valid by a schema without losses, and why."""
    grammar, losses = lower_values(JsonValue(schema, is_python))
    random = Random(seed)
    validator = Draft202012Validator(schema)
    for text in (write_shortest(grammar), *(write_random(grammar, random) for _ in range(count))):
        value = parse(text, is_python)
        problem = None if losses else next(validator.iter_errors(value), None)
        if problem is not None:
            yield text, problem.message
