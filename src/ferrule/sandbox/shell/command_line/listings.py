"""Finds out which files a program's output names, where it can name no others: `find . | xargs grep x`.

A shell and `xargs` split names at blanks and remove quotes: the file `passwd` in the folder `etc` of the folder `x ` is
`x` and `/etc/passwd` to them. So all names that may be printed are looked at: those below the folders, and for
`git ls-files` those in git's index.
"""

# Paths are strings here, as in the rest of the sandbox.
# ruff: noqa: PTH118, PTH208

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.sandbox.git.tracked_files import list_tracked_names
from ferrule.sandbox.shell.command_line.builtins import is_harmless_assignment
from ferrule.sandbox.shell.command_line.find import finds_only_files, read_printed
from ferrule.sandbox.shell.command_line.links import LinkSearch, are_plain_names, begin_plainly
from ferrule.sandbox.shell.command_line.options import UnsureError, parse_table, split_options
from ferrule.sandbox.shell.command_line.programs import name_of_program
from ferrule.sandbox.shell.command_line.reading_programs import READING_PROGRAMS
from ferrule.sandbox.shell.command_line.syntax import PipedCommands, SimpleCommand, Statement, Word
from ferrule.sandbox.shell.command_line.unwrapping import Program, unwrap

__all__ = ["Listing", "read_listing"]


@dataclass(frozen=True, slots=True)
class Listing:
    """The files that are named: some of those below `starts`. NUL or a line end ends each name.

    `has_starts`: each name begins with one of `starts`. `is_indexed`: it may be one in git's index.
    """

    starts: tuple[str, ...]
    ends_with_nul: bool = False
    only_files: bool = False
    has_starts: bool = True
    is_indexed: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether no name can be taken for anything else, whatever files there are."""
        return self.ends_with_nul and self.has_starts

    def make_words(self, folder: str, search: LinkSearch) -> tuple[Word, ...] | None:
        """Make the words that a program in `folder` is given; None if they may be anything else.

        They come twice, since the first may be the value of an option. Raises `OSError` if `folder` can't be read.
        """
        if not begin_plainly("\0".join(self.starts)):
            return None
        if not self.ends_with_nul:
            folders = [os.path.join(folder, start) for start in self.starts]
            if not are_plain_names("\0".join(self.starts)) or not all(map(search.has_plain_names, folders)):
                return None
        if not self.has_starts and not begin_plainly("\0".join(os.listdir(folder))):
            return None
        if self.is_indexed:
            names = list_tracked_names(folder)
            if not begin_plainly(names) or not (self.ends_with_nul or are_plain_names(names)):
                return None
        pattern = "" if self.only_files else None
        return 2 * tuple(
            Word(None, 0, 0, f"{start}/", has_pattern=True, pattern=pattern, is_single=True) for start in self.starts
        )


def read_listing(statement: Statement) -> Listing | None:
    """Read what a program, or a pipeline of one that lists files and others that select lines, prints the names of.

    None if its output may be anything else.
    """
    first, *others = statement.stages if isinstance(statement, PipedCommands) else [statement]
    try:
        listing = _read_lister(first)
        if listing is None or (others and listing.ends_with_nul):
            return None
        return listing if all(map(_selects_lines, others)) else None
    except UnsureError:
        return None


def _read_program(statement: Statement) -> tuple[str, Sequence[Word]]:
    """The name and the arguments of a program, all of them known. Raises `UnsureError`."""
    if not isinstance(statement, SimpleCommand):
        raise UnsureError("it isn't one program")
    program = unwrap(Program(statement.words))
    is_plain = all(is_harmless_assignment(each.name, each.value) for each in statement.assignments) and all(
        each.target is not None and each.target.text == "/dev/null" for each in statement.redirections
    )
    if not (is_plain and program.is_covered and program.text is None and program.words):
        raise UnsureError("it isn't a plain program")
    if any(word.text is None for word in program.words):
        raise UnsureError("not all of its words are known")
    return name_of_program(program.words[0].text or ""), program.words[1:]


def _read_lister(statement: Statement) -> Listing | None:
    name, arguments = _read_program(statement)
    if name == "find":
        printed = read_printed(arguments)
        if printed is None:
            return None
        starts, ends_with_nul = printed
        return Listing(_get_texts(starts), ends_with_nul, finds_only_files(arguments))
    if name == "git" and arguments and arguments[0].text == "ls-files":
        options = split_options(arguments[1:], _LS_FILES)
        is_below = all(text[:1] not in "/:" and ".." not in text.split("/") for text in _get_texts(options.operands))
        return Listing((".",), options.has("-z"), has_starts=False, is_indexed=True) if is_below else None
    return _read_searcher(name, arguments) if name in _SEARCHERS else None


def _read_searcher(name: str, arguments: Sequence[Word]) -> Listing | None:
    """Read the arguments of `grep -l` or the like."""
    program, (listing, others) = READING_PROGRAMS[name], _SEARCHERS[name]
    assert program.table is not None
    options = split_options(arguments, program.table)
    given = {option for option, _, _ in options.given}
    if (listing and given.isdisjoint(listing)) or not given <= listing | others | _ENDING_WITH_NUL[name]:
        return None
    starts = _get_texts(options.operands[0 if options.has(*program.instead) else program.skipped :])
    ends_with_nul = not given.isdisjoint(_ENDING_WITH_NUL[name])
    return Listing(starts or (".",), ends_with_nul, has_starts=bool(starts))


def _selects_lines(statement: Statement) -> bool:
    """Whether a program prints some of the lines that it reads, each as it is."""
    name, arguments = _read_program(statement)
    table = READING_PROGRAMS[name].table if name in _SELECTORS else None
    if table is None:
        return False
    options = split_options(arguments, table)
    patterns = 1 if name == "grep" and not options.has("-e") else 0
    return len(options.operands) == patterns and {option for option, _, _ in options.given} <= _SELECTORS[name]


def _get_texts(words: Sequence[Word]) -> tuple[str, ...]:
    return tuple(word.text or "" for word in words)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LS_FILES = parse_table(
    "-c,--cached -o,--others -m,--modified -d,--deleted -i,--ignored -z -x,--exclude= --exclude-standard --deduplicate",
    abbreviates=False,
)
_MATCHING = (
    "-e -i -v -w -x -E -F -G -P -s -m --ignore-case --invert-match --word-regexp --line-regexp --extended-regexp "
    "--fixed-strings --basic-regexp --perl-regexp --no-messages"
)
# The options that list files, or none if that is what a program always does, and those that keep it so.
_SEARCHERS = {
    "grep": (
        _names("-l -L --files-with-matches --files-without-match"),
        _names(f"{_MATCHING} -r -n -a -I -H --line-number --text --include --exclude --exclude-dir --with-filename"),
    ),
    "rg": (
        _names("-l --files-with-matches --files-without-match --files"),
        _names(
            "-e -i -v -w -x -F -s -S -P -n -N -a -u -. -U -g -t -T -m --glob --iglob --type --type-not --max-depth -d "
            "--ignore-case --smart-case --case-sensitive --fixed-strings --word-regexp --line-regexp --invert-match "
            "--hidden --no-ignore --no-ignore-vcs --no-messages --sort --sortr --text --unrestricted --regexp"
        ),
    ),
    "fd": (
        frozenset[str](),
        _names(
            "-H -I -u -s -i -g -F -p -q -e -t -d -E --hidden --no-ignore --no-ignore-vcs --unrestricted --glob --regex "
            "--case-sensitive --ignore-case --fixed-strings --extension --type --max-depth --exclude"
        ),
    ),
}
_SEARCHERS["fdfind"] = _SEARCHERS["fd"]
_ENDING_WITH_NUL = {
    "grep": _names("-Z"),
    "rg": _names("-0 --null"),
    **dict.fromkeys(("fd", "fdfind"), _names("-0 --print0")),
}
_SELECTORS = {
    "grep": _names(_MATCHING),
    "head": _names("-n -q --quiet --silent " + " ".join(f"-{digit}" for digit in range(10))),
    "tail": _names("-n -q --quiet --silent " + " ".join(f"-{digit}" for digit in range(10))),
    "sort": _names("-b -d -f -g -h -i -M -n -r -R -s -u -V -k -t --numeric-sort --reverse --unique --version-sort"),
    "uniq": _names("-d -i -u --repeated --ignore-case --unique"),
}
"""Programs that print lines as they are, with the options that keep it so."""
