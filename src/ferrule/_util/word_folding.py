"""Folds long lines for a terminal between words, and long paths between their parts."""

from __future__ import annotations

import re

__all__ = ["fold_listed", "fold_words", "measure"]

_BREAKS = (re.compile(r" +(?=[^ ])"), re.compile(r"[/\\](?=[^/\\ ])|[,;:=&|](?=[^ ,;:=&|])"))
"""After what a line may be broken, the better ones first."""
_PADDING = re.compile(" {4,}")
_LEAST_SHARE = 3
"""A piece is at least one part in this many of the width; else it is broken at a worse place."""


def fold_words(text: str, width: int, indent: int = 0) -> list[str]:
    """Cut a text into pieces of at most `width` columns, at least one; together they are the text.

    Pieces after the first have `indent` columns less. Only a word that is too long is broken in its middle.
    """
    pieces: list[str] = []
    at = 0
    while at < len(text) or not pieces:
        # No more than a line is looked at: the text may be very long.
        ahead = text[at : at + width + 1]
        if at + len(ahead) == len(text) and measure(ahead) <= width:
            return [*pieces, ahead]
        pieces.append(_cut_off(ahead, width))
        at += len(pieces[-1])
        if len(pieces) == 1 and width > 2 * indent:
            width -= indent
    return pieces


def fold_listed(line: str, width: int) -> list[str]:
    """Fold a line that somebody else wrote so that all of it is seen: no padding moves its end out of sight.

    Further pieces have a bar in front, so that none passes for a line of its own.
    """
    shown = _PADDING.sub(lambda found: f" [{len(found[0]):,} spaces] ", line)
    first, *rest = fold_words(shown, max(20, width - 4))
    return [first, *(f"  │ {piece}" for piece in rest)]


def _cut_off(ahead: str, width: int) -> str:
    """The first piece of a text that goes on after `width` columns."""
    longest = _cut_columns(ahead, width)
    for breaks in _BREAKS:
        # One character more, since what follows decides whether a line may be broken there.
        ends = [found.end() for found in breaks.finditer(ahead, 0, len(longest) + 1)]
        if ends and ends[-1] * _LEAST_SHARE >= len(longest):
            return ahead[: ends[-1]]
    return longest


def _cut_columns(text: str, width: int) -> str:
    """As much of a text as fits, at least one character."""
    if text.isascii():
        return text[:width]
    from rich.cells import chop_cells

    return chop_cells(text, width)[0] or text[:1]


def measure(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
