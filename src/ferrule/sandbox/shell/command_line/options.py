"""Separates the options of a program from its operands, by a table of the options that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ferrule.sandbox.shell.command_line.syntax import Word

__all__ = ["OptionTable", "Options", "UnsureError", "split_options"]


class UnsureError(Exception):
    """What a program would do isn't known; its text is the reason."""


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of a program: letters, and names without dashes, each with or without a value.

    One that is listed both with and without a value has it only in the same word, as `--stat=80` and `-U3` do. With
    `any_others`, unknown options are taken as options without a value; else they make a program's effects unknown.
    """

    letters: str = ""
    letters_with_value: str = ""
    names: frozenset[str] = frozenset()
    names_with_value: frozenset[str] = frozenset()
    any_others: bool = False
    stops_at_operand: bool = False


@dataclass(slots=True)
class Options:
    """The options given, in order, each with its value if it has one; and the operands."""

    given: list[tuple[str, Word | None]] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return any(name in names for name, _ in self.given)

    def values(self, *names: str) -> list[Word]:
        """The values of these options."""
        return [value for name, value in self.given if name in names and value is not None]


def split_options(words: Sequence[Word], table: OptionTable) -> Options:
    """Split the arguments of a program. Raises `UnsureError` for an option that isn't in the table."""
    found, index = Options(), 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.text == "--":
            found.operands += words[index:]
            break
        if not _is_option(word, table):
            found.operands.append(word)
            if table.stops_at_operand:
                found.operands += words[index:]
                break
            continue
        if word.text is None:
            raise UnsureError("an option isn't known before it runs")
        index += _read_option(word, words[index] if index < len(words) else None, table, found)
    return found


def _is_option(word: Word, table: OptionTable) -> bool:
    if word.text is None:
        return not table.any_others and word.may_be_option
    return len(word.text) > 1 and word.text[0] == "-"


def _read_option(word: Word, following: Word | None, table: OptionTable, found: Options) -> int:
    """Read one word of options; returns how many words after it are its value: 0 or 1."""
    text = word.text or ""
    if text.startswith("--"):
        name, has_value, value = text[2:].partition("=")
        is_required = name in table.names_with_value and name not in table.names
        if is_required and not has_value:
            found.given.append((f"--{name}", _require(following, text)))
            return 1
        if name in (table.names_with_value if has_value else table.names) or table.any_others:
            found.given.append((f"--{name}", _part_of(word, value) if has_value else None))
            return 0
        raise UnsureError(f"the option {text}")
    for position, letter in enumerate(text[1:], 2):
        if letter in table.letters_with_value:
            rest = text[position:]
            takes_next = not rest and letter not in table.letters
            attached = _part_of(word, rest) if rest else None
            found.given.append((f"-{letter}", _require(following, text) if takes_next else attached))
            return 1 if takes_next else 0
        if letter not in table.letters and not table.any_others:
            raise UnsureError(f"the option -{letter}")
        found.given.append((f"-{letter}", None))
    return 0


def _require(value: Word | None, option: str) -> Word:
    if value is None:
        raise UnsureError(f"the option {option} without a value")
    return value


def _part_of(word: Word, text: str) -> Word:
    return Word(text, word.start, word.end, text)
