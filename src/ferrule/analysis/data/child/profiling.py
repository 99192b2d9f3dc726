"""Profiles a table of Parquet with duckdb: one pass for all rows, one for a seeded sample. Runs in the sandbox."""

from __future__ import annotations

import math
from typing import Any

import duckdb

SAMPLE = 100_000
SHOWN = 5
BLOCK = 50
"""Columns that a query is about: one with thousands takes much longer than many with few."""
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
    described = connection.execute(f"DESCRIBE SELECT * FROM read_parquet('{path}')").fetchall()
    columns = [(row[0], _name_type(row[1])) for row in described]
    # Queries have their own names for columns, which those of the file can't clash with.
    numbered = ", ".join(f"c{place}" for place in range(len(columns)))
    connection.execute(f"CREATE VIEW source AS SELECT * FROM read_parquet('{path}') AS t({numbered})")
    [(rows,)] = connection.execute("SELECT count(*) FROM source").fetchall()
    found: list[dict[str, Any]] = []
    shown: list[list[Any]] = [[] for _ in range(min(rows, SHOWN))]
    for start in range(0, len(columns), BLOCK):
        block = [(f"c{start + place}", kind) for place, (_, kind) in enumerate(columns[start : start + BLOCK])]
        _make_sample(connection, [name for name, _ in block], rows, seed)
        whole = _profile_rows(connection, rows, block)
        sampled = _profile_sample(connection, block, rows)
        found += [{**one, **other} for one, other in zip(whole, sampled, strict=True)]
        for row, more in zip(shown, _show_rows(connection, block), strict=True):
            row.extend(more)
    found = [{"name": name, "type": kind, **one} for (name, kind), one in zip(columns, found, strict=True)]
    size = sum(rows * BYTES.get(one["type"], 8) + one.pop("bytes") for one in found)
    return {"rows": rows, "columns": found, "samples": shown, "memory": int(size)}


def _name_type(written: str) -> str:
    kind = written.partition("(")[0]
    if written.endswith("]") or kind in {"STRUCT", "MAP", "UNION", "LIST"}:
        return "nested"
    return TYPES.get(kind, "timestamp" if kind.startswith("TIMESTAMP") else "text")


def _profile_rows(
    connection: duckdb.DuckDBPyConnection, rows: int, columns: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return of each column what all rows say."""
    parts: list[str] = []
    for column, kind in columns:
        parts += [f"count({column})", *(f"{one.format(column)}" for one in _AGGREGATES.get(kind, _ORDERED))]
    row = connection.execute(f"SELECT {', '.join(parts)} FROM source").fetchone()
    values = iter(row or ())
    found = []
    for _, kind in columns:
        missing = rows - next(values)
        read = [next(values) for _ in _AGGREGATES.get(kind, _ORDERED)]
        found.append({"missing": missing, **_READERS.get(kind, _read_ordered)(read)})
    return found


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


def _make_sample(connection: duckdb.DuckDBPyConnection, columns: list[str], rows: int, seed: int) -> None:
    """Make a table of columns of the sampled rows: those whose number has the least hashes."""
    order = f"hash(number + {seed}::BIGINT * 1000003)"
    chosen = "true"
    if rows > SAMPLE:
        # Somewhat more than needed, so that only these have to be sorted.
        share = min(1.0, SAMPLE / rows + 6 * math.sqrt(SAMPLE) / rows)
        chosen = f"{order} <= {int(share * (2**64 - 1))}::UBIGINT"
    connection.execute(
        f"CREATE OR REPLACE TABLE sample AS SELECT * FROM (SELECT {', '.join(columns)}, "
        f"row_number() OVER () - 1 AS number FROM source) WHERE {chosen} ORDER BY {order} LIMIT {SAMPLE}"
    )


def _profile_sample(
    connection: duckdb.DuckDBPyConnection, columns: list[tuple[str, str]], rows: int
) -> list[dict[str, Any]]:
    """Return what the sample says of columns: quantiles, common texts, and distinct values if it has all rows."""
    found: list[dict[str, Any]] = [{} for _ in columns]
    wanted: list[str] = []
    readers: list[tuple[dict[str, Any], str]] = []
    for one, (column, kind) in zip(found, columns, strict=True):
        if kind != "nested" and rows <= SAMPLE:
            wanted.append(f"count(DISTINCT {column})")
            readers.append((one, "distinct"))
        if kind in {"integer", "number"}:
            finite = f"CASE WHEN isfinite({column}::DOUBLE) THEN {column}::DOUBLE END"
            wanted.append(f"quantile_cont({finite}, {QUANTILES})")
            readers.append((one, "quantiles"))
        if kind == "text":
            common = connection.execute(
                f"SELECT {column}::VARCHAR AS v, count(*) AS n FROM sample WHERE v IS NOT NULL "
                "GROUP BY v HAVING n > 1 ORDER BY n DESC, v LIMIT 10"
            ).fetchall()
            one["common"] = [[_cut(value), count] for value, count in common]
    values = connection.execute(f"SELECT {', '.join(wanted)} FROM sample").fetchone() if wanted else ()
    for (one, key), value in zip(readers, values or (), strict=True):
        one[key] = value if key == "distinct" else [_to_number(number) for number in value or ()]
    return found


def _show_rows(connection: duckdb.DuckDBPyConnection, columns: list[tuple[str, str]]) -> list[list[Any]]:
    wanted = ", ".join(f"left({column}::VARCHAR, {CELL + 1})" for column, _ in columns)
    rows = connection.execute(f"SELECT {wanted} FROM (SELECT * FROM sample LIMIT {SHOWN}) ORDER BY number")
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
