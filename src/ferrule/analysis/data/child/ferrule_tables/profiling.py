"""Profiles a table with duckdb, by all rows and by a seeded sample of them. Runs in the sandbox.

`profile_table` reads a Parquet file; `profile_batches` takes the rows as they are read, once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .sql import quote_name

SAMPLED_ROWS = 100_000
SHOWN_ROWS = 5
COLUMNS_AT_ONCE = 50
"""Columns that a query is about: one with thousands takes much longer than many with few."""
COUNTED_TOGETHER = 100_000
"""Values of columns of text that one query counts; with more, each column has a query."""
SHARE_OF_SAMPLE = 8
"""Of the memory: an eighth of it is for a sample that is made while rows are read."""
CELL = 80
"""Characters of a value that are kept."""
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]
TYPE_NAMES = {
    "BOOLEAN": "boolean",
    "DATE": "date",
    "BLOB": "binary",
    "INTERVAL": "duration",
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM", "JSON"), "text"),
    **dict.fromkeys(("TIME", "TIME WITH TIME ZONE", "TIME_NS"), "time"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "number"),
}
BYTES = {"boolean": 1, "text": 8, "binary": 32, "nested": 200, "time": 64, "duration": 64}
"""Of a value in a pandas data frame, besides the characters; 8 for the others."""


def profile_table(path: str, memory: int, seed: int) -> dict[str, Any]:
    """Profile a Parquet file."""
    connection = _connect_for_profile(memory)
    columns = _describe_columns(connection, f"read_parquet('{path}')")
    [(rows,)] = connection.execute(f"SELECT count(*) FROM read_parquet('{path}')").fetchall()
    found: list[dict[str, Any]] = []
    shown: list[list[Any]] = [[] for _ in range(min(rows, SHOWN_ROWS))]
    for start in range(0, len(columns), COLUMNS_AT_ONCE):
        part = columns[start : start + COLUMNS_AT_ONCE]
        block = [(f"c{place}", kind) for place, (_, kind) in enumerate(part)]
        # A view of a block: one of thousands of columns would be planned anew by each query.
        names = [quote_name(name) + f" AS c{place}" for place, (name, _) in enumerate(part)]
        connection.execute(f"CREATE OR REPLACE VIEW source AS SELECT {', '.join(names)} FROM read_parquet('{path}')")
        _make_sample(connection, [name for name, _ in block], rows, seed)
        _, whole = _profile_rows(connection, block)
        sampled = _profile_sample(connection, block, rows)
        found += [{**one, **other} for one, other in zip(whole, sampled, strict=True)]
        for row, more in zip(shown, _show_rows(connection, block), strict=True):
            row.extend(more)
    return _combine(rows, columns, found, shown)


def profile_batches(schema: Any, batches: Iterator[Any], parts: float, memory: int, seed: int) -> dict[str, Any] | None:
    """Profile batches of Arrow data, about `parts` of them, while they are read; None if it can't be done in one pass.

    That is for many columns, and for a sample that is larger or smaller than was estimated. Raises what `batches` do.
    """
    if len(schema) > COLUMNS_AT_ONCE:
        for _ in batches:
            pass
        return None
    connection = _connect_for_profile(memory)
    # `register` would import pandas, as would `empty_table`.
    connection.from_arrow(pa.Table.from_batches([], schema)).create_view("nothing")
    columns = _describe_columns(connection, "nothing")
    sampler = Sampler(schema, seed, memory // SHARE_OF_SAMPLE, parts)
    errors: list[Exception] = []

    def take() -> Iterator[Any]:
        try:
            for batch in batches:
                sampler.add(batch)
                yield batch
        except Exception as error:  # noqa: BLE001 - raised again below; duckdb would make another one of it
            errors.append(error)

    connection.from_arrow(pa.RecordBatchReader.from_batches(schema, take())).create_view("batches")
    _name_by_number(connection, "batches", len(columns))
    numbered = [(f"c{place}", kind) for place, (_, kind) in enumerate(columns)]
    rows, whole = _profile_rows(connection, numbered)
    if errors:
        raise errors[0]
    sample = sampler.finish()
    if sample is None:
        return None
    connection.from_arrow(sample).create_view("sample")
    sampled = _profile_sample(connection, numbered, rows)
    found = [{**one, **other} for one, other in zip(whole, sampled, strict=True)]
    return _combine(rows, columns, found, _show_rows(connection, numbered))


def _connect_for_profile(memory: int) -> duckdb.DuckDBPyConnection:
    # One thread: with more, means and deviations would differ in their last digits from one reading to the next.
    config: dict[str, Any] = {"threads": 1, "memory_limit": f"{memory // 2 >> 20}MiB", "temp_directory": ""}
    connection = duckdb.connect(config={**config, "autoinstall_known_extensions": False})
    connection.execute("SET enable_progress_bar = false")
    return connection


def _describe_columns(connection: duckdb.DuckDBPyConnection, source: str) -> list[tuple[str, str]]:
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    return [(row[0], _name_type(row[1])) for row in described]


def _name_by_number(connection: duckdb.DuckDBPyConnection, source: str, width: int) -> None:
    """Make a view with names of its own for columns, which those of the file can't clash with."""
    numbered = ", ".join(f"c{place}" for place in range(width))
    connection.execute(f"CREATE VIEW source AS SELECT * FROM {source} AS t({numbered})")


def _combine(
    rows: int, columns: list[tuple[str, str]], found: list[dict[str, Any]], shown: list[list[Any]]
) -> dict[str, Any]:
    found = [{"name": name, "type": kind, **one} for (name, kind), one in zip(columns, found, strict=True)]
    size = sum(rows * BYTES.get(one["type"], 8) + one.pop("bytes") for one in found)
    return {"rows": rows, "columns": found, "samples": shown, "memory": int(size)}


class Sampler:
    """Keeps the rows that have the least of random numbers, which are the same for each reading of a file.

    How many rows there will be is estimated, so that few are kept that the sample doesn't need in the end.
    """

    def __init__(self, schema: Any, seed: int, limit: int, parts: float) -> None:
        """`limit`: bytes of the sample; one that is larger is given up. `parts`: how many batches there may be."""
        self._schema = schema.append(pa.field("number", pa.int64())).append(pa.field("key", pa.float64()))
        self._random = np.random.default_rng(seed)
        self._limit, self._parts, self._bound = limit, max(parts, 1.0), 0.0
        self._kept: list[Any] = []
        self._rows = self._bytes = 0

    def add(self, batch: Any) -> None:
        self._bound = self._bound or min(1.0, 1.5 * SAMPLED_ROWS / (batch.num_rows * self._parts))
        keys = self._random.random(batch.num_rows)
        numbers = np.arange(self._rows, self._rows + batch.num_rows)
        self._rows += batch.num_rows
        if self._bytes <= self._limit:
            arrays = [*batch.columns, _make_array(numbers, pa.int64()), _make_array(keys, pa.float64())]
            chosen = _make_array(np.flatnonzero(keys < self._bound), pa.int64())
            self._kept.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema).take(chosen))
            self._bytes += self._kept[-1].nbytes
        else:
            self._kept = []

    def finish(self) -> Any:
        """Return the sample, its columns named by their number; None if it was too large or the estimate was wrong."""
        held = sum(one.num_rows for one in self._kept)
        if self._bytes > self._limit or held < min(self._rows, SAMPLED_ROWS):
            return None
        table = pa.Table.from_batches(self._kept, self._schema).combine_chunks()
        columns = table.take(pc.sort_indices(table.column("key"))[:SAMPLED_ROWS]).columns[:-1]
        return pa.Table.from_arrays(columns, names=[*(f"c{place}" for place in range(len(columns) - 1)), "number"])


def _make_array(values: Any, kind: Any) -> Any:
    """Make an Arrow array of one of numpy. `pa.array` and `pa.scalar` would import pandas, which takes a second."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _name_type(written: str) -> str:
    kind = written.partition("(")[0]
    if written.endswith("]") or kind in {"STRUCT", "MAP", "UNION", "LIST"}:
        return "nested"
    return TYPE_NAMES.get(kind, "timestamp" if kind.startswith("TIMESTAMP") else "text")


def _profile_rows(
    connection: duckdb.DuckDBPyConnection, columns: list[tuple[str, str]]
) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of rows, and of each column what all rows say."""
    parts = ["count(*)"]
    for column, kind in columns:
        parts += [f"count({column})", *(f"{one.format(column)}" for one in _AGGREGATES.get(kind, _ORDERED))]
    [row] = connection.execute(f"SELECT {', '.join(parts)} FROM source").fetchall()
    values = iter(row)
    rows = next(values)
    found = []
    for _, kind in columns:
        missing = rows - next(values)
        read = [next(values) for _ in _AGGREGATES.get(kind, _ORDERED)]
        found.append({"missing": missing, **_READERS.get(kind, _read_ordered)(read)})
    return rows, found


_ORDERED = ("min({})::VARCHAR", "max({})::VARCHAR", "approx_count_distinct({})")
_FINITE = "CASE WHEN isfinite({0}) THEN {0} END"
_AGGREGATES = {
    "nested": (),
    "binary": ("approx_count_distinct({})", "sum(octet_length({}))"),
    "text": (*_ORDERED, "min(length({}))", "max(length({}))", "sum(strlen({}))"),
    "integer": ("min({})", "max({})", "approx_count_distinct({})", "avg({})", "stddev_samp({}::DOUBLE)"),
    "number": (
        f"min({_FINITE})",
        f"max({_FINITE})",
        "approx_count_distinct({})",
        f"avg({_FINITE})",
        f"stddev_samp({_FINITE})",
        "count(*) FILTER (isinf({}))",
    ),
}


def _read_ordered(values: list[Any]) -> dict[str, Any]:
    low, high, distinct = values[:3]
    return {"minimum": _to_plain(low), "maximum": _to_plain(high), "distinct": distinct, "bytes": 0}


def _read_numbers(values: list[Any]) -> dict[str, Any]:
    found = {**_read_ordered(values), "mean": _to_number(values[3]), "deviation": _to_number(values[4])}
    return {**found, "infinite": values[5]} if values[5:] else found


def _read_text(values: list[Any]) -> dict[str, Any]:
    lengths = None if values[3] is None else [values[3], values[4]]
    return {**_read_ordered(values), "lengths": lengths, "bytes": int(values[5] or 0)}


def _read_binary(values: list[Any]) -> dict[str, Any]:
    return {"distinct": values[0], "bytes": int(values[1] or 0)}


_READERS = {
    "nested": lambda _: {"bytes": 0},
    "binary": _read_binary,
    "text": _read_text,
    "integer": _read_numbers,
    "number": _read_numbers,
}


def _make_sample(connection: duckdb.DuckDBPyConnection, columns: list[str], rows: int, seed: int) -> None:
    """Make a table of columns of the sampled rows: those whose number has the least hashes."""
    order = f"hash(number + {seed}::BIGINT * 1000003)"
    # Somewhat more than needed, so that only these have to be sorted.
    share = SAMPLED_ROWS / rows + 6 * math.sqrt(SAMPLED_ROWS) / rows if rows else 1.0
    chosen = f"{order} <= {int(share * 2**64)}::UBIGINT" if share < 1 else "true"
    connection.execute(
        f"CREATE OR REPLACE TABLE sample AS SELECT * FROM (SELECT {', '.join(columns)}, "
        f"row_number() OVER () - 1 AS number FROM source) WHERE {chosen} ORDER BY {order} LIMIT {SAMPLED_ROWS}"
    )


def _profile_sample(
    connection: duckdb.DuckDBPyConnection, columns: list[tuple[str, str]], rows: int
) -> list[dict[str, Any]]:
    """Return what the sample says of columns: quantiles, common texts, and distinct values if it has all rows."""
    found: list[dict[str, Any]] = [{} for _ in columns]
    wanted: list[str] = []
    readers: list[tuple[dict[str, Any], str]] = []
    for one, (column, kind) in zip(found, columns, strict=True):
        if kind != "nested" and rows <= SAMPLED_ROWS:
            wanted.append(f"count(DISTINCT {column})")
            readers.append((one, "distinct"))
        if kind in {"integer", "number"}:
            finite = f"CASE WHEN isfinite({column}::DOUBLE) THEN {column}::DOUBLE END"
            wanted.append(f"quantile_cont({finite}, {QUANTILES})")
            readers.append((one, "quantiles"))
    texts = [place for place, (_, kind) in enumerate(columns) if kind == "text"]
    for place, common in _find_common(connection, [columns[place][0] for place in texts], rows):
        found[texts[place]]["common"] = common
    values = connection.execute(f"SELECT {', '.join(wanted)} FROM sample").fetchone() if wanted else ()
    for (one, key), value in zip(readers, values or (), strict=True):
        one[key] = value if key == "distinct" else [_to_number(number) for number in value or ()]
    return found


def _find_common(
    connection: duckdb.DuckDBPyConnection, columns: list[str], rows: int
) -> Iterator[tuple[int, list[list[Any]]]]:
    """Yield the number of each column of text and its most common values, with how many rows have them."""
    if not columns or min(rows, SAMPLED_ROWS) * len(columns) > COUNTED_TOGETHER:
        for place, column in enumerate(columns):
            found = connection.execute(
                f"SELECT {column}::VARCHAR AS v, count(*) AS n FROM sample WHERE v IS NOT NULL "
                "GROUP BY v HAVING n > 1 ORDER BY n DESC, v LIMIT 10"
            )
            yield place, [[_cut(value), count] for value, count in found.fetchall()]
        return
    # One query for all of them: with thousands of columns, planning takes longer than counting.
    texts = ", ".join(f"{column}::VARCHAR" for column in columns)
    values = f"SELECT unnest({[*range(len(columns))]}) AS place, unnest([{texts}]) AS v FROM sample"
    common = connection.execute(
        f"SELECT place, v, count(*) AS n FROM ({values}) WHERE v IS NOT NULL GROUP BY place, v HAVING n > 1 "
        "QUALIFY row_number() OVER (PARTITION BY place ORDER BY n DESC, v) <= 10 ORDER BY place, n DESC, v"
    )
    of_column: list[list[list[Any]]] = [[] for _ in columns]
    for place, value, count in common.fetchall():
        of_column[place].append([_cut(value), count])
    yield from enumerate(of_column)


def _show_rows(connection: duckdb.DuckDBPyConnection, columns: list[tuple[str, str]]) -> list[list[Any]]:
    wanted = ", ".join(f"left({column}::VARCHAR, {CELL + 1})" for column, _ in columns)
    rows = connection.execute(f"SELECT {wanted} FROM (SELECT * FROM sample LIMIT {SHOWN_ROWS}) ORDER BY number")
    return [[None if value is None else _cut(value) for value in row] for row in rows.fetchall()]


def _to_plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return None if value is None else str(value).lower()
    if isinstance(value, int | float):
        return _to_number(value)
    if type(value).__name__ == "Decimal":
        return float(value)
    return _cut(str(value))


def _to_number(value: Any) -> int | float | None:
    if value is None or isinstance(value, int):
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def _cut(text: str) -> str:
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"
