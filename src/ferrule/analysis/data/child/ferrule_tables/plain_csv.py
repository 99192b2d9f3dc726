"""Reads plain CSV in one pass that writes the copy as Parquet and computes the profile. Runs in the sandbox.

pyarrow parses numbers, ISO dates and text in half of duckdb's time. What it parses, duckdb would parse as the same
values; at the first line or value that it refuses, the pass ends with `NotPlain` or `IrregularLines`, and the file is
read in another way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from .conversion import PieceFile, PieceStream, connect
from .csv_lines import IrregularLines, Lines, inspect_csv, read_lines
from .csv_types import LOOKED_AT, is_text
from .profiling import profile_batches
from .wording import MISSING, PLACEHOLDERS

PARSED = 1 << 20
"""Bytes that are parsed at a time."""
GROUP_ROWS, GROUP_BYTES = 61_440, 32 << 20
"""Of a row group: what is held before it is written, the first that is reached."""
FEW = 1000
"""Distinct values of a column's first rows that are written as a dictionary."""
LARGE = 1e9
"""From here on, a number with decimals may have more than 15 digits, which a float rounds."""
PLAIN_TYPES = {
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "BOOLEAN": pa.bool_(),
}
"""The types of columns that both parsers read alike."""


def make_texts(texts: Sequence[str]) -> Any:
    """Make an Arrow array. `pa.array` would import pandas for it, which takes a third of a second."""
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))])


def mark_bytes(marked: bytes) -> Any:
    """Make a table of which bytes are marked."""
    table = np.zeros(256, bool)
    table[[*marked]] = True
    return table


AFTER_ZERO, SIGNS = mark_bytes(b"0123456789xX"), mark_bytes(b"+-")
MARKS = make_texts([text for mark in MISSING[1:] for text in (mark, f" {mark}", f"{mark} ")])
"""What means a missing value and isn't empty, alone or next to a space."""
LONGEST_MARK = 5
ZERO = pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(bytes(4))])[0]
NO_TEXT = pa.nulls(1, pa.string())[0]


class NotPlain(Exception):  # noqa: N818 - it says what the file is
    """The file has something that has to be read in another way."""


class CheckedFile:
    """A file for pyarrow, which would accept quotation marks that don't enclose a whole cell, and read 007 as 7.

    Raises `NotPlain` for these, and for a carriage return by itself, which may end a line or be part of a cell.
    `numbers`: the places of the columns whose values may have no zero in front.
    """

    closed = False

    def __init__(self, path: str, delimiter: str, quote: str, numbers: Sequence[int] = ()) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: PTH123, SIM115 - in the sandbox; closed by `close`
        self._delimiter, self._quote = delimiter.encode(), quote.encode()
        self._edges = mark_bytes(self._delimiter + self._quote + b"\r\n")
        self._starts = mark_bytes(self._delimiter + self._quote + b"\n ")
        self._quotes, self._last = 0, b"\n"
        self._numbers = np.array(sorted(numbers))
        self._record = b""
        """What was read of a line whose end wasn't."""
        self._buffers = [np.empty(0, bool), np.empty(0, bool)]

    def read(self, size: int = -1) -> bytes:
        chunk: bytes = self._file.read(size)
        if not chunk and (self._quotes % 2 or self._last == b"\r"):
            raise NotPlain("a quotation mark without a second one, or a carriage return by itself")
        if b"\r" in chunk or self._last == b"\r":
            self._check_returns(chunk)
        if self._quote in chunk or self._last == self._quote:
            self._check_quotes(chunk)
        if len(self._numbers):
            self._check_zeros(chunk)
        self._last = chunk[-1:] or self._last
        return chunk

    def _check_returns(self, chunk: bytes) -> None:
        """Check those of the chunk but for its last byte, and the last byte of the one before."""
        text = (self._last + chunk) if self._last == b"\r" else chunk
        if text[:-1].count(b"\r") != text.count(b"\r\n"):
            raise NotPlain("a carriage return by itself")

    def _check_quotes(self, chunk: bytes) -> None:
        """Check that each opening one follows, and each closing one precedes, an edge of a cell or another one."""
        data = np.frombuffer(self._last + chunk, np.uint8)
        places = np.flatnonzero(np.equal(data, self._quote[0], out=self._take_buffer(0, len(data))))
        # The last byte of the chunk before was counted there, but what follows it is known only now.
        seen = int(self._last == self._quote)
        is_closing = (np.arange(len(places)) + self._quotes - seen) % 2 == 1
        closing = places[is_closing]
        opening = places[seen:][~is_closing[seen:]]
        after = closing[closing < len(data) - 1] + 1
        if not (self._edges[data[opening - 1]].all() and self._edges[data[after]].all()):
            raise NotPlain("a quotation mark within a cell")
        self._quotes += len(places) - seen

    def _check_zeros(self, chunk: bytes) -> None:
        """Check that no number begins with a zero before a digit, or as 0x1F does."""
        text = self._record + chunk
        data = np.frombuffer(text, np.uint8)
        zeros = self._find_zeros(data)
        if len(zeros) and np.isin(self._find_columns(data, zeros), self._numbers).any():
            raise NotPlain("a number with a zero in front")
        end = text.rfind(b"\n")
        while end >= 0 and (self._quotes - text.count(self._quote, end)) % 2:
            end = text.rfind(b"\n", 0, end)
        self._record = text[end + 1 :]
        if len(self._record) > PARSED:
            raise NotPlain("a line that is longer than what is parsed at a time")

    def _find_zeros(self, data: Any) -> Any:
        """Return where cells begin with a zero before a digit or an x, after a sign or without."""
        size = max(0, len(data) - 1)
        is_zero = np.equal(data[:-1], b"0"[0], out=self._take_buffer(0, size))
        # Whatever begins a cell, and a sign, comes before the digits.
        is_after = self._take_buffer(1, size)
        is_after[:1] = True
        np.less(data[:-2], b"0"[0], out=is_after[1:])
        zeros = np.flatnonzero(np.logical_and(is_zero, is_after, out=is_zero))
        zeros = zeros[AFTER_ZERO[data[zeros + 1]]]
        zeros -= SIGNS[data[zeros - 1]] & (zeros > 0)
        return zeros[(zeros == 0) | self._starts[data[zeros - 1]]]

    def _take_buffer(self, number: int, size: int) -> Any:
        """Return an array of truth values that is used again and again: a new one costs more than what fills it."""
        if len(self._buffers[number]) < size:
            self._buffers[number] = np.empty(2 * size, bool)
        return self._buffers[number][:size]

    def _find_columns(self, data: Any, places: Any) -> Any:
        """Return the places of the columns of bytes; the data begin with a line."""
        quotes = np.flatnonzero(data == self._quote[0])
        ends, separators = (
            found[np.searchsorted(quotes, found) % 2 == 0]
            for found in (np.flatnonzero(data == byte) for byte in (b"\n"[0], self._delimiter[0]))
        )
        lines = np.concatenate([[0], np.searchsorted(separators, ends)])
        return np.searchsorted(separators, places) - lines[np.searchsorted(ends, places)]

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True
        self._file.close()


def stream_plain_csv(path: str, memory: int, seed: int, original: str | None = None) -> tuple[PieceStream, list[str]]:
    """Stream a file as Parquet, with its profile in the result at the end; and notes.

    The profile is None where the copy has to be profiled by itself. Raises `NotPlain` and `IrregularLines`, as taking
    pieces of the stream may. `original`: the file of which `path` was written by `regularize_lines`.
    """
    lines, types, notes = inspect_plain(connect(memory, threads=1), path, original)

    def work(file: PieceFile) -> dict[str, Any]:
        schema = pa.schema(types)
        written = write_batches(schema, read_batches(lines, types), file)
        parts = os.path.getsize(path) / PARSED  # noqa: PTH202 - in the sandbox, paths are names in its folder
        return {"profile": profile_batches(schema, written, parts, memory, seed)}

    stream = PieceStream()
    stream.start(work)
    return stream, notes


def inspect_plain(
    connection: duckdb.DuckDBPyConnection, path: str, original: str | None = None
) -> tuple[Lines, dict[str, Any], list[str]]:
    """Return what was found about the lines of a file, the types of its columns, and notes."""
    lines, finder, notes = inspect_csv(connection, path, original)
    try:
        columns = finder.find_plain()
    except duckdb.Error:
        raise NotPlain("lines that duckdb refuses") from None
    if columns is None or len(columns) < 2 or not set(columns.values()) <= set(PLAIN_TYPES):
        raise NotPlain("a column of another type or form, or only one")
    lines.late = finder.list_late()
    if next(read_lines(path, lines.delimiter, lines.quote))[0] != 1:
        raise NotPlain("a header that isn't the first line")
    return lines, {name: PLAIN_TYPES[kind] for name, kind in columns.items()}, notes


def read_batches(lines: Lines, types: dict[str, Any]) -> Iterator[Any]:
    """Yield the rows of a file as batches. Raises `IrregularLines` and `NotPlain`."""
    numbers = [place for place, kind in enumerate(types.values()) if kind in (pa.int64(), pa.float64())]
    file = CheckedFile(lines.path, lines.delimiter, lines.quote, numbers)
    late = set(lines.late)
    try:
        for batch in _open_reader(file, lines, types):
            columns = [
                _clean_text(column) if column.type == pa.string() else _check_numbers(column)
                for column in batch.columns
            ]
            late -= {name for name in late if _begins_with_text(columns[list(types).index(name)])}
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)
    except pa.ArrowInvalid as error:
        raise _explain_refusal(error) from None
    finally:
        file.close()


def _open_reader(file: CheckedFile, lines: Lines, types: dict[str, Any]) -> Any:
    # Missing texts are found by `_clean_text`: pyarrow wouldn't tell whether they were empty or, say, NA.
    options = pyarrow.csv.ConvertOptions(
        column_types=types,
        null_values=list(MISSING),
        strings_can_be_null=False,
        true_values=["true", "True", "TRUE"],
        false_values=["false", "False", "FALSE"],
    )
    return pyarrow.csv.open_csv(
        file,
        pyarrow.csv.ReadOptions(
            use_threads=False, block_size=PARSED, column_names=list(types), skip_rows=int(lines.has_header)
        ),
        pyarrow.csv.ParseOptions(delimiter=lines.delimiter, quote_char=lines.quote, newlines_in_values=True),
        options,
    )


def _clean_text(column: Any) -> Any:
    """Make empty texts missing. Raises `NotPlain` for one such as NA, which is so only with a note."""
    lengths = pc.binary_length(column)
    shortest = pc.min(lengths).as_py()
    if shortest is None or shortest > LONGEST_MARK:
        return column
    if pc.any(pc.is_in(column, MARKS)).as_py():
        raise NotPlain("texts that mean a missing value")
    return column if shortest else pc.if_else(pc.equal(lengths, ZERO), NO_TEXT, column)


def _begins_with_text(column: Any) -> bool:
    """Has a column, which had no value before, one now? Raises `NotPlain` if its values may be more than text."""
    if column.null_count == len(column):
        return False
    values = [value.strip() for value in column.drop_null().slice(0, LOOKED_AT).to_pylist()]
    if any(value in PLACEHOLDERS for value in values) or not is_text(values):
        raise NotPlain("a column whose values begin late")
    return True


def _check_numbers(column: Any) -> Any:
    """Return a column. Raises `NotPlain` for numbers that a float may round."""
    if column.type == pa.float64():
        magnitudes = pc.abs(column)
        greatest = pc.max(magnitudes).as_py()
        if greatest == float("inf"):
            greatest = pc.max(magnitudes.filter(pc.is_finite(magnitudes))).as_py()
        if greatest is not None and greatest >= LARGE:
            raise NotPlain("numbers of more than nine digits with decimals")
    return column


def _explain_refusal(error: Exception) -> Exception:
    """Make the exception of what pyarrow says."""
    if re.match(r"CSV parse error: (Row #\d+: )?Expected", str(error)):
        return IrregularLines()
    return NotPlain(str(error)[:200])


def write_batches(schema: Any, batches: Iterator[Any], file: PieceFile) -> Iterator[Any]:
    """Write batches as Parquet, and yield each."""
    writer: Any = None
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= GROUP_ROWS or sum(one.nbytes for one in held) >= GROUP_BYTES:
            writer = _write_group(writer, schema, held, file)
            held = []
        yield batch
    if held or writer is None:
        writer = _write_group(writer, schema, held, file)
    writer.close()


def _write_group(writer: Any, schema: Any, batches: list[Any], file: PieceFile) -> Any:
    table = pa.Table.from_batches(batches, schema)
    if writer is None:
        few = [name for name in schema.names if pc.count_distinct(table.column(name)).as_py() <= FEW]
        # Without the schema of Arrow, the copy is as duckdb would have written it.
        writer = pq.ParquetWriter(
            pa.PythonFile(file, mode="w"), schema, compression="snappy", use_dictionary=few, store_schema=False
        )
    writer.write_table(table, row_group_size=max(1, table.num_rows))
    return writer
