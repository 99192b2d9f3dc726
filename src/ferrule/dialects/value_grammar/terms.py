"""Makes sequences, choices and repetitions in their shortest form: flat, with adjacent texts as one."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule.dialects.grammar import (
    NOTHING,
    CharacterSet,
    Grammar,
    GrammarChoice,
    GrammarSequence,
    LiteralText,
    Repetition,
)

DIGITS = "0123456789"


def join(*items: Grammar | str) -> Grammar:
    """These, one after the other; a string is literal text."""
    flat: list[Grammar] = []
    for item in items:
        one = LiteralText(item) if isinstance(item, str) else item
        for part in one.items if isinstance(one, GrammarSequence) else (one,):
            if isinstance(part, LiteralText) and flat and isinstance(last := flat[-1], LiteralText):
                flat[-1] = LiteralText(last.text + part.text)
            elif not isinstance(part, LiteralText) or part.text:
                flat.append(part)
    if len(flat) == 1:
        return flat[0]
    return GrammarSequence(tuple(flat)) if flat else NOTHING


def choose(options: Iterable[Grammar]) -> Grammar:
    """One of these, of which there must be at least one. An option that is there twice, by identity, is there once."""
    flat: dict[int, Grammar] = {}
    for option in options:
        for one in option.options if isinstance(option, GrammarChoice) else (option,):
            flat[id(one)] = one
    found = tuple(flat.values())
    return found[0] if len(found) == 1 else GrammarChoice(found)


def repeat(item: Grammar, minimum: int, maximum: int) -> Grammar:
    """This, `minimum` to `maximum` times."""
    if maximum == 0:
        return NOTHING
    return item if minimum == maximum == 1 else Repetition(item, minimum, maximum)


def make_digit(lowest: int = 0, highest: int = 9) -> Grammar:
    """A digit from `lowest` to `highest`."""
    return LiteralText(DIGITS[lowest]) if lowest == highest else CharacterSet(DIGITS[lowest : highest + 1])


def join_list(opener: str, item: Grammar | None, minimum: int, maximum: int, closer: str) -> Grammar:
    """`minimum` to `maximum` items with commas between them, in brackets. Without an `item` there are none."""
    if item is None or maximum == 0:
        return LiteralText(opener + closer)
    more = repeat(join(", ", item), max(minimum - 1, 0), maximum - 1)
    if minimum == 0:
        return join(opener, choose((join(item, more), NOTHING)), closer)
    return join(opener, item, more, closer)


class Unsatisfiable(Exception):  # noqa: N818 - caught where another value can be written instead
    """No value fits a schema; the text says where, and why."""
