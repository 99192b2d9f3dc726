"""Reads the arguments of `find`: its starting points, and what it does with what it finds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.sandbox.shell.command_line.options import UnsureError
from ferrule.sandbox.shell.command_line.outcome import Outcome
from ferrule.sandbox.shell.command_line.syntax import Word

__all__ = ["Execution", "finds_only_files", "read_find", "read_printed", "split_executions"]

_TESTS = frozenset(
    [
        "-print",
        "-print0",
        "-ls",
        "-prune",
        "-quit",
        "-true",
        "-false",
        "-a",
        "-and",
        "-o",
        "-or",
        "-not",
        "!",
        "(",
        ")",
        ",",
        "-depth",
        "-d",
        "-daystart",
        "-follow",
        "-mount",
        "-xdev",
        "-noleaf",
        "-empty",
        "-executable",
        "-readable",
        "-writable",
        "-nouser",
        "-nogroup",
        "-warn",
        "-nowarn",
        "-ignore_readdir_race",
    ]
)
_TESTS_WITH_VALUE = frozenset(
    [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-regextype",
        "-type",
        "-xtype",
        "-size",
        "-maxdepth",
        "-mindepth",
        "-mtime",
        "-atime",
        "-ctime",
        "-mmin",
        "-amin",
        "-cmin",
        "-newer",
        "-newermt",
        "-newerct",
        "-newerat",
        "-anewer",
        "-cnewer",
        "-perm",
        "-user",
        "-group",
        "-uid",
        "-gid",
        "-links",
        "-inum",
        "-lname",
        "-ilname",
        "-fstype",
        "-printf",
        "-used",
        "-samefile",
    ]
)
_OUTPUTS = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}
_EXECUTING = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_PRINTING = frozenset({"-print", "-print0"})
_PRINTING_MORE = frozenset({"-ls", "-printf", "-L", "-H", "-P", "-follow", *_EXECUTING})
_CHOOSING = frozenset({"-o", "-or", ",", "!", "-not", "-L", "-follow"})


@dataclass(frozen=True, slots=True)
class Execution:
    """A program that find runs, with the words `{}` still in it; `elsewhere`: in the folder of each file."""

    words: tuple[Word, ...]
    elsewhere: bool


def split_executions(arguments: Sequence[Word]) -> tuple[list[Word], list[Execution]]:
    """Take the programs of `-exec` and its like out of the arguments. Raises `UnsureError` if one has no end."""
    rest, found, index = list[Word](), list[Execution](), 0
    while index < len(arguments):
        word = arguments[index]
        index += 1
        if word.text not in _EXECUTING:
            rest.append(word)
            continue
        begin = index
        while index < len(arguments) and not _ends(arguments, begin, index):
            index += 1
        if index == len(arguments) or index == begin:
            raise UnsureError("find runs a program that has no certain end")
        found.append(Execution(tuple(arguments[begin:index]), word.text in ("-execdir", "-okdir")))
        index += 1
    return rest, found


def finds_only_files(arguments: Sequence[Word]) -> bool:
    """Whether a find acts on no links: `-type f` holds for all that it prints or runs its programs with."""
    texts = [word.text for word in arguments]
    if not _CHOOSING.isdisjoint(texts) or None in texts:
        return False
    begin = next((index for index, text in enumerate(texts) if text in _EXECUTING | _PRINTING), len(texts))
    return ("-type", "f") in itertools.pairwise(texts[:begin])


def read_printed(arguments: Sequence[Word]) -> tuple[list[Word], bool] | None:
    """The starting points of a find whose output is only the names of what is below them, and whether NUL ends each.

    None for any other find. Raises `UnsureError`.
    """
    texts = {word.text for word in arguments}
    if not texts.isdisjoint(_PRINTING_MORE) or texts >= _PRINTING:
        return None
    outcome = read_find(arguments)
    if outcome.writes_uncovered:
        return None
    starts = list(itertools.takewhile(lambda word: not _is_expression(word), arguments))
    return starts or [Word(".", 0, 0, ".")], "-print0" in texts


def _ends(arguments: Sequence[Word], begin: int, index: int) -> bool:
    word = arguments[index]
    return word.text == ";" or (word.text == "+" and index > begin and arguments[index - 1].text == "{}")


def read_find(arguments: Sequence[Word]) -> Outcome:
    """Tell what find does, without the programs that it runs. Raises `UnsureError`."""
    words, _ = split_executions(arguments)
    index, outcome = 0, Outcome(is_recursive=True)
    while index < len(words) and words[index].text in ("-L", "-H", "-P"):
        outcome.follows = outcome.follows or words[index].text == "-L"
        index += 1
    while index < len(words) and not _is_expression(words[index]):
        outcome.reads.append(words[index])
        index += 1
    while index < len(words):
        text = words[index].text
        index += 1
        outcome.follows = outcome.follows or text == "-follow"
        if text == "-delete":
            outcome.runs = True
        elif text in _OUTPUTS and index < len(words):
            outcome.writes_uncovered.append(words[index])
            index += _OUTPUTS[text]
        elif text in _TESTS_WITH_VALUE and index < len(words):
            if text in ("-newer", "-anewer", "-cnewer", "-samefile"):
                outcome.reads.append(words[index])
            index += 1
        elif text not in _TESTS:
            raise UnsureError(f"find with {text or 'an argument that is not known before it runs'}")
    if outcome.runs:
        raise UnsureError("find deletes what it finds")
    outcome.reads_folder = not outcome.reads
    return outcome


def _is_expression(word: Word) -> bool:
    if word.text is None:
        if word.may_be_option or word.prefix[:1] in ("!", "(", ","):
            raise UnsureError("find with an argument that isn't known before it runs")
        return False
    return word.text[:1] == "-" or word.text in ("!", "(", ")", ",")
