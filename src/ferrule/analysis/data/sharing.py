"""What models are shown of the data: `describe_tables`, in text that no content can make a marker of.

Names and cells are written as JSON strings. Wherever a marker of a dialect begins in one, its first character is
written as an escape (`"\\u003ctool_call>"`): a string of Python, and mostly of JSON, that still means the same name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal, TypeAlias

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_json
from ferrule.analysis.data.table import ColumnProfile, Table

Share: TypeAlias = Literal["schema", "profile", "samples"]
"""What models are shown of the data: names and types, statistics too, or sample rows too."""

_MAX_COLUMNS: Final = 200
_SPECIAL_TOKEN: Final = r"</?(?:[|｜A-Za-z_▁!/@$]|0x)|[|｜]>|\[/?[A-Z|]|\[e~\[|\]~b\]|〈\|"
"""What begins or ends the special tokens of most tokenizers, besides the markers of the dialects."""
_ASCII_LETTERS: Final = re.compile(r"[A-Za-z0-9 ]")


def describe_tables(tables: Sequence[Table], share: Share = "profile") -> str:
    """Describe tables for a model.

    `schema`: names, types, numbers of rows. `profile`: also missing and distinct values, ranges and quantiles of
    numbers, ranges of dates, lengths of texts, but no text of a cell, notes included. `samples`: also common texts, and
    a few rows.
    """
    return "\n\n".join(_describe_table(table, share) for table in tables)


def quote_text(text: str) -> str:
    """Write a text as a string literal of Python on one line, which contains no marker of any dialect."""
    quoted = _escape_at(text, {found.start() for found in _find_markers().finditer(text)})
    if _find_markers().search(quoted):
        quoted = _escape_at(text, {place for place, one in enumerate(text) if not _ASCII_LETTERS.match(one)})
    return quoted


def neutralise_markers(text: str) -> str:
    """Break every marker of any dialect in a text by a visible space, as in results of tools: `< /tool_call>`."""
    return _find_markers().sub(lambda found: f"{found[0]} ", text) if _find_markers().search(text) else text


def _describe_table(table: Table, share: Share) -> str:
    source = quote_text(table.path.name) + (f", {_PARTS[table.kind]} {quote_text(table.part)}" if table.part else "")
    size = f"{pluralize(table.rows, 'row')}, {pluralize(len(table.columns), 'column')}"
    lines = [f"tables[{quote_text(table.name)}]: {size}, from {source}"]
    notes = table.notes if share == "samples" else [_CELL_IN_NOTE.sub('"…"', note) for note in table.notes]
    lines += [f"  note: {note}" for note in map(neutralise_markers, notes)]
    lines += [f"- {_describe_column(column, table.rows, share)}" for column in table.columns[:_MAX_COLUMNS]]
    if len(table.columns) > _MAX_COLUMNS:
        lines.append(f"- and {len(table.columns) - _MAX_COLUMNS} more columns: list(tables[…].columns) has their names")
    if share == "samples" and table.samples:
        lines.append("  some rows:")
        for row in table.samples:
            cells = ["null" if cell is None else quote_text(cell) for cell in row[:_MAX_COLUMNS]]
            lines.append(f"    [{', '.join(cells)}]")
    return "\n".join(lines)


_CELL_IN_NOTE: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_PARTS: Final = {"excel": "sheet", "sqlite": "table"}


def _describe_column(column: ColumnProfile, rows: int, share: Share) -> str:
    text = f"{quote_text(column.name)}: {column.type}"
    if share == "schema":
        return text
    parts = [f"{column.missing:,} missing"] if column.missing else []
    if column.distinct is not None:
        about = "about " if rows > 100_000 else ""
        parts.append(f"{about}{column.distinct:,} distinct")
    if column.type == "text":
        parts += _describe_text(column, share)
    elif column.minimum is not None:
        parts.append(f"{_write(column.minimum)} to {_write(column.maximum)}")
    if column.infinite:
        parts.append(f"{column.infinite:,} infinite, left out of what follows and of the range")
    if column.mean is not None:
        parts.append(f"mean {_write(column.mean)}")
    if column.deviation is not None:
        parts.append(f"standard deviation {_write(column.deviation)}")
    if column.quantiles:
        about = ", of a sample" if rows > 100_000 else ""
        parts.append(f"quantiles (5, 25, 50, 75, 95 %{about}) {', '.join(map(_write, column.quantiles))}")
    return "; ".join([text, *parts])


def _describe_text(column: ColumnProfile, share: Share) -> list[str]:
    parts = []
    if column.lengths is not None:
        low, high = column.lengths
        parts.append(pluralize(low, "character") if low == high else f"{low} to {high} characters")
    if share == "samples" and column.common:
        common = ", ".join(f"{quote_text(value)} ({count:,})" for value, count in column.common)
        parts.append(f"most common: {common}")
    return parts


def _write(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return neutralise_markers(str(value))


def _escape_at(text: str, places: set[int]) -> str:
    escaped = "".join(_escape(one) if place in places else _write_plain(one) for place, one in enumerate(text))
    return f'"{escaped}"'


def _escape(one: str) -> str:
    return f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"


def _write_plain(one: str) -> str:
    plain = escape_json(one)[1:-1]
    # Beyond the basic plane, JSON would write two characters, which Python wouldn't join.
    return _escape(one) if plain.startswith("\\u") else plain


@cache
def _find_markers() -> re.Pattern[str]:
    """A pattern of the first character of every marker, wherever one begins."""
    from ferrule.dialects.catalogue import get_dialect, list_dialects, load_families
    from ferrule.dialects.notation import TextNotation

    markers = {marker for family in load_families().values() for marker in TextNotation(family).markers}
    markers |= {marker for name in list_dialects() for marker in get_dialect(name).markers}
    alternatives = sorted(map(re.escape, filter(str.strip, markers)), key=len, reverse=True)
    return re.compile(f"(?=(?:{'|'.join((*alternatives, _SPECIAL_TOKEN))})).", re.DOTALL)
