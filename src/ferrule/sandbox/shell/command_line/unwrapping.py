"""Removes wrappers from a program: `timeout 5 env CI=1 npm test` is judged as `npm test`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from ferrule.sandbox.shell.command_line.builtins import is_harmless_assignment
from ferrule.sandbox.shell.command_line.options import (
    Options,
    OptionTable,
    UnsureError,
    parse_table,
    split_options,
)
from ferrule.sandbox.shell.command_line.programs import name_of_program
from ferrule.sandbox.shell.command_line.syntax import Word
from ferrule.sandbox.wrapper_programs import WRAPPERS

__all__ = ["Program", "unwrap"]

_MAX_WRAPPERS = 50
_DELIMITERS = {r"\n": False, "\n": False, r"\0": True}
"""Values of `xargs -d`, and whether each is NUL."""
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its arguments; `is_covered` if a rule for commands may cover it.

    With `text` it is a shell that runs this text: in a shell of its own if `words` is empty, else (`eval`) in this one.
    `list_input` tells the words for the files whose names, ended by NUL or not, are its input; None if it may be other.
    """

    words: tuple[Word, ...]
    is_covered: bool = True
    text: str | None = None
    list_input: Callable[[bool], tuple[Word, ...] | None] | None = None


def unwrap(program: Program) -> Program:
    """Remove the wrappers of a program; no words are left of a wrapper without one.

    Raises `UnsureError` for a wrapper with an option that may hide a program, and for a shell that runs unknown text.
    """
    for _ in range(_MAX_WRAPPERS):
        following = _unwrap_once(program)
        if following is None:
            return program
        program = following
        if program.text is not None or not program.words:
            return program
    raise UnsureError("too many wrappers")


def _unwrap_once(program: Program) -> Program | None:
    """Remove one wrapper; None if there is none."""
    words = program.words
    if not words or not words[0].text:
        return None
    name = name_of_program(words[0].text)
    if name in ("time", "eval", "trap", "exec", "command") and words[0].text != name:
        return None  # a program, which has other options than the shell's word
    wrapper = WRAPPERS.get(name)
    if wrapper is None or wrapper.options is None:
        return None
    return _READERS[wrapper.form](program, name, _parse_options(wrapper.options))


@cache
def _parse_options(options: str) -> OptionTable:
    return parse_table(options, stops_at_operand=True)


def _read_program(program: Program, name: str, table: OptionTable) -> Program | None:
    if name == "command" and len(program.words) > 1 and program.words[1].text in ("-v", "-V"):
        return None
    rest, is_covered = split_options(program.words[1:], table).operands, program.is_covered
    if operand := WRAPPERS[name].operand:
        if len(rest) < 2 or not re.fullmatch(operand, rest[0].text or ""):
            raise UnsureError(f"what {name} runs isn't certain")
        rest.pop(0)
    while name == "env" and rest and (assigned := _ASSIGNMENT.match(rest[0].prefix)):
        value = rest.pop(0)
        text = None if value.text is None else assigned[2]
        is_covered = is_covered and is_harmless_assignment(assigned[1], Word(text, value.start, value.end))
    return replace(program, words=tuple(rest), is_covered=is_covered)


def _read_text(program: Program, name: str, _: OptionTable) -> Program:
    texts = [word.text for word in program.words[1:]]
    if not texts or None in texts:
        raise UnsureError(f"what {name} runs isn't known before it runs")
    return Program(program.words, program.is_covered, " ".join(text for text in texts if text is not None))


def _read_trap(program: Program, name: str, _: OptionTable) -> Program:
    words = program.words[1:]
    if len(words) < 2 or any(word.text is None or (word.text.startswith("-") and word.text != "-") for word in words):
        raise UnsureError(f"what {name} runs isn't known before it runs")
    if words[0].text in ("-", ""):
        return Program(())
    return Program(program.words, program.is_covered, words[0].text)


def _read_shell(program: Program, _: str, table: OptionTable) -> Program | None:
    """Read the arguments of a shell: the text after `-c`, or a script, which is a program like any other."""
    words, index, has_text = program.words, 1, False
    while index < len(words) and words[index].prefix[:1] in ("-", "+"):
        text = words[index].text or ""
        if text in ("--version", "-"):
            return None
        if text == "-o" and index + 1 < len(words) and words[index + 1].text == "pipefail":
            index += 1
        elif not text.startswith("-") or not text[1:] or any(f"-{letter}" not in table.names for letter in text[1:]):
            raise UnsureError(f"a shell with {text or 'an unknown argument'}")
        has_text = has_text or "c" in text[1:]
        index += 1
    if not has_text:
        return None
    if index == len(words) or words[index].text is None:
        raise UnsureError("the text that a shell runs isn't known before it runs")
    return Program((), program.is_covered, words[index].text)


def _read_xargs(program: Program, name: str, table: OptionTable) -> Program:
    options = split_options(program.words[1:], table)
    words = options.operands or [Word("echo", 0, 0, "echo")]
    replaced = [value.text for value in options.values("-I")]
    if None in replaced or len(replaced) > 1:
        raise UnsureError(f"what {name} runs isn't known before it runs")
    end = program.words[-1].end
    # Two, since the first may be the value of an option.
    names = _list_names(program, options) or 2 * (Word(None, end, end),)
    if not replaced:
        return Program((*words, *names), program.is_covered)
    found = list[Word]()
    for word in words:
        if word.text is not None and word.text == replaced[0]:
            found += names
        else:
            is_known = word.text is not None and replaced[0] not in word.text  # type: ignore[operator]
            found.append(word if is_known else Word(None, word.start, word.end))
    return Program(tuple(found), program.is_covered)


def _list_names(program: Program, options: Options) -> tuple[Word, ...] | None:
    """The words for the names that xargs reads, if it is known which they are."""
    ends = [_DELIMITERS.get(value.text or "") for value in options.values("-d")] + [True] * options.has("-0")
    if program.list_input is None or len(ends) > 1 or None in ends:
        return None
    return program.list_input(ends == [True])


_READERS: dict[str, Callable[[Program, str, OptionTable], Program | None]] = {
    "program": _read_program,
    "names": _read_xargs,
    "shell": _read_shell,
    "text": _read_text,
    "trap": _read_trap,
}
"""By the form of a wrapper."""
