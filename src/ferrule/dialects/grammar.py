"""Grammars as data: what a model may write when its output is constrained.

A notation describes its grammar in these terms, and each engine compiles them into whatever its sampler masks with. A
control token is a term of its own: text that looks like one is only text, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import TypeAlias

from ferrule.toolspec import JSONSchema


@dataclass(frozen=True, slots=True)
class LiteralText:
    """Exactly this text, in ordinary tokens."""

    text: str


@dataclass(frozen=True, slots=True)
class ControlToken:
    """Exactly the control token with this name."""

    name: str


@dataclass(frozen=True, slots=True)
class MarkerText:
    """Text of a notation itself: what a tokenizer has control tokens for is written as such, the rest as ordinary
    ones."""

    text: str


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """One of these characters, in ordinary tokens; with `is_excluded`, one of all others."""

    characters: str
    is_excluded: bool = False


@dataclass(frozen=True, slots=True)
class TextUntil:
    """Any text, in ordinary tokens, before the first of these closers, which isn't part of it.

    A limit may cut it if it `may_be_cut`, as what a message says beside its calls; other text is always closed.
    `unenforced` are the keywords of its schema, if it is a string, that texts of it may not fit.
    """

    closers: tuple[str, ...]
    may_be_cut: bool = False
    unenforced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonValue:
    """The text of a value that the schema allows, any value if the schema is empty: as JSON, or as a Python literal.

    `closers` are texts that end the value wherever they stand: no string in it contains one, except with an escape.
    """

    schema: JSONSchema
    is_python: bool = False
    closers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrammarSequence:
    """These, one after the other.

    If this is what a schema allows, `place` is where that schema is in the one around it, and `unenforced` are its
    keywords that a text of this may not fit.
    """

    items: tuple[Grammar, ...]
    place: str = ""
    unenforced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GrammarChoice:
    """One of these."""

    options: tuple[Grammar, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """This, `minimum` to `maximum` times, without a `maximum` any number of times. It must not be empty itself."""

    item: Grammar
    minimum: int = 0
    maximum: int | None = None


Grammar: TypeAlias = (
    "LiteralText | MarkerText | CharacterSet | ControlToken | TextUntil | JsonValue "
    "| GrammarSequence | GrammarChoice | Repetition"
)

NOTHING = GrammarSequence(())


def note_unenforced(grammar: Grammar, words: tuple[str, ...]) -> Grammar:
    """The same, with the keywords of its schema that it doesn't enforce, if there are any."""
    return GrammarSequence((grammar,), unenforced=words) if words else grammar


def make_text_choice(texts: Iterable[str]) -> Grammar:
    """One of these texts. What several begin with is there once, so that it is followed once."""
    options: list[Grammar] = []
    for first, group in groupby(sorted(set(texts)), key=lambda text: text[:1]):
        alike = list(group)
        # Of a sorted list all share what the first and the last one do.
        ends = zip(alike[0], alike[-1], strict=False)
        beginning = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
        rests = [text.removeprefix(beginning) for text in alike]
        if not first or not any(rests):
            options.append(LiteralText(beginning) if beginning else NOTHING)
        else:
            options.append(GrammarSequence((LiteralText(beginning), make_text_choice(rests))))
    return options[0] if len(options) == 1 else GrammarChoice(tuple(options))


def make_other_text(beginning: str) -> Grammar:
    """Any text that doesn't begin like this."""
    rest = Repetition(CharacterSet("", is_excluded=True))
    options: list[Grammar] = []
    for place, character in enumerate(beginning):
        other = GrammarSequence((CharacterSet(character, is_excluded=True), rest))
        alike = LiteralText(beginning[:place])
        options += [GrammarSequence((alike, other)), alike] if place else [other, NOTHING]
    return GrammarChoice(tuple(options))
