"""Reads the sheets of workbooks as Arrow data. Runs in the sandbox."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from .csv_header import has_second_header, looks_like_header
from .records import NoRecords, describe_rounded
from .sheet_xml import SheetFacts, fill_merged, inspect_sheet
from .wording import (
    MISSING,
    describe_misfits,
    describe_missing,
    describe_renamed,
    describe_title,
    describe_total,
    list_columns,
    make_unique,
    quote_cell,
    quote_column,
    write_count,
)

ERRORS = {"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"}
HEAD = 50
"""Rows among which the header is looked for."""
MOST_HEADER_ROWS = 4
MOST_REMARKS = 10
"""Rows at the end of a sheet among which a total is looked for."""
SAVE = "open the file in a spreadsheet program, save it, and read it again"
NumberedRow = tuple[int, tuple[Any, ...]]


def list_sheets(path: str) -> tuple[list[str], list[str]]:
    """List the sheets of a workbook that have cells, and notes of the others."""
    book = _open_book(path)
    try:
        names, notes = [], []
        for sheet in book.worksheets:
            if _has_cells(sheet):
                names.append(sheet.title)
            elif unsaved := sum(inspect_sheet(path, sheet._worksheet_path).unsaved.values()):
                what = write_count(unsaved, "formula has no saved value", "formulas have no saved values")
                notes.append(f"the sheet {quote_column(sheet.title)} is left out: its {what}; {SAVE}")
            else:
                notes.append(f"the sheet {quote_column(sheet.title)} is empty, and left out")
        return names, notes
    finally:
        book.close()


def _open_book(path: str) -> Any:
    import openpyxl

    file = open(path, "rb")  # noqa: PTH123, SIM115 - in the sandbox; a book of this mode reads it until it is closed
    try:
        return openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise NoRecords(f"is a damaged workbook ({type(error).__name__}): save it again") from None


def _has_cells(sheet: Any) -> bool:
    sheet.reset_dimensions()
    return any(any(cell is not None for cell in row) for row in islice(sheet.iter_rows(values_only=True), 1000))


def read_sheet(path: str, name: str) -> tuple[Any, list[str]]:
    """Read a sheet as an Arrow table, and notes. The first row with more than one cell is its header."""
    notes: list[str] = []
    sheet = _open_book(path)[name]
    sheet.reset_dimensions()
    facts = inspect_sheet(path, sheet._worksheet_path)
    numbered = enumerate(sheet.iter_rows(values_only=True), 1)
    rows: list[NumberedRow] = [(number, tuple(row)) for number, row in numbered if _count_cells(row)]
    if sheet.sheet_state != "visible":
        notes.append("the sheet is hidden in the workbook")
    rows = _leave_out_title(rows, notes)
    names, rows = _take_header(rows, facts, notes)
    rows, filled = fill_merged(rows, facts)
    if filled:
        notes.append(
            f"{write_count(filled, 'cell')} merged with the one above {'has' if filled == 1 else 'have'} its value"
        )
    for number, what in ((facts.hidden_rows, "row"), (facts.hidden_columns, "column")):
        if number:
            notes.append(f"{write_count(number, f'hidden {what} is', f'hidden {what}s are')} read like the others")
    table, columns = make_arrow_table(names, rows, notes)
    notes += _describe_last(rows)
    if facts.unsaved:
        named = [columns.get(place) or f"column{place}" for place in sorted(facts.unsaved)]
        total = sum(facts.unsaved.values())
        what = write_count(
            total,
            "formula has no saved value and is a missing value",
            "formulas have no saved values and are missing values",
        )
        notes.append(f"{what}, in {list_columns(named)}: {SAVE}")
    return table, notes


def _describe_last(rows: list[NumberedRow]) -> list[str]:
    """Return a note if the last row seems to be the sum of the others; below it, rows of one cell may be remarks."""
    for below, (number, row) in enumerate(reversed(rows[-MOST_REMARKS:])):
        if found := describe_total(row, f"row {number:,}", below):
            return found
        if _count_cells(row) > 1:
            break
    return []


def _count_cells(row: Sequence[Any]) -> int:
    return sum(cell is not None for cell in row)


def _leave_out_title(rows: list[NumberedRow], notes: list[str]) -> list[NumberedRow]:
    """Leave out the rows of one cell above the first with more, if there is one."""
    title = next((place for place, (_, row) in enumerate(rows[:HEAD]) if _count_cells(row) > 1), 0)
    if title and _is_name_of_last(rows[title - 1][1], rows[title][1]):
        title -= 1
    if title:
        texts = [str(next(cell for cell in row if cell is not None)) for _, row in rows[:title]]
        notes.append(describe_title(texts, "row"))
    return rows[title:]


def _is_name_of_last(above: tuple[Any, ...], row: tuple[Any, ...]) -> bool:
    """Is the only cell of a row the name of the last column, as of an index and one column, and not a title?"""
    place = next(place for place, cell in enumerate(above) if cell is not None)
    last = max(place for place, cell in enumerate(row) if cell is not None)
    return 0 < place == last and not isinstance(row[place], str)


def _take_header(
    rows: list[NumberedRow], facts: SheetFacts, notes: list[str]
) -> tuple[list[str | None], list[NumberedRow]]:
    """Return the names of columns, of one row or of several that are joined, and the rows below."""
    width = max((len(row) for _, row in rows), default=0)
    depth = 1
    while depth < min(MOST_HEADER_ROWS, len(rows) - 1) and _has_header_below(rows[depth - 1][0], width, facts):
        depth += 1
    head = [_fill_header(number, row, width, facts) for number, row in rows[:depth]]
    texts = [["" if cell is None else _write_value(cell) for cell in row] for _, row in rows[:HEAD]]
    if depth == 1 and has_second_header(texts):
        depth, head = 2, [_fill_gaps(rows[0][1], rows[1][1], width), _pad(rows[1][1], width)]
    elif depth == 1 and len(texts) > 1 and not looks_like_header(texts[0], texts[1:], []):
        cell = quote_cell(next(filter(None, texts[0])))
        notes.append(f"row {rows[0][0]:,} is taken as the header, though it looks like data (such as {cell})")
    names = [_join_names([row[place] for row in head]) for place in range(width)]
    if depth > 1:
        example = next((name for name, *parts in zip(names, *head, strict=True) if len(set(parts) - {None}) > 1), None)
        notes.append(
            f"the {depth} rows of the header are joined" + (f", as in {quote_column(example)}" if example else "")
        )
    return names, rows[depth:]


def _has_header_below(number: int, width: int, facts: SheetFacts) -> bool:
    """Does a row of the header have a cell merged over several columns, or over the row below?"""
    return any(
        top <= number <= bottom and (bottom > number or 1 < last - first + 1 < width)
        for top, first, bottom, last in facts.merges
    )


def _fill_header(number: int, row: tuple[Any, ...], width: int, facts: SheetFacts) -> list[Any]:
    cells = _pad(row, width)
    for top, first, _, last in facts.merges:
        if top == number:
            cells[first - 1 : last] = [cells[first - 1]] * (min(last, width) - first + 1)
    return cells


def _fill_gaps(first: tuple[Any, ...], second: tuple[Any, ...], width: int) -> list[Any]:
    cells = _pad(first, width)
    for place in range(1, width):
        if cells[place] is None and place < len(second) and second[place] is not None:
            cells[place] = cells[place - 1]
    return cells


def _pad(row: tuple[Any, ...], width: int) -> list[Any]:
    return [*row, *[None] * (width - len(row))]


def _join_names(parts: Sequence[Any]) -> str | None:
    texts = [_write_name(part) for part in parts if part is not None]
    kept = [text for place, text in enumerate(texts) if text and text not in texts[:place]]
    return " ".join(kept) or None


def _write_name(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return " ".join(_write_value(value).split())


def make_arrow_table(
    head: Sequence[str | None], body: Sequence[NumberedRow], notes: list[str]
) -> tuple[Any, dict[int, str]]:
    """Make a table of names and rows, whose values decide the columns' types; and its names by column of the sheet."""
    names, columns, places, errors = [], [], [], 0
    numbers = [number for number, _ in body]
    for place, name in enumerate(head):
        values = [row[place] if place < len(row) else None for _, row in body]
        if name is None and all(value is None for value in values):
            continue
        errors += sum(isinstance(value, str) and value in ERRORS for value in values)
        values = [
            None if isinstance(value, str) and (value in ERRORS or not value.strip()) else value for value in values
        ]
        names.append(name or f"column{place + 1}")
        places.append(place + 1)
        array, note = make_column(names[-1], values, numbers)
        columns.append(array)
        notes += note
    if errors:
        notes.append(f"{write_count(errors, 'cell')} with an error such as #DIV/0!: missing values")
    unique = make_unique(names)
    notes += describe_renamed(names, unique)
    if not body:
        notes.append("it has a header, and no rows below it")
    return pa.table(dict(zip(unique, columns, strict=True))), dict(zip(places, unique, strict=True))


def make_column(name: str, values: list[Any], numbers: Sequence[int]) -> tuple[Any, list[str]]:
    """Make an Arrow array, of one type if the values have one, else of text; and notes. `numbers`: of the rows."""
    notes: list[str] = []
    texts = [value for value in values if isinstance(value, str)]
    others = sum(value is not None for value in values) - len(texts)
    if others and texts and all(text.strip() in MISSING for text in texts):
        notes.append(describe_missing(name, len(texts), texts[0].strip()))
        values = [None if isinstance(value, str) else value for value in values]
    rounded = describe_rounded(name, values)
    array = None if rounded else _make_typed(values)
    if array is not None:
        if pa.types.is_duration(array.type):
            notes.append(f"{quote_column(name)}: durations; .dt.total_seconds() / 3600 of it has hours")
        return array, notes
    notes += rounded or _describe_mixed(name, values, numbers)
    return pa.array([None if value is None else _write_value(value) for value in values], pa.string()), notes


def _make_typed(values: list[Any]) -> Any:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {datetime.datetime, datetime.date} and kinds:
        if all(_is_midnight(value) for value in values if value is not None):
            days = [value.date() if isinstance(value, datetime.datetime) else value for value in values]
            return pa.array(days, pa.date32())
        moments = [
            value
            if value is None or isinstance(value, datetime.datetime)
            else datetime.datetime.combine(value, datetime.time())
            for value in values
        ]
        return pa.array(moments, pa.timestamp("us"))
    # Parquet has no durations below zero.
    if kinds == {datetime.timedelta} and any(value is not None and value < datetime.timedelta() for value in values):
        return None
    try:
        if kinds <= {int, float} and float in kinds:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        if len(kinds) <= 1:
            return pa.array(values, None if kinds else pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    return None


KINDS = (
    (bool, "true or false"),
    (int | float, "numbers"),
    (datetime.date, "dates"),
    (datetime.time, "times"),
    (datetime.timedelta, "durations"),
    (str, "text"),
)


def _describe_mixed(name: str, values: list[Any], numbers: Sequence[int]) -> list[str]:
    """Say which values have another kind than most."""
    kinds = [next((what for kind, what in KINDS if isinstance(value, kind)), "others") for value in values]
    counts = {what: kinds.count(what) for _, what in KINDS}
    total = sum(value is not None for value in values)
    usual = max(counts, key=lambda what: counts[what])
    misfits = [place for place, value in enumerate(values) if value is not None and kinds[place] != usual]
    if not misfits:
        why = "some durations are below zero" if usual == "durations" else "its values don't fit into a number"
        return [f"{quote_column(name)} is text: {why}"]
    first = misfits[0]
    place = f"row {numbers[first]:,}"
    return [describe_misfits(name, len(misfits), total, usual, _write_value(values[first]), place)]


def _write_value(value: Any) -> str:
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return str(value)


def _is_midnight(value: Any) -> bool:
    return not isinstance(value, datetime.datetime) or value.time() == datetime.time()
