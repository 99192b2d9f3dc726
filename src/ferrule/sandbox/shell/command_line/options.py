"""Separates the options of a program from its operands, by a table of the options that are known.

    table = parse_table("-inr -A= -f,--file=FILE --color=?")
    split_options(words, table).values("-f")

Programs of GNU take a long option by any beginning that no other of theirs shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ferrule.sandbox.shell.command_line.syntax import Word

__all__ = ["OptionTable", "Options", "UnsureError", "parse_table", "split_options"]


class UnsureError(Exception):
    """What a program would do isn't known; its text is the reason."""


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of a program: the name by which each is known, and the kind of its value.

    The kind is empty for an option without a value, `=` for any value, `FILE` for the path of a file that is read,
    `OUT` for one that is written, and `LIST` for a file that names others. Such a value is the rest of the same word or
    the next one; a value of the kind `?` is optional, and in the same word.

    With `stops_at_operand` there are no options after the first operand; with `only_reads` no option, also an unknown
    one, makes the program write or run another. `has_words`: an option is a whole word, not several letters.
    `abbreviates`: a long option may be given by its beginning; then a name in the table begins with no missing one.
    """

    names: Mapping[str, str]
    kinds: Mapping[str, str]
    stops_at_operand: bool = False
    only_reads: bool = False
    has_words: bool = False
    abbreviates: bool = True

    def find(self, option: str) -> tuple[str, str] | None:
        """The name and kind of an option, given in full or by its beginning; None if it is unknown or ambiguous."""
        if option not in self.names and option.startswith("--") and self.abbreviates:
            found = {name for given, name in self.names.items() if given.startswith(option)}
            option = found.pop() if len(found) == 1 else option
        name = self.names.get(option)
        return None if name is None else (name, self.kinds[name])


def parse_table(
    text: str,
    *,
    stops_at_operand: bool = False,
    only_reads: bool = False,
    has_words: bool = False,
    abbreviates: bool = True,
) -> OptionTable:
    """Make a table of options separated by blanks, each with the kind of its value after `=`.

    `-f,--file=FILE` is one option, known by its first name; `-abc` are three, and with `has_words` one.
    """
    names, kinds = dict[str, str](), dict[str, str]()
    for entry in text.split():
        written, has_value, kind = entry.partition("=")
        first, *others = written.split(",")
        if first[1] != "-" and not has_words and not others:
            named = {f"-{letter}": f"-{letter}" for letter in first[1:]}
        else:
            named = dict.fromkeys((first, *others), first)
        names |= named
        kinds |= dict.fromkeys(named.values(), kind or has_value)
    return OptionTable(names, kinds, stops_at_operand, only_reads, has_words, abbreviates)


@dataclass(slots=True)
class Options:
    """The options given, in order, each with the kind of its value, and the value if there is one; and the operands."""

    given: list[tuple[str, str, Word | None]] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        """Whether one of these options is given."""
        return any(name in names for name, _, _ in self.given)

    def values(self, *names: str) -> list[Word]:
        """The values of these options."""
        return [value for name, _, value in self.given if name in names and value is not None]

    def values_of(self, kind: str) -> list[Word]:
        """The values of this kind."""
        return [value for _, found, value in self.given if found == kind and value is not None]


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
        following = words[index] if index < len(words) else None
        if word.text.startswith("--") or table.has_words:
            index += _read_name(word, following, table, found)
        else:
            index += _read_letters(word, following, table, found)
    return found


def _is_option(word: Word, table: OptionTable) -> bool:
    if word.text is None:
        return not table.only_reads and word.may_be_option
    return len(word.text) > 1 and word.text[0] == "-"


def _read_name(word: Word, following: Word | None, table: OptionTable, found: Options) -> int:
    """Read an option that is a whole word; returns how many words after it are its value: 0 or 1."""
    text = word.text or ""
    given, has_value, value = text.partition("=")
    option = table.find(given)
    if option is None and table.has_words and text[2:].isdigit():  # `-c16`
        option, has_value, value = table.find(text[:2]), "=", text[2:]
    name, kind = option or ("", "")
    if not name or (has_value and not kind):
        raise UnsureError(f"the option {text}")
    if has_value or not kind or kind == "?":
        found.given.append((name, kind, _part_of(word, value) if has_value else None))
        return 0
    found.given.append((name, kind, _require(following, text)))
    return 1


def _read_letters(word: Word, following: Word | None, table: OptionTable, found: Options) -> int:
    """Read one or more letters; returns how many words after them are a value: 0 or 1."""
    text = word.text or ""
    for position, letter in enumerate(text[1:], 2):
        option = table.find(f"-{letter}")
        if option is None:
            raise UnsureError(f"the option -{letter}")
        name, kind = option
        if kind:
            rest = text[position:]
            takes_next = not rest and kind != "?"
            attached = _part_of(word, rest) if rest else None
            found.given.append((name, kind, _require(following, text) if takes_next else attached))
            return 1 if takes_next else 0
        found.given.append((name, kind, None))
    return 0


def _require(value: Word | None, option: str) -> Word:
    if value is None:
        raise UnsureError(f"the option {option} without a value")
    return value


def _part_of(word: Word, text: str) -> Word:
    return Word(text, word.start, word.end, text)
