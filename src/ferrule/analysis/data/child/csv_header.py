"""Tells which lines of CSV are the header. Runs in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ferrule.analysis.data.child.wording import quote_column

NUMERIC = re.compile(r"[-+]?[\d.,:/ -]*\d[\d.,:/ -]*%?")


def looks_like_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Is a line the names of columns? Yes if it has text where the others have numbers, or nothing but text."""
    texts = [place for place, cell in enumerate(first) if cell.strip() and not NUMERIC.fullmatch(cell.strip())]
    for place in texts:
        below = [cell for row in rows if place < len(row) and (cell := row[place].strip())]
        if below and sum(NUMERIC.fullmatch(cell) is not None for cell in below) >= 0.8 * len(below):
            return True
    return bool(texts) and len(texts) == count_filled(first)


def has_second_header(rows: Sequence[Sequence[str]]) -> bool:
    """Are the first two lines names, the first with gaps over names that have numbers below?"""
    if len(rows) < 3:
        return False
    first, second = ([cell.strip() for cell in row] for row in rows[:2])
    gaps = [place for place, cell in enumerate(second) if cell and place and not "".join(first[place : place + 1])]
    if not gaps or any(NUMERIC.fullmatch(cell) for cell in second if cell):
        return False
    below = [cell for row in rows[2:] for place in gaps for cell in row[place : place + 1] if cell.strip()]
    return bool(below) and all(NUMERIC.fullmatch(cell.strip()) for cell in below)


def join_header(first: Sequence[str], second: Sequence[str], notes: list[str]) -> list[str]:
    """Join two lines of names: a gap of the first has the name to its left."""
    names, name = [], ""
    for place in range(max(len(first), len(second))):
        above = "".join(first[place : place + 1]).strip()
        below = "".join(second[place : place + 1]).strip()
        name = above or (name if below else "")
        names.append(f"{name} {below}".strip())
    example = next(one for one in names if " " in one)
    notes.append(f"the 2 lines of the header are joined, as in {quote_column(example)}")
    return names


def count_filled(cells: Sequence[str]) -> int:
    """Count cells without the empty ones at the end."""
    for width in range(len(cells), 0, -1):
        if cells[width - 1].strip():
            return width
    return 0
