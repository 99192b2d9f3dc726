"""What a shell command line consists of, as data: `reader.py` makes it from a syntax tree, `judge.py` walks it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = [
    "AndOr",
    "Assignment",
    "Compound",
    "PipedCommands",
    "Redirection",
    "Sequence",
    "SimpleCommand",
    "Statement",
    "UnreadableError",
    "Word",
]


class UnreadableError(Exception):
    """The command line, or a part of it, can't be read with certainty; its text is the reason."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is written from `start` to `end` (bytes).

    `text` is what the program receives, or None if that is known only when it runs; `prefix` is the known beginning.
    `has_pattern`: it has `*`, `?` or `[`, so it may stand for several names, which all begin with `prefix`. `pattern`
    is the whole pattern where that is known, also of one with `..`, whose names may begin with anything. `is_plain`:
    nothing in it is quoted or escaped. `is_pipe`: it is the name of a pipe, `<(…)`. `is_output`: it stands for the
    words in the output of a command, `$(…)` without quotes. `is_single`: it is one word also if it isn't known.
    """

    text: str | None
    start: int
    end: int
    prefix: str = ""
    has_pattern: bool = False
    pattern: str | None = None
    has_tilde: bool = False
    is_plain: bool = False
    is_pipe: bool = False
    is_output: bool = False
    is_single: bool = False
    substitutions: tuple[Sequence, ...] = ()

    @property
    def may_be_option(self) -> bool:
        """Whether a program could see a word that begins with a dash in its place."""
        if self.text is not None or self.is_pipe or self.has_tilde:
            return False
        # What isn't quoted is split at blanks: `./$x` may be `./a --option`. The names of a pattern are not.
        return not (self.has_pattern or self.is_single) or not self.prefix or self.prefix[0] in "-+"


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=value`."""

    name: str
    value: Word


@dataclass(frozen=True, slots=True)
class Redirection:
    """One redirection: its operator, and its target unless that is text in the command line (a here-document)."""

    operator: str
    target: Word | None
    start: int
    end: int

    @property
    def ends_command(self) -> bool:
        """Whether dash ends the command here: it reads `a &> f b` as `a & > f b`, so that `b` is a program."""
        return self.operator in ("&>", "&>>")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program with its arguments, or assignments alone, or redirections alone."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PipedCommands:
    """Commands that run side by side, each in a shell of its own."""

    stages: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class AndOr:
    """Commands joined by `&&` and `||`; `operators[i]` is before `items[i + 1]`."""

    items: tuple[Statement, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compound:
    """`{ }`, `( )`, `if`, `while`, `until`, `for` or `case`: `kind` is group, subshell, branches or loop."""

    kind: str
    bodies: tuple[Sequence, ...]
    words: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    variable: str = ""


Statement: TypeAlias = SimpleCommand | PipedCommands | AndOr | Compound


@dataclass(slots=True)
class Sequence:
    """Statements one after the other; those whose index is in `background` run in a shell of their own."""

    statements: list[Statement] = field(default_factory=list)
    background: set[int] = field(default_factory=set)
