"""Reads the XML of a worksheet for what openpyxl leaves out while it streams. Runs in the sandbox.

That is: merged cells, formulas without a saved value, and what is hidden.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

XML_PIECE = 1 << 20
MOST_MERGES = 100_000
_CELL = re.compile(rb"<(?:\w+:)?c\b([^>]*)>\s*<(?:\w+:)?f\b[^>]*?(?:/>|>[^<]*</(?:\w+:)?f>)\s*(?=(.{0,12}))", re.DOTALL)
_REFERENCE = re.compile(rb'\br="([A-Z]+)(\d+)"')
_MERGE = re.compile(rb'<(?:\w+:)?mergeCell\b[^>]*\bref="([A-Z]+)(\d+):([A-Z]+)(\d+)"')
_HIDDEN_ROW = re.compile(rb'<(?:\w+:)?row\b[^>]*\bhidden="(?:1|true)"')
_HIDDEN_COLUMN = re.compile(rb"<(?:\w+:)?col\b[^>]*>")


class SheetFacts:
    """What the XML of a sheet says. Rows and columns are numbered from 1."""

    def __init__(self) -> None:
        self.merges: list[tuple[int, int, int, int]] = []
        """First row, first column, last row, last column."""
        self.unsaved: Counter[int] = Counter()
        """Formulas without a saved value, by column."""
        self.hidden_rows = 0
        self.hidden_columns = 0


def inspect_sheet(path: str, member: str) -> SheetFacts:
    """Look through the XML of a sheet."""
    facts = SheetFacts()
    for piece in _read_pieces(path, member):
        for found in _MERGE.finditer(piece):
            if len(facts.merges) < MOST_MERGES:
                first, top, last, bottom = found.groups()
                facts.merges.append((int(top), number_column(first), int(bottom), number_column(last)))
        facts.hidden_rows += len(_HIDDEN_ROW.findall(piece))
        for column in _HIDDEN_COLUMN.findall(piece):
            facts.hidden_columns += _count_hidden(column)
        if b"f" in piece:
            _find_unsaved(piece, facts)
    return facts


def _find_unsaved(piece: bytes, facts: SheetFacts) -> None:
    for found in _CELL.finditer(piece):
        attributes, after = found.groups()
        # The result of a formula may be an empty text, which is saved as one.
        is_empty = not re.match(rb"<(?:\w+:)?v\b[^>/]*>[^<]", after)
        if is_empty and b't="str"' not in attributes and (place := _REFERENCE.search(attributes)):
            facts.unsaved[number_column(place[1])] += 1


def _count_hidden(column: bytes) -> int:
    if not re.search(rb'\bhidden="(?:1|true)"', column):
        return 0
    ends = {key: int(value) for key, value in re.findall(rb'\b(min|max)="(\d+)"', column)}
    # Hiding all columns after the last one is usual.
    return ends[b"max"] - ends[b"min"] + 1 if len(ends) == 2 and ends[b"max"] < 16_000 else 0


def _read_pieces(path: str, member: str) -> Iterator[bytes]:
    """Yield the XML in pieces that end between rows, or where there are none, between tags."""
    rest = b""
    with zipfile.ZipFile(path) as archive, archive.open(member) as file:
        while chunk := file.read(XML_PIECE):
            whole, mark, rest = (rest + chunk).rpartition(b"<row ")
            yield whole
            rest = mark + rest
            if len(rest) > 64 * XML_PIECE:
                yield rest
                rest = b""
    yield rest


def number_column(letters: bytes) -> int:
    """Return the number of a column by its letters: 1 for A, 27 for AA."""
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def fill_merged(
    rows: list[tuple[int, tuple[Any, ...]]], facts: SheetFacts
) -> tuple[list[tuple[int, tuple[Any, ...]]], int]:
    """Give every cell of a merged one its value, in rows of data; returns the rows and how many cells were filled.

    Only cells that are merged over rows: a text over several columns is a remark, and not a value of each.
    """
    places = {number: place for place, (number, _) in enumerate(rows)}
    filled = 0
    for top, first, bottom, last in facts.merges:
        if first != last or top not in places:
            continue
        value = _get(rows[places[top]][1], first)
        for number in range(top + 1, bottom + 1):
            if value is not None and number in places:
                row = [*rows[places[number]][1]]
                row += [None] * (first - len(row))
                row[first - 1] = value
                rows[places[number]] = (number, tuple(row))
                filled += 1
    return rows, filled


def _get(row: tuple[Any, ...], column: int) -> Any:
    return row[column - 1] if column <= len(row) else None
