"""Reads workbooks and databases, whose values carry their own types, as Arrow data. Runs in the sandbox."""

from __future__ import annotations

import datetime
import sqlite3
import zipfile
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import pyarrow as pa

BATCH = 20_000
ERRORS = {"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"}


class NoRecords(Exception):  # noqa: N818 - it says what is missing
    """A workbook or database without the data; the message ends the sentence that begins with its name."""


def list_sheets(path: str) -> list[str]:
    """List the sheets of a workbook that have cells."""
    book = _open_book(path)
    try:
        return [sheet.title for sheet in book.worksheets if _has_cells(sheet)]
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
    rows: Iterator[tuple[Any, ...]] = (tuple(row) for row in sheet.iter_rows(values_only=True))
    rows = (row for row in rows if any(cell is not None for cell in row))
    head = next(rows, ())
    skipped = 0
    while sum(cell is not None for cell in head) == 1 and (after := next(rows, None)) is not None:
        if sum(cell is not None for cell in after) == 1:
            rows = chain([after], rows)
            break
        head, skipped = after, skipped + 1
    if skipped:
        notes.append(f"the first {skipped} rows are a title" if skipped > 1 else "the first row is a title")
    body = list(rows)
    return make_arrow_table(head, body, notes), notes


def make_arrow_table(head: Sequence[Any], body: list[tuple[Any, ...]], notes: list[str]) -> Any:
    """Make a table of a header and rows, whose values decide the columns' types."""
    width = max(len(head), max((len(row) for row in body), default=0))
    names, columns, errors = [], [], 0
    for place in range(width):
        name = head[place] if place < len(head) else None
        values = [row[place] if place < len(row) else None for row in body]
        if name is None and all(value is None for value in values):
            continue
        errors += sum(isinstance(value, str) and value in ERRORS for value in values)
        values = [
            None if isinstance(value, str) and (value in ERRORS or not value.strip()) else value for value in values
        ]
        names.append(str(name).strip() if name is not None else f"column{place + 1}")
        columns.append(make_column(values))
    if errors:
        notes.append(f"{errors:,} cells with an error such as #DIV/0! are missing values")
    unique = make_unique(names)
    if unique != names:
        notes.append("columns with the same name have a number added")
    return pa.table(dict(zip(unique, columns, strict=True)))


def make_unique(names: Sequence[str]) -> list[str]:
    """Add a number to each name that, apart from case, was there before."""
    found: list[str] = []
    seen: set[str] = set()
    for name in names:
        number, new = 1, name
        while new.casefold() in seen:
            new, number = f"{name}_{number}", number + 1
        seen.add(new.casefold())
        found.append(new)
    return found


def make_column(values: list[Any]) -> Any:
    """Make an Arrow array: of one type if the values have one, else of text."""
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
    try:
        if kinds <= {int, float} and float in kinds:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        if len(kinds) == 1:
            return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _is_midnight(value: Any) -> bool:
    return not isinstance(value, datetime.datetime) or value.time() == datetime.time()


def list_database_tables(path: str) -> list[str]:
    """List the tables and views of an SQLite database that have rows."""
    with _open_database(path) as database:
        try:
            found = database.execute(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND substr(name, 1, 7) != 'sqlite_' ORDER BY name"
            ).fetchall()
            return [name for name, kind in found if _has_rows(database, name, kind)]
        except sqlite3.DatabaseError as error:
            raise NoRecords(f"is a damaged SQLite database ({error}): save it again") from None


def _has_rows(database: sqlite3.Connection, name: str, kind: str) -> bool:
    try:
        return database.execute(f"SELECT 1 FROM {quote_name(name)} LIMIT 1").fetchone() is not None
    except sqlite3.OperationalError:
        if kind == "table":
            raise
        return False  # the view is of a table that was removed, or uses a function of the program that made it


def _open_database(path: str) -> sqlite3.Connection:
    # Immutable: it takes no lock, and looks for no other file.
    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    return database


def quote_name(name: str) -> str:
    """Write a name as SQL does."""
    return '"' + name.replace('"', '""') + '"'


def read_database_table(path: str, name: str) -> tuple[Any, list[str]]:
    """Return a reader of a table's batches, and notes. SQLite types each value: those decide the columns' types."""
    database = _open_database(path)
    try:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({quote_name(name)})")]
        types = [_find_type(database, name, column) for column in columns]
    except sqlite3.DatabaseError as error:
        raise NoRecords(f"is a damaged SQLite database ({error}): save it again") from None
    schema = pa.schema([pa.field(column, kind) for column, kind in zip(make_unique(columns), types, strict=True)])
    wanted = ", ".join(map(quote_name, columns))

    def read() -> Iterator[Any]:
        rows = database.execute(f"SELECT {wanted} FROM {quote_name(name)}")
        while batch := rows.fetchmany(BATCH):
            arrays = [_convert(values, kind) for values, kind in zip(zip(*batch, strict=True), types, strict=True)]
            yield pa.record_batch(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, read()), []


def _find_type(database: sqlite3.Connection, table: str, column: str) -> Any:
    name = quote_name(column)
    kinds = {kind for (kind,) in database.execute(f"SELECT DISTINCT typeof({name}) FROM {quote_name(table)}")} - {
        "null"
    }
    if kinds == {"text"}:
        return _find_time_type(database, table, name)
    if kinds <= {"integer"}:
        return pa.int64()
    if kinds <= {"integer", "real"}:
        return pa.float64()
    return pa.binary() if kinds == {"blob"} else pa.string()


def _find_time_type(database: sqlite3.Connection, table: str, name: str) -> Any:
    """Dates and times are text in SQLite: those that are all in ISO form."""
    day = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
    query = f"SELECT sum({name} NOT GLOB '{day}'), sum({name} NOT GLOB '{day}[ T][0-9][0-9]:[0-9][0-9]:[0-9][0-9]'), "
    query += f"sum({name} IS NOT NULL AND datetime({name}) IS NULL) FROM {quote_name(table)}"
    not_days, not_times, invalid = database.execute(query).fetchone()
    if invalid or (not_days and not_times):
        return pa.string()
    return pa.timestamp("s") if not_days else pa.date32()


def _convert(values: Sequence[Any], kind: Any) -> Any:
    if kind == pa.string():
        return pa.array([None if value is None else _to_text(value) for value in values], kind)
    if kind == pa.date32():
        return pa.array([None if value is None else datetime.date.fromisoformat(value) for value in values], kind)
    if kind == pa.timestamp("s"):
        return pa.array([None if value is None else datetime.datetime.fromisoformat(value) for value in values], kind)
    if kind == pa.float64():
        return pa.array([None if value is None else float(value) for value in values], kind)
    return pa.array(values, kind)


def _to_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
