"""Binds `tables` and `results` for the code of a task. Runs in the sandbox, where the code can reach all of this."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from .values import read_value


def bind(files: dict[str, str], lazy: list[str], settings: dict[str, Any]) -> tuple[Tables, Results]:
    """Return what code finds as `tables` and `results`; a table is read once it is used.

    `files` are the tables' files in the present folder, `lazy` the tables that are opened as relations of duckdb.
    """
    # It would try for processes, and warn each task that the sandbox has none.
    os.environ["JOBLIB_MULTIPROCESSING"] = "0"
    _warm_up()
    return Tables(os.getcwd(), files, lazy, settings), Results()  # noqa: PTH109 - in the sandbox


class Tables(Mapping[str, Any]):
    """The tables by name: data frames that were read beforehand; a large one is a lazy relation of duckdb."""

    def __init__(self, folder: str, files: dict[str, str], lazy: list[str], settings: dict[str, Any]) -> None:
        self._paths = {name: os.path.join(folder, file) for name, file in files.items()}  # noqa: PTH118 - in the sandbox
        self._lazy = frozenset(lazy)
        self._settings = settings
        self._frames: dict[str, Any] = {}

    def load(self) -> None:
        """Read the tables that aren't lazy."""
        for name in self._paths:
            if name not in self._lazy:
                self[name]

    def __getitem__(self, name: str) -> Any:
        if name not in self._paths:
            raise KeyError(f"there is no table {name!r}; there are: {', '.join(self._paths) or 'none'}")
        if name not in self._frames:
            path = self._paths[name]
            self._frames[name] = self._open_relation(path) if name in self._lazy else read_frame(path)
        return self._frames[name]

    def _open_relation(self, path: str) -> Any:
        import duckdb

        for setting, value in self._settings.items():
            duckdb.execute(f"SET {setting} = '{value}'")
        # Without a main file, duckdb takes the sandbox for a person, and prints bars with durations into the result.
        duckdb.execute("SET enable_progress_bar = false")
        return duckdb.read_parquet(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __repr__(self) -> str:
        return f"tables: {', '.join(self._paths)}"

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class Results(Mapping[str, Any]):
    """What earlier tasks left, by task: read when it is used, from files in the run's folder."""

    def __init__(self) -> None:
        self._read: dict[str, Any] = {}

    def _list(self) -> dict[str, Any]:
        try:
            with open("results/index.json", encoding="utf-8") as file:  # noqa: PTH123
                found: dict[str, Any] = json.load(file)
                return found
        except OSError:
            return {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            found = self._list()
            if name not in found:
                there = ", ".join(found) or "none"
                raise KeyError(f"there is no result {name!r}; there are: {there}. A task sees those that it needs")
            file, data = found[name]["file"], found[name]["data"]
            self._read[name] = data if file is None else read_value(f"results/{file}")
        return self._read[name]

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __iter__(self) -> Iterator[str]:
        return iter(self._list())

    def __len__(self) -> int:
        return len(self._list())

    def __repr__(self) -> str:
        return f"results: {', '.join(self._list())}"


def read_frame(path: str) -> Any:
    """Read Parquet as a data frame, with days as timestamps and decimals as floats, as analyses use them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path, use_threads=False, memory_map=False)
    for place, field in enumerate(table.schema):
        if pa.types.is_date(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.timestamp("s")))
        elif pa.types.is_decimal(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.float64()))
        elif field.type == pa.binary(12):
            table = table.set_column(place, field.name, _read_intervals(table.column(place)))
    exact = {name: table.column(name) for name in table.column_names if _is_rounded(table.column(name))}
    frame = table.to_pandas(use_threads=False, split_blocks=True, self_destruct=True)
    for name, column in exact.items():
        frame[name] = column.to_pandas(types_mapper={column.type: _get_nullable(column.type)}.get)
    return frame


def _read_intervals(column: Any) -> Any:
    """Read intervals as durations: duckdb writes each as months, days and milliseconds, bytes for pyarrow."""
    import numpy as np
    import pyarrow as pa

    values = column.to_pylist()
    fields = np.frombuffer(b"".join(value or bytes(12) for value in values), "<u4").reshape(-1, 3).astype("int64")
    durations = ((fields[:, 0] * 30 + fields[:, 1]) * 86_400_000 + fields[:, 2]).astype("m8[ms]")
    return pa.array(durations, mask=np.array([value is None for value in values], bool))


EXACT = 2**53
"""Up to which a float holds every whole number."""


def _is_rounded(column: Any) -> bool:
    """Would a column of whole numbers lose digits as floats, which it becomes if values are missing?"""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(column.type) or not column.null_count or column.type.bit_width < 64:
        return False
    ends = pc.min_max(column).as_py()
    return bool(max(abs(ends["min"] or 0), abs(ends["max"] or 0)) > EXACT)


def _get_nullable(kind: Any) -> Any:
    import pandas as pd

    return pd.UInt64Dtype() if str(kind) == "uint64" else pd.Int64Dtype()


def _warm_up() -> None:
    """Import what a first chart of a data frame needs, if it is installed."""
    try:
        importlib.import_module("pandas.plotting._matplotlib")
    except ImportError:
        return
