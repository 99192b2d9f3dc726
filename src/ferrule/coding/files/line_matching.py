"""Finds lines in a text although they were not quoted exactly, and says what had to be ignored.

Used by `edit_file` and `apply_patch`. The levels are those of codex: white space at line ends, then at both ends, then
typographic characters. Every search is linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from ferrule._util.line_diff import make_unified_diff

__all__ = ["LEVELS", "LineIndex", "describe_difference", "describe_nearest"]

_LOOKALIKES: Final = str.maketrans(
    dict.fromkeys("‐‑‒–—―−", "-")
    | dict.fromkeys("‘’‚‛", "'")
    | dict.fromkeys("“”„‟", '"')
    | dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " ")
    | {"…": "..."}
)

LEVELS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("", str),
    ("white space at line ends", str.rstrip),
    ("indentation", str.strip),
    ("the kinds of quotes, dashes and spaces", lambda line: line.translate(_LOOKALIKES).strip()),
)
"""What is ignored, and how a line is reduced for it; the strictest first."""

_MOST_MATCHES: Final = 1000
_MOST_LINES_SHOWN: Final = 40
_LONGEST_LINE: Final = 300
_MOST_POSITIONS: Final = 50


class LineIndex:
    """The lines of a text, reduced for each level when it is first needed."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._joined: dict[int, str] = {}

    def find(self, wanted: Sequence[str], level: int, start: int = 0) -> list[int]:
        """The numbers (from 0) of the lines at which `wanted` begins, from `start` on; at most a thousand."""
        reduce = LEVELS[level][1]
        joined = self._join(level)
        pattern = "\n" + "\n".join(map(reduce, wanted)) + "\n"
        offset = _find_line_start(joined, start)
        found: list[int] = []
        number, counted = start, offset
        while len(found) < _MOST_MATCHES:
            at = joined.find(pattern, offset)
            if at < 0:
                break
            number += joined.count("\n", counted, at)
            counted = at
            found.append(number)
            offset = at + 1
        return found

    def _join(self, level: int) -> str:
        if level not in self._joined:
            self._joined[level] = "\n" + "\n".join(map(LEVELS[level][1], self.lines)) + "\n"
        return self._joined[level]


def _find_line_start(joined: str, line: int) -> int:
    """The offset of the newline before a line (from 0)."""
    if line == 0:
        return 0
    offset = -1
    for _ in range(line + 1):
        offset = joined.find("\n", offset + 1)
        if offset < 0:
            return len(joined)
    return offset


def describe_nearest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """Where a text comes nearest to lines that aren't in it, and how it differs there; at a bounded cost."""
    start = _find_nearest(lines, wanted)
    if start is None:
        return "No line of the file is similar."
    return f"The nearest is {describe_difference(lines, wanted, start)}"


def describe_difference(lines: Sequence[str], wanted: Sequence[str], start: int) -> str:
    """Name the lines of a text from a line (from 0) on, and show how they differ from others; at a bounded cost."""
    found = lines[start : start + len(wanted)]
    changes = make_unified_diff([_cut(line) for line in wanted], [_cut(line) for line in found])[1:]
    shown = changes[:_MOST_LINES_SHOWN]
    if len(changes) > len(shown):
        shown.append(f"[{len(changes) - len(shown)} more lines]")
    where = f"line {start + 1}" if len(found) == 1 else f"lines {start + 1} to {start + len(found)}"
    return f"{where} (-: what you gave, +: what is there):\n" + "\n".join(shown)


def _find_nearest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    positions: dict[str, list[int]] = {line.strip(): [] for line in wanted if line.strip()}
    for number, line in enumerate(lines):
        places = positions.get(line.strip())
        if places is not None and len(places) <= _MOST_POSITIONS:
            places.append(number)
    starts: Counter[int] = Counter()
    for number, line in enumerate(wanted):
        places = positions.get(line.strip(), [])
        if len(places) <= _MOST_POSITIONS:
            starts.update(max(0, place - number) for place in places)
    if starts:
        return min(starts, key=lambda start: (-starts[start], start))
    return _find_similar(lines, wanted)


def _find_similar(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The start of the lines that share most words with the longest of the wanted ones."""
    number, longest = max(enumerate(wanted), key=lambda each: len(each[1].strip()), default=(0, ""))
    words = set(_split_words(longest))
    if not words:
        return None
    best, best_share = None, 0.3
    for at, line in enumerate(lines):
        other = set(_split_words(line))
        share = len(words & other) / len(words | other) if other else 0.0
        if share > best_share:
            best, best_share = at, share
    return None if best is None else max(0, best - number)


def _split_words(line: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", line[:_LONGEST_LINE])


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}… [{len(line):,} characters]"
