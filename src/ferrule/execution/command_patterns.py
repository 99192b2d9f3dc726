"""Matches the words of a rule's command against those of a program, as a command line's effects carry them.

A rule that allows compares the words as they are written, from the first on. A rule that denies or asks also sees
through other ways to write the same: `/usr/bin/git -C x --no-pager push origin --force` matches `git push --force`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import dropwhile
from typing import Final

from ferrule.errors import PolicyError
from ferrule.sandbox.wrapper_programs import is_wrapper

_SHORT_LETTERS = 3
"""The most letters of `-rf` that may be spread over several options; a longer one is a word, such as `-delete`."""

_SIGNS = ";|&<>"
_MOST_CARRIED = 200
"""How many words of a program are looked at that `sudo` or the like runs: each word of the line may be the program."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SEPARATOR = re.compile(r"[;|&\n(){}`]+")
_MOST_TEXTS = 50
_MOST_VALUES = 4
"""How often the value of an option may have one itself, as in `--checkpoint-action=exec=rm`."""
_GIT_FORMS: Final[Mapping[str, str]] = {"send-pack": "push", "http-push": "push", "stage": "add", "fetch-pack": "fetch"}
"""Git commands that do what another one does."""


@lru_cache(maxsize=512)
def split_command_pattern(pattern: str) -> tuple[str, ...]:
    """Split the command of a rule into the patterns of its words. Raises `PolicyError`."""
    try:
        words = tuple(shlex.split(pattern))
    except ValueError as error:
        raise PolicyError(f"a rule's command must be words as in a shell, not {pattern!r}: {error}") from None
    if not words:
        raise PolicyError("a rule's command must have at least a program's name, such as 'git status', not ''")
    # In this mode, quotes stay: a quoted sign is a word, such as the `;` of `find -exec`.
    written = shlex.shlex(pattern, posix=False, punctuation_chars=_SIGNS)
    written.whitespace_split, written.commenters = True, ""
    signs = [word for word in written if set(word) <= set(_SIGNS)]
    if signs:
        raise PolicyError(
            f"a rule's command names one program, not a command line: {pattern!r} contains {signs[0]!r}; "
            "write a rule for each program"
        )
    return words


def match_words(words: Sequence[str], pattern: str, every: bool, exact: bool) -> bool:
    """Whether a program's words match. `every` as in `match_argument`; `exact` allows no further words."""
    if not words:
        return False
    patterns = split_command_pattern(pattern)
    if _match_program(words, patterns, every, exact):
        return True
    if every:
        return False
    name = words[0].rpartition("/")[2]
    if name.startswith("git-") or (name == "git" and not _GIT_FORMS.keys().isdisjoint(words)):
        # `/usr/lib/git-core/git-push` is `git push`, and so is `git send-pack`.
        plain = ("git", *words[1:]) if name == "git" else ("git", name[4:], *words[1:])
        if _match_program([_GIT_FORMS.get(word, word) for word in plain], patterns, every, exact):
            return True
    return is_wrapper(name, words) and _match_carried(words, pattern, exact)


def _match_program(words: Sequence[str], patterns: Sequence[str], every: bool, exact: bool) -> bool:
    program = words[0]
    if not _match_word(program, patterns[0]) and (
        every or "/" not in program or not _match_word(program.rpartition("/")[2], patterns[0])
    ):
        return False
    if len(words) >= len(patterns) and all(map(_match_word, words[1:], patterns[1:])):
        return not exact or len(words) == len(patterns)
    return not every and not exact and _match_normal_form(words, patterns)


def _match_carried(words: Sequence[str], pattern: str, exact: bool) -> bool:
    """Whether what a program such as `sudo` is given to run matches.

    Where that begins isn't known, so each word may be the first, and one with spaces a command line.
    """
    patterns = split_command_pattern(pattern)
    for start in range(1, len(words)):
        if any(match_words(guess_words(text), pattern, every=False, exact=exact) for text in _find_texts(words[start])):
            return True
        if _match_program(words[start : start + _MOST_CARRIED], patterns, every=False, exact=exact):
            return True
    return False


def _find_texts(word: str) -> Iterator[str]:
    """The command lines that one word may hold, such as `--checkpoint-action=exec=rm x` and `-Irm x`."""
    texts = [word]
    if "=" in word:
        texts += [word.split("=", count)[-1] for count in range(1, min(word.count("="), _MOST_VALUES) + 1)]
    if word.startswith("-") and not word.startswith("--"):
        texts.append(word[2:])
    for text in texts:
        pieces = _SEPARATOR.split(text, _MOST_TEXTS)
        # The word itself is looked at as a program by the caller. `!` is how git and vim mark a shell's text.
        yield from (piece.lstrip("!:+") for piece in pieces if piece != word or " " in piece)


@lru_cache(maxsize=512)
def guess_words(text: str) -> tuple[str, ...]:
    """The words of a program as far as its text shows them, without assignments; empty if it can't be split.

    Good enough to deny or ask by, and for nothing else: the shell may make other words of the text.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        return ()
    return tuple(dropwhile(_ASSIGNMENT.match, words))


def _match_word(word: str, pattern: str) -> bool:
    if word == pattern:
        return True
    # Most patterns are plain words, for which this is much faster.
    return ("*" in pattern or "?" in pattern or "[" in pattern) and fnmatchcase(word, pattern)


def _match_normal_form(words: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether the words after the program match, once their options were moved or left out.

    The operands must come in the order of the pattern, with nothing but options and one value of each between them;
    the pattern's options may be anywhere, short ones also joined (`-rf`), long ones also with a value or abbreviated.
    """
    options = [pattern for pattern in patterns[1:] if pattern.startswith("-")]
    operands = [pattern for pattern in patterns[1:] if not pattern.startswith("-")]
    return all(_has_option(words, option) for option in options) and _has_operands(words, operands)


def _has_operands(words: Sequence[str], operands: Sequence[str]) -> bool:
    # Which options take a value isn't known, so each is tried both ways: the set holds where the next operand may be.
    starts = {1}
    for operand in operands:
        following = set()
        for start in starts:
            at = start
            while at < len(words):
                if _match_word(words[at], operand):
                    following.add(at + 1)
                if words[at][:1] not in ("-", "+") and (at == start or words[at - 1][:1] != "-"):
                    break
                at += 1
        starts = following
    return bool(starts)


def _has_option(words: Sequence[str], option: str) -> bool:
    rest = words[1:]
    if any(_match_word(word, option) for word in rest):
        return True
    if option.startswith("--"):
        names = (word.partition("=")[0] for word in rest if word.startswith("--"))
        return any(_match_word(name, option) or (len(name) > 2 and option.startswith(name)) for name in names)
    letters = option[1:]
    if not letters.isalpha() or len(letters) > _SHORT_LETTERS:
        return False
    given = "".join(word[1:] for word in rest if word.startswith("-") and not word.startswith("--"))
    return all(letter in given for letter in letters)
