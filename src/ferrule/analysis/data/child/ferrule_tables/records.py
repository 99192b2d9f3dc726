"""Reads databases, whose values carry their own types, as Arrow data. Runs in the sandbox."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from .sql import quote_name
from .wording import (
    MISSING,
    describe_misfits,
    describe_missing,
    describe_renamed,
    make_unique,
    quote_column,
    write_count,
)

BATCH = 20_000
EXACT_FLOAT = 2**53
"""Up to which a float holds every whole number."""


class NoRecords(Exception):  # noqa: N818 - it says what is missing
    """A workbook or database without the data; the message ends the sentence that begins with its name."""


def list_database_tables(path: str) -> tuple[list[str], list[str]]:
    """List the tables and views of an SQLite database that have rows, and notes of the others."""
    names, notes = [], []
    with _open_database(path) as database:
        try:
            found = database.execute(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND substr(name, 1, 7) != 'sqlite_' ORDER BY name"
            ).fetchall()
            for name, kind in found:
                if reason := _find_reason(database, name, kind):
                    notes.append(f"the {kind} {quote_column(name)} {reason}")
                else:
                    names.append(name)
        except sqlite3.DatabaseError as error:
            raise NoRecords(f"is a damaged SQLite database ({error}): save it again") from None
    return names, notes


def _find_reason(database: sqlite3.Connection, name: str, kind: str) -> str | None:
    """Say why a table or view isn't read."""
    try:
        if database.execute(f"SELECT 1 FROM {quote_name(name)} LIMIT 1").fetchone() is None:
            return "has no rows, and is left out"
    except sqlite3.OperationalError as error:
        if kind == "table" and "no such" not in str(error):
            raise
        # A view of a table that was removed, or one that uses a function or module of the program that made it.
        return f"can't be read, and is left out ({error})"
    return None


def _open_database(path: str) -> sqlite3.Connection:
    # Immutable: it takes no lock, and looks for no other file.
    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    return database


def read_database_table(path: str, name: str) -> tuple[Any, list[str]]:
    """Return a reader of a table's batches, and notes. SQLite types each value: those decide the columns' types."""
    database = _open_database(path)
    try:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({quote_name(name)})")]
        unique = make_unique(columns)
        notes = describe_renamed(columns, unique)
        types = []
        for column in columns:
            kind, said = _find_type(database, name, column)
            types.append(kind)
            notes += said
    except sqlite3.DatabaseError as error:
        raise NoRecords(f"is a damaged SQLite database ({error}): save it again") from None
    schema = pa.schema([pa.field(column, kind) for column, kind in zip(unique, types, strict=True)])
    wanted = ", ".join(map(quote_name, columns))

    def read() -> Iterator[Any]:
        rows = database.execute(f"SELECT {wanted} FROM {quote_name(name)}")
        while batch := rows.fetchmany(BATCH):
            arrays = [_convert(values, kind) for values, kind in zip(zip(*batch, strict=True), types, strict=True)]
            yield pa.record_batch(arrays, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, read()), notes


def _find_type(database: sqlite3.Connection, table: str, column: str) -> tuple[Any, list[str]]:
    """Return the type of a column, and notes."""
    name = quote_name(column)
    counts = dict(
        database.execute(
            f"SELECT typeof({name}), count(*) FROM {quote_name(table)} WHERE {name} IS NOT NULL GROUP BY 1"
        ).fetchall()
    )
    kinds = set(counts)
    if kinds == {"text"}:
        return _find_time_type(database, table, column)
    if kinds <= {"integer"}:
        return pa.int64(), []
    if kinds <= {"integer", "real"}:
        return _find_number_type(database, table, column, kinds)
    if kinds == {"blob"}:
        return pa.binary(), []
    if "blob" in kinds:
        return pa.string(), [f"{quote_column(column)} is text: {counts['blob']:,} of its values are bytes"]
    numbers = counts.get("integer", 0) + counts.get("real", 0)
    marks = ", ".join("?" * len(MISSING))
    query = (
        f"SELECT count(*), min({name}) FROM {quote_name(table)} WHERE typeof({name}) = 'text' AND {name} IN ({marks})"
    )
    missing, marker = database.execute(query, MISSING).fetchone()
    if missing == counts["text"]:
        kind, rounded = _find_number_type(database, table, column, kinds)
        return kind, rounded or [describe_missing(column, missing, marker)]
    is_number = numbers >= counts["text"]
    condition = f"typeof({name}) {'=' if is_number else '!='} 'text' AND {name} IS NOT NULL"
    [value] = database.execute(f"SELECT {name} FROM {quote_name(table)} WHERE {condition} LIMIT 1").fetchone()
    misfits, what = (counts["text"], "numbers") if is_number else (numbers, "text")
    return pa.string(), [describe_misfits(column, misfits, numbers + counts["text"], what, value)]


def _find_number_type(database: sqlite3.Connection, table: str, column: str, kinds: set[str]) -> tuple[Any, list[str]]:
    """Return the type of a column of numbers, and a note if it is text."""
    if "real" not in kinds:
        return pa.int64(), []
    name = quote_name(column)
    wide = database.execute(
        f"SELECT {name} FROM {quote_name(table)} WHERE typeof({name}) = 'integer' "
        f"AND ({name} > {EXACT_FLOAT} OR {name} < -{EXACT_FLOAT})"
    )
    rounded = describe_rounded(column, chain([0.0], (value for (value,) in wide)))
    return (pa.string() if rounded else pa.float64()), rounded


def _find_time_type(database: sqlite3.Connection, table: str, column: str) -> tuple[Any, list[str]]:
    """Dates and times are text in SQLite: those that are all in ISO form. Returns the type, and notes."""
    name = quote_name(column)
    day = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
    time = f"{day}[ T][0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
    # SQLite takes 2024-02-30 as the first of March, once it has to add something.
    is_day = f"({name} GLOB '{day}' AND date({name}, '+0 days') IS {name})"
    is_time = f"({name} GLOB '{time}' AND datetime({name}, '+0 days') IS replace({name}, 'T', ' '))"
    forms = (is_day, is_time, f"{name} GLOB '{day}' OR {name} GLOB '{time}'")
    wanted = ", ".join(f"sum({form})" for form in forms)
    query = f"SELECT count(*), {wanted} FROM {quote_name(table)} WHERE {name} IS NOT NULL"
    total, days, times, dated = database.execute(query).fetchone()
    if days == total:
        return pa.date32(), []
    if times == total:
        return pa.timestamp("s"), []
    if dated * 2 < total or not (days or times):
        return pa.string(), []
    number, what, form = (days, "dates", is_day) if days >= times else (times, "dates with a time", is_time)
    query = f"SELECT {name} FROM {quote_name(table)} WHERE NOT ({form}) ORDER BY {name} = '' LIMIT 1"
    [value] = database.execute(query).fetchone()
    return pa.string(), [describe_misfits(column, total - number, total, what, value)]


def describe_rounded(name: str, values: Iterable[Any]) -> list[str]:
    """Return a note if values are whole numbers and others, and a float would round some of the whole ones."""
    whole, has_floats = 0, False
    for value in values:
        has_floats = has_floats or isinstance(value, float)
        # Longer ones fit into no float.
        is_wide = isinstance(value, int) and abs(value) > EXACT_FLOAT and value.bit_length() < 1000
        whole += is_wide and int(float(value)) != value
    if not (whole and has_floats):
        return []
    values_are = write_count(whole, "value")
    return [f"{quote_column(name)} is text: {values_are} of more than 15 digits, which a number rounds"]


def _convert(values: Sequence[Any], kind: Any) -> Any:
    if kind == pa.string():
        return pa.array([None if value is None else _to_text(value) for value in values], kind)
    if kind == pa.date32():
        return pa.array([None if value is None else datetime.date.fromisoformat(value) for value in values], kind)
    if kind == pa.timestamp("s"):
        return pa.array([None if value is None else datetime.datetime.fromisoformat(value) for value in values], kind)
    if kind == pa.float64():
        return pa.array([None if value is None or isinstance(value, str) else float(value) for value in values], kind)
    return pa.array([None if isinstance(value, str) else value for value in values], kind)


def _to_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
