"""What a rule that allows a command doesn't cover, though more words may follow those of the rule.

Covered are plain operands inside the workspace, and options that neither name a file to write or to run nor change what
is run or recorded: an allow for `npm test` is not one for `npm test --prefix /elsewhere`, nor one for `pytest` for
`pytest -p other_plugin` or `pytest --junitxml=a.py`. `command_options.py` has the tables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ferrule.execution.command_options import CHANGING_OPTIONS, FLAGS, TARGETS, VALUE_OPTIONS
from ferrule.execution.rule_matching import find_path_outside

_NAMES_PLACE = re.compile(r"[/~\\]|\.\.")
_LOOKS_LIKE_FILE = re.compile(r"[./\\~]")
_NUMBER = re.compile(r"[\d.]+[a-z%]?")
_WITHOUT_ARGUMENT_FILES = ("npm", "pnpm", "yarn", "bun", "npx", "git")
"""The programs for which `@name` is a package or a revision. Others read further options from such a file."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.]*[+:?!]{0,3}=")


def find_uncovered_word(words: Sequence[str], count: int, folders: Sequence[Path]) -> str | None:
    """The first word after `count` ones of a rule that the rule doesn't cover; None if it covers all."""
    name = _name_program(words)
    subcommand = f"{name} {words[1]}" if len(words) > 1 else name
    changing = (*CHANGING_OPTIONS.get(name, ()), *CHANGING_OPTIONS.get(subcommand, ()))
    valued = VALUE_OPTIONS.get(name, ())
    # A rule for the program alone is for all of its targets.
    targets = {word for word in words[1:count] if not word.startswith("-")} if name in TARGETS else set[str]()
    option = ""  # the word before, if it is an option that may take this one as its value
    for word in words[count:]:
        given = word.partition("=")[0]
        # What is listed is no abbreviation: `--cov` isn't `--cov-config`.
        is_listed = given.startswith("--") and (given in valued or given in FLAGS)
        if given in changing or (not is_listed and any(_is_option(word, one) for one in changing)):
            return word
        if word.startswith("@") and name not in _WITHOUT_ARGUMENT_FILES:
            return word
        if folders and any(_leads_outside(one, folders) for one in _list_values(word)):
            return word
        if word == "--" or not word.startswith("-") or word == "-":
            if targets and option not in valued and word not in targets and word != "--":
                return word
            if option not in valued and ((option and _is_file(word, folders)) or _ASSIGNMENT.match(word)):
                return f"{option} {word}".lstrip()
            option = ""
            continue
        if _has_file_as_value(word, valued, folders):
            return word
        option = "" if "=" in word or (_is_flag(word) and word not in valued) else word
    return None


def _name_program(words: Sequence[str]) -> str:
    """The program's name; of `python -m pytest`, the module's."""
    name = words[0].rpartition("/")[2]
    return words[2] if name.rstrip("0123456789.") == "python" and words[1:2] == ("-m",) and len(words) > 2 else name


def _is_flag(word: str) -> bool:
    """Whether an option takes no value in the next word, for whichever program."""
    # go takes one dash for two.
    return (
        word in FLAGS
        or f"-{word}" in FLAGS
        or (not word.startswith("--") and all(f"-{letter}" in FLAGS for letter in word[1:]))
    )


def _has_file_as_value(word: str, valued: Sequence[str], folders: Sequence[Path]) -> bool:
    """Whether an option has a value in the same word that may be a file; those in `valued` may have one."""
    name, mark, value = word.partition("=")
    if name in valued or (not word.startswith("--") and word[:2] in valued):
        return False
    if mark and _is_file(value, folders):
        return True
    return not word.startswith("--") and len(word) > 2 and _is_file(word[2:], folders)


def _is_file(value: str, folders: Sequence[Path]) -> bool:
    """Whether a value looks like a file, or names one that exists."""
    if not value or _NUMBER.fullmatch(value):
        return False
    return _LOOKS_LIKE_FILE.search(value) is not None or any(os.path.lexists(folder / value) for folder in folders[:1])


def _is_option(word: str, option: str) -> bool:
    if not word.startswith("-"):
        return False
    if len(option) == 2:
        # Short ones may be joined, with others or with their value.
        return not word.startswith("--") and option[1] in word.partition("=")[0][1:]
    name = word.partition("=")[0].lstrip("-")
    wanted = option.lstrip("-")
    # A long one may be abbreviated; go takes one dash for two.
    return name == wanted or (word.startswith("--") and len(name) > 1 and wanted.startswith(name))


def _list_values(word: str) -> Iterator[str]:
    """What of a word may name a place: all of it, the value of an option, or what is joined to its letter."""
    if not word.startswith("-"):
        yield word
    value = word.partition("=")[2]
    if value:
        yield value
    if word.startswith("-") and not word.startswith("--") and _NAMES_PLACE.search(word[2:]):
        yield word[2:]


def _leads_outside(value: str, folders: Sequence[Path]) -> bool:
    if not value:
        return False
    if "://" in value or value.startswith(("/", "~")):
        return find_path_outside(value, *folders) is not None
    # Where the command is by then isn't known here: the workspace is a good guess, and `..` may lead out of it.
    return find_path_outside(str(folders[0] / value), *folders) is not None
