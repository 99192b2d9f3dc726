"""Reads CSV as `read_tables` does, without a sandbox, for tests of how its lines and columns are read."""

import io
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ferrule.analysis.data.child.ferrule_tables.conversion import connect, copy_relation
from ferrule.analysis.data.child.ferrule_tables.csv_lines import IrregularLines, make_csv_query, regularize_lines

MB = 1 << 20


def read_here(path: str) -> tuple[pa.Table, list[str]]:
    """Read a file by duckdb, with regular lines if it has others."""
    notes: list[str] = []
    try:
        query, notes = make_csv_query(connect(512 * MB), path)
        return take_table(query), notes
    except (IrregularLines, duckdb.Error, ValueError):
        notes, chunks = regularize_lines(path)
        Path(f"{path}.regular").write_bytes(b"".join([*chunks]))
        query, more = make_csv_query(connect(512 * MB), f"{path}.regular", path)
        return take_table(query), [*notes, *more]


def take_table(query: str) -> pa.Table:
    """Run a query as a conversion does."""
    stream, data = copy_relation(512 * MB, query), b""
    while "piece" in (taken := stream.take()):
        data += taken["piece"]
    if "error" in taken:
        raise ValueError(taken["message"])
    return pq.read_table(io.BytesIO(data))
