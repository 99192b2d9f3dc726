"""Lines that are meant as commands, such as `/undo`: recognizes them, and describes one that isn't known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_WORD = re.compile(r"/[A-Za-z][\w-]*")


def looks_like_command(line: str) -> bool:
    """Whether a line begins like a command: `/sav x`, but not `/etc/hosts what?`.

    Nor does a line after a space, or one that begins with an existing path (`/tmp`).
    """
    word = line.partition(" ")[0].rstrip()
    return _WORD.fullmatch(word) is not None and not Path(word).exists()


def describe_unknown_command(word: str, known: Iterable[str]) -> str:
    """Describe an unknown command, with the nearest of those known, and how to ask what it says."""
    from ferrule.tools.registry import find_nearest_names

    near = find_nearest_names(word, known)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"unknown command {word}; {meant}/help lists the commands, and a space before it makes it a question"
