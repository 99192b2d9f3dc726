"""Profiles a table of Parquet with duckdb: one pass for all rows, one for a seeded sample. Runs in the sandbox."""

from __future__ import annotations

import math
from typing import Any

import duckdb

SAMPLE = 100_000
SHOWN = 5
CELL = 80
"""Characters of a value that are kept."""
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]
TYPES = {
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
    # One thread: with more, means and deviations would differ in their last digits from one reading to the next.
    config: dict[str, Any] = {"threads": 1, "memory_limit": f"{memory // 2 >> 20}MiB", "temp_directory": ""}
    connection = duckdb.connect(config={**config, "autoinstall_known_extensions": False})
    source = f"read_parquet('{path}', file_row_number=true)"
    described = connection.execute(f"DESCRIBE SELECT * FROM read_parquet('{path}')").fetchall()
    columns = [(row[0], _name_type(row[1])) for row in described]
    rows, whole = _profile_rows(connection, source, columns)
    _make_sample(connection, source, rows, seed)
    found = [
        {"name": name, "type": kind, **whole[place], **_profile_sample(connection, place, kind, rows)}
        for place, (name, kind) in enumerate(columns)
    ]
    size = sum(rows * BYTES.get(one["type"], 8) + one.pop("bytes") for one in found)
    return {"rows": rows, "columns": found, "samples": _show_rows(connection, columns), "memory": int(size)}


def _name_type(written: str) -> str:
    kind = written.partition("(")[0]
    if written.endswith("]") or kind in {"STRUCT", "MAP", "UNION", "LIST"}:
        return "nested"
    return TYPES.get(kind, "timestamp" if kind.startswith("TIMESTAMP") else "text")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _profile_rows(
    connection: duckdb.DuckDBPyConnection, source: str, columns: list[tuple[str, str]]
) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of rows, and of each column what all rows say."""
    parts = ["count(*)"]
    for name, kind in columns:
        column = _quote(name)
        parts += [f"count({column})", *(f"{one.format(column)}" for one in _AGGREGATES.get(kind, _ORDERED))]
    row = connection.execute(f"SELECT {', '.join(parts)} FROM {source}").fetchone()
    assert row is not None
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
    ),
}


def _read_ordered(values: list[Any]) -> dict[str, Any]:
    low, high, distinct = values[:3]
    return {"minimum": _to_plain(low), "maximum": _to_plain(high), "distinct": distinct, "bytes": 0}


def _read_numbers(values: list[Any]) -> dict[str, Any]:
    return {**_read_ordered(values), "mean": _to_number(values[3]), "deviation": _to_number(values[4])}


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


def _make_sample(connection: duckdb.DuckDBPyConnection, source: str, rows: int, seed: int) -> None:
    """Make a table of the sampled rows: those whose number has the least hashes, whatever the threads."""
    order = f"hash(file_row_number + {seed}::BIGINT * 1000003)"
    chosen = "true"
    if rows > SAMPLE:
        # Somewhat more than needed, so that only these have to be sorted.
        share = min(1.0, SAMPLE / rows + 6 * math.sqrt(SAMPLE) / rows)
        chosen = f"{order} <= {int(share * (2**64 - 1))}::UBIGINT"
    connection.execute(f"CREATE TABLE sample AS SELECT * FROM {source} WHERE {chosen} ORDER BY {order} LIMIT {SAMPLE}")


def _profile_sample(connection: duckdb.DuckDBPyConnection, place: int, kind: str, rows: int) -> dict[str, Any]:
    """Return what the sample says of a column: quantiles, common texts, and distinct values if it has all rows."""
    names = [row[0] for row in connection.execute("DESCRIBE sample").fetchall()]
    column = _quote(names[place])
    found: dict[str, Any] = {}
    if kind != "nested" and rows <= SAMPLE:
        [(found["distinct"],)] = connection.execute(f"SELECT count(DISTINCT {column}) FROM sample").fetchall()
    if kind in {"integer", "number"}:
        finite = f"CASE WHEN isfinite({column}::DOUBLE) THEN {column}::DOUBLE END"
        [(quantiles,)] = connection.execute(f"SELECT quantile_cont({finite}, {QUANTILES}) FROM sample").fetchall()
        found["quantiles"] = [_to_number(value) for value in quantiles or ()]
    if kind == "text":
        common = connection.execute(
            f"SELECT {column}::VARCHAR AS v, count(*) AS n FROM sample WHERE v IS NOT NULL "
            "GROUP BY v HAVING n > 1 ORDER BY n DESC, v LIMIT 10"
        ).fetchall()
        found["common"] = [[_cut(value), count] for value, count in common]
    return found


def _show_rows(connection: duckdb.DuckDBPyConnection, columns: list[tuple[str, str]]) -> list[list[Any]]:
    wanted = ", ".join(f"left({_quote(name)}::VARCHAR, {CELL + 1})" for name, _ in columns)
    rows = connection.execute(f"SELECT {wanted} FROM (SELECT * FROM sample LIMIT {SHOWN}) ORDER BY file_row_number")
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
