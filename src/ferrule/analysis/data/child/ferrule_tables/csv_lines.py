"""Finds the lines and cells of a CSV file, so that none is lost. Runs in the sandbox.

duckdb reads a file whose lines all have the same number of cells. One with other lines is written again by
`regularize_lines`: what is above the header is named in a note, short lines are filled, and the cells beyond the header
get columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any

import duckdb

from .csv_header import (
    count_comments,
    count_filled,
    has_second_header,
    join_header,
    looks_like_header,
)
from .csv_types import TypeFinder
from .sql import list_texts, quote_text
from .wording import describe_renamed, describe_title, describe_total, make_unique

CHARACTERS = 1 << 20
"""That are written at a time."""
DELIMITERS = (",", ";", "\t", "|")
SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", " ": "spaces", ":": "colons"}
NO_DELIMITER = "\x1f"
"""For a file of one column: what no text has."""
HEAD_LINES = 100
"""Lines among which the header is looked for."""
TAIL = 1 << 16
"""Bytes in which the last line is looked for."""
LINE = 32 << 20
"""Bytes of the longest line that duckdb is asked to read, where some are longer than its default of 2 MB."""
csv.field_size_limit(1 << 30)


class IrregularLines(Exception):  # noqa: N818 - it says what the file has
    """Not all lines have the same number of cells: the file has to be written again by `regularize_lines`."""


class Lines:
    """What was found about the lines of a file."""

    def __init__(self, path: str, delimiter: str, quote: str) -> None:
        self.path, self.delimiter, self.quote = path, delimiter, quote
        self.header: list[str] = []
        self.has_header = True
        self.width = 0
        self.first_line = 1
        """Where the data begin."""
        self.late: list[str] = []
        """Columns of text without a value among the first."""
        self.notes: list[str] = []


def make_csv_query(
    connection: duckdb.DuckDBPyConnection, path: str, original: str | None = None
) -> tuple[str, list[str]]:
    """Return the query that reads a file, with types that fit all rows, and notes. Raises `IrregularLines`.

    `original`: the file of which `path` was written by `regularize_lines`.
    """
    _, finder, notes = inspect_csv(connection, path, original)
    query, more = finder.find()
    return query, notes + more


def inspect_csv(
    connection: duckdb.DuckDBPyConnection, path: str, original: str | None = None
) -> tuple[Lines, TypeFinder, list[str]]:
    """Return what was found about the lines of a file, what finds its types, and notes. Raises `IrregularLines`."""
    if original is not None:
        lines = Lines(path, ",", '"')
        lines.header = next(read_lines(path, ",", '"'))[1]
        lines.width = len(lines.header)
    else:
        lines = inspect_regular(connection, path)
    names, notes = name_columns(lines)
    notes += lines.notes
    if lines.has_header and not _has_second_line(lines):
        taken = "names of columns" if len(names) > 1 else "name of a column"
        notes.append(f"it has no rows: its only line is taken as the {taken}")
    notes += describe_total(_read_last(lines), "last line")
    text = {"delim": lines.delimiter, "quote": lines.quote, "escape": lines.quote, "comment": ""}
    options = [f"{key}={quote_text(value)}" for key, value in text.items()]
    options += [f"header={str(lines.has_header).lower()}", "skip=0", "strict_mode=true"]
    options += [f"max_line_size={LINE}", f"buffer_size={LINE}"] if original else ["buffer_size=4000000"]
    options += [f"names=[{list_texts(names)}]"]

    def read(missing: Sequence[str]) -> str:
        return f"read_csv({quote_text(path)}, {', '.join(options)}, nullstr=[{list_texts(missing)}]"

    @cache
    def inspect_original() -> Lines:
        # It reads the whole file, and a misfit of each column may be located.
        return inspect_irregular(original) if original else lines

    def locate(row: int, place: int, value: str) -> str:
        return find_line(inspect_original(), row, place, value)

    return lines, TypeFinder(connection, read, lines.delimiter, locate), notes


def _read_last(lines: Lines) -> list[str]:
    """Return the cells of the last line."""
    with open(lines.path, "rb") as file:  # noqa: PTH123 - in the sandbox
        file.seek(max(0, file.seek(0, io.SEEK_END) - TAIL))
        last = next(
            (line for line in reversed(file.read().decode("utf-8", "replace").splitlines()) if line.strip()), ""
        )
    return [cell.strip(lines.quote or None) for cell in last.split(lines.delimiter)]


def _has_second_line(lines: Lines) -> bool:
    with suppress(csv.Error):
        return next(islice(read_lines(lines.path, lines.delimiter, lines.quote), 1, None), None) is not None
    return True


def find_line(lines: Lines, row: int, place: int, value: str) -> str:
    """Return the line of a value of the table, which is in the given row."""
    records = ((line, cells) for line, cells in read_lines(lines.path, lines.delimiter, lines.quote))
    data = (found for found in records if found[0] >= lines.first_line)
    line, cells = next(islice(data, row - 1, None), (0, []))
    return f"line {line:,}" if place < len(cells) and cells[place].strip() == value else f"row {row:,}"


def inspect_regular(connection: duckdb.DuckDBPyConnection, path: str) -> Lines:
    """Find the separator as duckdb does, and the header. Raises `IrregularLines` if duckdb would leave lines out."""
    try:
        row = connection.execute(
            f"SELECT Delimiter, Quote, Columns, SkipRows, Comment FROM sniff_csv({quote_text(path)})"
        ).fetchone()
    except duckdb.Error:
        raise IrregularLines from None
    delimiter, quote, columns, skipped, comment = row or (None,) * 5
    if not delimiter or skipped or comment not in {"", "(empty)"} or (delimiter == ":" and _has_times(path)):
        raise IrregularLines
    if len(columns) == 1 and find_delimiter(path) != NO_DELIMITER:
        raise IrregularLines
    lines = Lines(path, delimiter, '"' if quote in {"", "(empty)"} else quote)
    try:
        head = list(islice(read_lines(path, delimiter, lines.quote), HEAD_LINES))
    except csv.Error:
        raise IrregularLines from None
    line, first = head[0] if head else (0, [])
    rows = [cells for _, cells in head]
    if len(first) != len(columns) or re.match("sep=", first[0], re.IGNORECASE):  # what Excel writes above the header
        raise IrregularLines
    is_title = len(first) > 1 and count_filled(first) <= 1  # filled up with separators
    if is_title or has_second_header(rows) or count_comments(rows):
        raise IrregularLines
    lines.width, lines.has_header = len(first), looks_like_header(first, rows[1:], lines.notes)
    lines.header = first if lines.has_header else []
    lines.first_line = line + 1 if lines.has_header else line
    return lines


def regularize_lines(path: str) -> tuple[list[str], Iterator[bytes]]:
    """Return notes of what lines lack or have too much of, and the file with lines of the same length."""
    lines = inspect_irregular(path)
    names, notes = name_columns(lines)
    return notes + lines.notes, _write_lines(lines, names)


def inspect_irregular(path: str) -> Lines:
    """Find the separator, the header and the lengths of the lines of a file."""
    # If quotation marks fit neither what seems to separate cells nor commas, all of them are part of the cells.
    for delimiter, quote in ((find_delimiter(path), '"'), (",", '"'), (find_delimiter(path, quote=""), "")):
        lines = Lines(path, delimiter, quote)
        try:
            _scan(lines)
            break
        except csv.Error:
            continue
    if not lines.quote:
        lines.notes.append("quotation marks don't come in pairs: they are part of the cells")
    return lines


def _write_lines(lines: Lines, names: Sequence[str]) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    for line, cells in read_lines(lines.path, lines.delimiter, lines.quote):
        if line < lines.first_line:
            continue
        if len(cells) < lines.width:
            cells.extend([""] * (lines.width - len(cells)))
        del cells[lines.width :]  # there is nothing in them
        writer.writerow(cells)
        if buffer.tell() > CHARACTERS:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def read_lines(path: str, delimiter: str, quote: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line where a record ends, and its cells. Raises `csv.Error`."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:  # noqa: PTH123 - in the sandbox
        options: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE, "quotechar": None}
        reader = csv.reader(file, delimiter=delimiter, strict=bool(quote), **options)
        for cells in reader:
            if len(cells) > 1 or any(not cell.isspace() for cell in cells if cell):
                yield reader.line_num, cells


def find_delimiter(path: str, quote: str = '"') -> str:
    """Return what separates most of the first lines into the same number of cells; `NO_DELIMITER` for one column."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:  # noqa: PTH123 - in the sandbox
        lines = [line for line in file.readlines(1 << 16)[:500] if line.strip()]
    options: dict[str, Any] = {} if quote else {"quoting": csv.QUOTE_NONE}
    best, found = 0.5, NO_DELIMITER
    for delimiter in DELIMITERS:
        widths = Counter(len(cells) for cells in csv.reader(lines, delimiter=delimiter, **options))
        separated = sum(count for width, count in widths.items() if width > 1) / (widths.total() or 1)
        if separated >= 0.5 and (share := separated / 2 + max(widths.values()) / widths.total() / 2) > best:
            best, found = share, delimiter
    if found == NO_DELIMITER and lines and all(line.count(":") == lines[0].count(":") > 1 for line in lines):
        return found if _has_times(path) else ":"
    return found


def _has_times(path: str) -> bool:
    """Do the first lines have times of the day, whose colons separate no cells?"""
    with open(path, encoding="utf-8-sig", errors="replace") as file:  # noqa: PTH123 - in the sandbox
        return re.search(r"\b\d{1,2}:\d\d(:\d\d)?\b", file.read(1 << 14)) is not None


def _scan(lines: Lines) -> None:
    """Read all lines to find the header and the number of columns, and make the notes of lines of other lengths."""
    head: list[tuple[int, list[str]]] = []
    shapes: dict[tuple[int, int], list[int]] = {}
    """Of the other lines, by the number of cells and of those up to the last filled one: how many, and the first."""
    for line, cells in read_lines(lines.path, lines.delimiter, lines.quote):
        if len(head) < HEAD_LINES:
            head.append((line, cells))
        else:
            shapes.setdefault((len(cells), count_filled(cells)), [0, line])[0] += 1
    widths = Counter(count_filled(cells) for _, cells in head)
    for (_, width), (count, _) in shapes.items():
        widths[width] += count
    usual = max(widths, key=lambda width: (width > 0, widths[width], width))
    title = count_comments([cells for _, cells in head])
    while usual > 1 and title < len(head) - 1 and count_filled(head[title][1]) <= 1:
        title += 1
    for _, cells in head[:title]:
        widths[count_filled(cells)] -= 1
    first_line, first = head[title]
    rows = [cells for _, cells in head[title:]]
    is_joined = has_second_header(rows)
    if is_joined:
        first_line, first = head[title + 1][0], join_header(rows[0], rows[1], lines.notes)
    lines.has_header = is_joined or looks_like_header(first, rows[1:], lines.notes)
    lines.header = first if lines.has_header else []
    lines.first_line = first_line + 1 if lines.has_header else first_line
    lines.width = max([len(lines.header), *(width for width, count in widths.items() if count)])
    if title:
        texts = [text for _, cells in head[:title] if (text := " ".join(filter(None, map(str.strip, cells))))]
        lines.notes += [describe_title(texts, "line")] if texts else []
    data = [(len(cells), count_filled(cells), 1, line) for line, cells in head if line >= lines.first_line]
    data += [(cells, filled, count, line) for (cells, filled), (count, line) in shapes.items()]
    _note_lengths(lines, len(first) if lines.has_header else usual, data)


def _note_lengths(lines: Lines, width: int, data: Sequence[tuple[int, int, int, int]]) -> None:
    """Note the lines that are shorter or longer than the header.

    `data`: of lines of one shape the cells, those up to the last filled one, how many there are, and the first line.
    """
    counts = {"fewer": 0, "more": 0}
    first: dict[str, int] = {}
    for cells, filled, count, line in data:
        if kind := "fewer" if cells < width else "more" if filled > width else "":
            counts[kind] += count
            first[kind] = min(line, first.get(kind, line))
    than = "the header" if lines.has_header else "the other lines"
    for kind, count in counts.items():
        if count:
            what = f"{count:,} lines have" if count > 1 else "1 line has"
            place = f"the first is line {first[kind]:,}" if count > 1 else f"line {first[kind]:,}"
            rest = "what they lack is missing values"
            if kind == "more":
                rest = f"what is beyond is in column{width}"
                rest += f" to column{lines.width - 1}" if lines.width > width + 1 else ""
            lines.notes.append(f"{what} {kind} cells than {than}, which has {width} ({place}): {rest}")


def name_columns(lines: Lines) -> tuple[list[str], list[str]]:
    """Return the names of all columns, each only once, apart from case; and notes."""
    written = [
        (lines.header[place].strip() if place < len(lines.header) else "") or f"column{place}"
        for place in range(lines.width)
    ]
    names = make_unique(written)
    notes = []
    if lines.delimiter not in {",", NO_DELIMITER} and lines.width > 1:
        notes.append(f"separated by {SEPARATORS.get(lines.delimiter, repr(lines.delimiter))}")
    if lines.width == 1 and lines.header and re.search(r"\S {2,}\S", lines.header[0]):
        notes.append("it has one column: if these are several of fixed width, save them as CSV")
    if not lines.has_header:
        notes.append("it has no header: columns are named by their number")
    notes += describe_renamed(written, names)
    return names, notes
