"""Begins the copy of a source, whose pieces are then taken one by one. Runs in the sandbox.

A session copies one thing at a time. Each function but `take_piece` begins one and returns the notes on it.
"""

from __future__ import annotations

from typing import Any

from .conversion import PieceStream, connect, copy_bytes, copy_relation, make_parquet_query
from .csv_lines import make_csv_query, regularize_lines
from .detection import decode_chunks
from .json_query import make_json_query
from .plain_csv import stream_plain_csv
from .records import read_database_table
from .workbooks import read_sheet

MAX_UNPACKED = 20 * 1024**3
"""Bytes of a file once it is unpacked, decoded or written with regular lines."""

_streams: list[PieceStream] = []


def _begin(stream: PieceStream) -> None:
    _streams[:] = [stream]


def take_piece() -> dict[str, Any]:
    """Return the next piece of the copy, its result at the end, or its error."""
    return _streams[0].take()


def unpack(path: str, compression: str, encoding: str) -> list[str]:
    """Copy a file without compression, as UTF-8."""
    _begin(copy_bytes(decode_chunks(path, compression, encoding), MAX_UNPACKED))
    return []


def regularize(path: str) -> list[str]:
    """Copy CSV so that all lines have the same number of cells."""
    notes, chunks = regularize_lines(path)
    _begin(copy_bytes(chunks, MAX_UNPACKED))
    return notes


def copy_plain_csv(path: str, memory: int, seed: int, original: str | None) -> list[str]:
    """Copy plain CSV as Parquet; the result holds the profile. `original` is the file as it was before `regularize`."""
    stream, notes = stream_plain_csv(path, memory, seed, original)
    _begin(stream)
    return notes


def copy_csv(path: str, memory: int, original: str | None) -> list[str]:
    """Copy any CSV with regular lines as Parquet. `original` is the file as it was before `regularize`."""
    query, notes = make_csv_query(connect(memory), path, original)
    _begin(copy_relation(memory, query))
    return notes


def copy_json(path: str, kind: str, memory: int) -> list[str]:
    """Copy JSON or JSON lines as Parquet."""
    query, notes = make_json_query(path, kind, memory)
    _begin(copy_relation(memory, query))
    return notes


def copy_parquet(path: str, memory: int) -> list[str]:
    """Copy Parquet as Parquet of one form."""
    query, notes = make_parquet_query(path)
    _begin(copy_relation(memory, query))
    return notes


def copy_sheet(path: str, part: str, memory: int) -> list[str]:
    """Copy a sheet of a workbook as Parquet."""
    reader, notes = read_sheet(path, part)
    _begin(copy_relation(memory, "FROM reader", reader))
    return notes


def copy_database_table(path: str, part: str, memory: int) -> list[str]:
    """Copy a table of an SQLite database as Parquet."""
    reader, notes = read_database_table(path, part)
    _begin(copy_relation(memory, "FROM reader", reader))
    return notes
