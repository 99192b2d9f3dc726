"""Writes grammars as llguidance reads them: Lark's syntax, its terminals regular expressions.

A terminal of llguidance takes all that it can, so a grammar split into several would refuse texts in which one could
also end earlier. Here whatever may stand between two control tokens is one terminal. That works because grammars don't
refer to themselves: what is between two control tokens is always a regular expression.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from ferrule.dialects.grammar import (
    CharacterSet,
    ControlToken,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    LiteralText,
    Repetition,
    TextUntil,
)
from ferrule.engines.places import is_counted
from ferrule.errors import EngineError

_HEADER = '%llguidance {"no_forcing": true}\n'
"""Every tokenization of a text is legal, and not the tokenizer's own alone."""
_EMPTY = '""'
_TERMINAL = re.compile("T[0-9]+")


def write_lark(grammar: Grammar, control: Mapping[str, int]) -> str:
    """A grammar without markers and values in Lark's syntax. Raises `EngineError` for a token that isn't in
    `control`, and for a grammar without texts."""
    return _LarkWriter(control).write(grammar)


@dataclass(frozen=True, slots=True)
class _Ways:
    """The ways through a part: `plain` text without control tokens (None: there is none), what may come before a first
    control token, and after a last one. Texts are terminals, control tokens their numbers among all."""

    plain: str | None
    firsts: tuple[tuple[str, int], ...] = ()
    lasts: tuple[tuple[int, str], ...] = ()


class _LarkWriter:
    def __init__(self, control: Mapping[str, int]) -> None:
        self._control = control
        self._terminals: dict[str, str] = {}
        # By the identity of a part, which is kept with them so that no other gets it.
        self._plain: dict[int, tuple[Grammar, str | None]] = {}
        self._holding: dict[int, tuple[Grammar, bool]] = {}
        self._tokens: list[int] = []
        """The ids of all control tokens of the grammar, by their numbers."""
        self._following: dict[int, list[tuple[str, int]]] = defaultdict(list)

    def write(self, grammar: Grammar) -> str:
        ways = self._find_ways(grammar)
        lasts: dict[int, list[str]] = defaultdict(list)
        for number, text in ways.lasts:
            lasts[number].append(text)
        start = self._write_rule("start", ways.firsts, [] if ways.plain is None else [ways.plain])
        rules = [start] + [
            self._write_rule(f"after{number}", self._following[number], lasts[number])
            for number in range(len(self._tokens))
        ]
        terminals = [f"{name}: {text}\n" for text, name in self._terminals.items()]
        return _HEADER + "".join(rules) + "".join(terminals)

    def _write_rule(self, name: str, following: Iterable[tuple[str, int]], ends: Iterable[str]) -> str:
        options = [f"{_leave_out_empty(text)} <[{self._tokens[to]}]> after{to}" for text, to in following]
        options += [_leave_out_empty(text) or _EMPTY for text in ends]
        return f"{name}: {' | '.join(dict.fromkeys(options))}\n" if options else ""

    # The ways between control tokens.

    def _find_ways(self, grammar: Grammar) -> _Ways:
        if not self._has_control(grammar):
            return _Ways(self._write_plain(grammar))
        if isinstance(grammar, ControlToken):
            return self._add_token(grammar.name)
        if isinstance(grammar, GrammarSequence):
            ways = _Ways(_EMPTY)
            for item in grammar.items:
                ways = self._join(ways, self._find_ways(item))
            return ways
        if isinstance(grammar, GrammarChoice):
            options = [self._find_ways(option) for option in grammar.options]
            plain = [option.plain for option in options if option.plain is not None]
            return _Ways(
                self._name(" | ".join(dict.fromkeys(plain))) if plain else None,
                tuple(first for option in options for first in option.firsts),
                tuple(last for option in options for last in option.lasts),
            )
        assert isinstance(grammar, Repetition)
        return self._repeat(grammar)

    def _add_token(self, name: str) -> _Ways:
        if name not in self._control:
            raise EngineError(f"constraint: the tokenizer has no control token {name!r}")
        self._tokens.append(self._control[name])
        number = len(self._tokens) - 1
        return _Ways(None, ((_EMPTY, number),), ((number, _EMPTY),))

    def _join(self, one: _Ways, other: _Ways) -> _Ways:
        for (number, before), (after, to) in product(one.lasts, other.firsts):
            self._following[number].append((self._concatenate(before, after), to))
        firsts, lasts, plain = one.firsts, other.lasts, None
        if one.plain is not None:
            firsts += tuple((self._concatenate(one.plain, text), to) for text, to in other.firsts)
            plain = None if other.plain is None else self._concatenate(one.plain, other.plain)
        if other.plain is not None:
            lasts = tuple((number, self._concatenate(text, other.plain)) for number, text in one.lasts) + lasts
        return _Ways(plain, firsts, lasts)

    def _repeat(self, repetition: Repetition) -> _Ways:
        """The ways through something with control tokens, which are others each time it is repeated."""
        if repetition.maximum is None:
            item = self._find_ways(repetition.item)
            around = _Ways(_EMPTY if item.plain is None else self._name(f"{item.plain}*"))
            self._join(self._join(item, around), item)
            repeated = self._join(self._join(around, item), around)
            ways = _Ways(around.plain, repeated.firsts, repeated.lasts)
        else:
            ways = _Ways(_EMPTY)
            for _ in range(repetition.maximum - repetition.minimum):
                more = self._join(self._find_ways(repetition.item), ways)
                plain = _EMPTY if more.plain is None else self._name(f"{_EMPTY} | {more.plain}")
                ways = _Ways(plain, more.firsts, more.lasts)
        for _ in range(repetition.minimum):
            ways = self._join(self._find_ways(repetition.item), ways)
        return ways

    def _has_control(self, grammar: Grammar) -> bool:
        known = self._holding.get(id(grammar))
        if known is None:
            found = isinstance(grammar, ControlToken) or any(map(self._has_control, _list_parts(grammar)))
            known = self._holding[id(grammar)] = (grammar, found)
        return known[1]

    # What has no control tokens: terminals.

    def _write_plain(self, grammar: Grammar) -> str | None:
        """The name of a part's terminal; None if it has no text."""
        known = self._plain.get(id(grammar))
        if known is None:
            expression = self._write_expression(grammar)
            known = self._plain[id(grammar)] = (grammar, None if expression is None else self._name(expression))
        return known[1]

    def _write_expression(self, grammar: Grammar) -> str | None:
        if isinstance(grammar, LiteralText):
            return json.dumps(grammar.text)
        if isinstance(grammar, CharacterSet):
            return _write_set(grammar)
        if isinstance(grammar, TextUntil):
            return _write_until(grammar)
        parts = [self._write_plain(part) for part in _list_parts(grammar)]
        if isinstance(grammar, GrammarChoice):
            return " | ".join(dict.fromkeys(filter(None, parts))) or None
        if isinstance(grammar, GrammarSequence):
            return None if None in parts else " ".join(part for part in parts if part and part != _EMPTY) or _EMPTY
        assert isinstance(grammar, Repetition)
        if parts[0] is None or grammar.maximum == 0:
            return None if grammar.minimum else _EMPTY
        if not is_counted(grammar):
            return f"{parts[0]}{{{grammar.minimum},}}" if grammar.minimum else f"{parts[0]}*"
        return f"{parts[0]}{{{grammar.minimum},{grammar.maximum}}}"

    def _concatenate(self, one: str, other: str) -> str:
        return self._name(" ".join(text for text in (one, other) if text != _EMPTY) or _EMPTY)

    def _name(self, expression: str) -> str:
        """The terminal of an expression: itself, if it is one or nothing."""
        if expression == _EMPTY or _TERMINAL.fullmatch(expression):
            return expression
        return self._terminals.setdefault(expression, f"T{len(self._terminals)}")


def _list_parts(grammar: Grammar) -> tuple[Grammar, ...]:
    if isinstance(grammar, GrammarSequence):
        return grammar.items
    if isinstance(grammar, GrammarChoice):
        return grammar.options
    return (grammar.item,) if isinstance(grammar, Repetition) else ()


def _leave_out_empty(text: str) -> str:
    return "" if text == _EMPTY else text


def _write_set(leaf: CharacterSet) -> str | None:
    """A set as a regular expression, by ranges of code points."""
    ranges: list[list[int]] = []
    for point in sorted({ord(one) for one in leaf.characters if not "\ud800" <= one <= "\udfff"}):
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    if not ranges:
        return "/(?s:.)/" if leaf.is_excluded else None
    written = "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in ranges)
    return f"/[{'^' if leaf.is_excluded else ''}{written}]/"


def _write_until(leaf: TextUntil) -> str:
    """Any text but one that holds a closer, or in which one would end sooner than it should: `aba` after `ab`."""
    if not leaf.closers:
        return "/(?s:.*)/"
    holding = "|".join(map(_escape, leaf.closers))
    beginnings = {
        closer[:size]
        for closer, after in product(leaf.closers, leaf.closers)
        for size in range(1, len(closer))
        if size + len(after) > len(closer) and (closer[:size] + after).startswith(closer)
    }
    ending = f" & ~/(?s:.*)({'|'.join(map(_escape, sorted(beginnings)))})/" if beginnings else ""
    return f"/(?s:.*)/ & ~/(?s:.*)({holding})(?s:.*)/{ending}"


def _escape(text: str) -> str:
    return "".join(f"\\x{{{ord(one):X}}}" for one in text)
