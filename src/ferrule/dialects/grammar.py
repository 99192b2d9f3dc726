"""Grammars as data: what a model may write when its output is constrained.

A notation describes its grammar in these terms, and each engine compiles them into whatever its sampler masks with. A
control token is a term of its own: text that looks like one is only text, as everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
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
class CharacterSet:
    """One of these characters, in ordinary tokens; with `is_excluded`, one of all others."""

    characters: str
    is_excluded: bool = False


@dataclass(frozen=True, slots=True)
class JsonValue:
    """The text of a JSON value that the schema allows; any JSON value if the schema is empty."""

    schema: JSONSchema


@dataclass(frozen=True, slots=True)
class GrammarSequence:
    """These, one after the other."""

    items: tuple[Grammar, ...]


@dataclass(frozen=True, slots=True)
class GrammarChoice:
    """One of these."""

    options: tuple[Grammar, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """This, any number of times or never. It must not be empty itself."""

    item: Grammar


Grammar: TypeAlias = (
    "LiteralText | CharacterSet | ControlToken | JsonValue | GrammarSequence | GrammarChoice | Repetition"
)

NOTHING = GrammarSequence(())
