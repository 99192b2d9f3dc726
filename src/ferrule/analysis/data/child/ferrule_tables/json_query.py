"""Makes the query that reads a file of JSON, so that no value is changed without a note. Runs in the sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import duckdb

from .conversion import connect
from .csv_rows import ROUNDED, ROUNDING, count_if
from .json_errors import explain_json
from .sql import quote_name, quote_text
from .wording import describe_renamed, quote_column, write_count


def make_json_query(path: str, kind: str, memory: int) -> tuple[str, list[str]]:
    """Return the query of a file of JSON or JSON lines, and notes; an object of lists is a table too."""
    shape = "newline_delimited" if kind == "jsonl" else "auto"
    # Types by all rows: by the first ones, whole numbers would round a fraction that comes later.
    source = f"read_json({quote_text(path)}, format='{shape}', sample_size=-1)"
    connection = connect(memory)
    # Each description parses the whole file.
    described = connection.sql(f"SELECT * FROM {source}")
    types = dict(zip(described.columns, described.types, strict=True))
    has_lists = kind == "json" and _is_object_of_lists(connection, source, types)
    if list(types) == ["json"]:
        explain_json(path, kind)
    renamed = [] if has_lists else _find_renamed(path, list(types))
    query, notes = JsonReader(connection, source, types, has_lists=has_lists).write_query()
    return query, renamed + notes


class JsonReader:
    """Reads the columns of a file; with `has_lists`, those of one object whose members are lists."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, source: str, types: Mapping[str, Any], *, has_lists: bool
    ) -> None:
        self._connection, self._source = connection, source
        self._lists = list(types) if has_lists else []
        columns = [(name, kind.children[0][1] if has_lists else kind) for name, kind in types.items()]
        self._has_objects = has_lists and len(columns) == 1 and columns[0][1].id == "struct"
        self._columns = {name: str(kind) for name, kind in (columns[0][1].children if self._has_objects else columns)}
        self._query = self._select(source)
        self._may_be_renamed = not has_lists and bool(_list_numbered(list(types)))
        """Whether a column may have another name than its key, which can't be read as it stands in the file then."""
        self._replaced: dict[str, str] = {}
        self._notes: list[str] = []

    def write_query(self) -> tuple[str, list[str]]:
        """Return the query, and notes."""
        for name in self._list_of_kind("TIMESTAMP WITH TIME ZONE"):
            self._notes.append(f"{quote_column(name)}: times are in UTC, whatever offsets the file has")
        self._keep_times()
        for name in self._list_of_kind("JSON"):
            self._keep_text(name, "its values are of several types", f"{quote_name(name)} ->> '$'")
        for name in self._list_of_kind("UUID"):
            # In pandas, it would be an object that is equal to no text.
            self._replaced[name] = f"{quote_name(name)}::VARCHAR"
        self._keep_whole_numbers()
        self._keep_floats()
        if not self._replaced:
            return self._query, self._notes
        replaced = ", ".join(f"{value} AS {quote_name(name)}" for name, value in self._replaced.items())
        return f"SELECT * REPLACE ({replaced}) FROM ({self._query})", self._notes

    def _list_of_kind(self, kind: str) -> list[str]:
        return [name for name, found in self._columns.items() if found == kind]

    def _keep_text(self, name: str, why: str, value: str) -> None:
        self._replaced[name] = value
        self._notes.append(f"{quote_column(name)} is text: {why}")

    def _keep_times(self) -> None:
        """Keep the columns of times with 24:00 as text, which duckdb has, and Python and pandas haven't."""
        found = self._ask({name: f"max({quote_name(name)})::VARCHAR" for name in self._list_of_kind("TIME")})
        for name, latest in found.items():
            if latest and latest.startswith("24"):
                self._keep_text(name, 'it has "24:00", which is no time of day', f"{quote_name(name)}::VARCHAR")

    def _keep_whole_numbers(self) -> None:
        """Keep the digits of whole numbers of both signs: duckdb reads HUGEINT, of which Parquet would make a float."""
        ends = "max({0}) >= {1} OR min({0}) < -{1}".format
        found = self._ask({name: ends(quote_name(name), 2**63) for name in self._list_of_kind("HUGEINT")})
        for name, is_wide in found.items():
            self._replaced[name] = f"CAST({quote_name(name)} AS BIGINT)"
            if is_wide:
                self._keep_text(name, "its values don't fit into a number", f"{quote_name(name)}::VARCHAR")

    def _keep_floats(self) -> None:
        """Keep the digits of whole numbers that a float would round."""
        found = self._ask({name: f"max(abs({quote_name(name)})) >= {2**53}" for name in self._list_of_kind("DOUBLE")})
        wide = {name: f"{quote_name(name)} ->> '$'" for name, is_wide in found.items() if is_wide}
        if wide and self._may_be_renamed:
            self._notes += [f"{quote_column(name)}: whole numbers of more than 15 digits are rounded" for name in wide]
        if not wide or self._may_be_renamed:
            return
        self._query = self._select(self._write_source(wide))
        counts = self._ask({name: count_if(ROUNDED.format(value)) for name, value in wide.items()})
        rounded = {name: value for name, value in wide.items() if counts[name]}
        self._query = self._select(self._write_source(rounded) if rounded else self._source)
        for name, value in rounded.items():
            self._keep_text(name, f"{write_count(counts[name], 'value')} {ROUNDING[2]}", value)

    def _ask(self, wanted: Mapping[str, str]) -> dict[str, Any]:
        if not wanted:
            return {}
        row = self._connection.execute(f"SELECT {', '.join(wanted.values())} FROM ({self._query})").fetchone() or ()
        return dict(zip(wanted, row, strict=True))

    def _select(self, source: str) -> str:
        if self._has_objects:
            return f"SELECT unnest({quote_name(self._lists[0])}, max_depth := 2) FROM {source}"
        names = [f"unnest({quote_name(name)}) AS {quote_name(name)}" for name in self._lists]
        return f"SELECT {', '.join(names) or '*'} FROM {source}"

    def _write_source(self, as_written: Mapping[str, str]) -> str:
        """Write the source with some columns as they stand in the file."""
        kinds = {name: "JSON" if name in as_written else kind for name, kind in self._columns.items()}
        if self._has_objects:
            fields = ", ".join(f"{quote_name(name)} {kind}" for name, kind in kinds.items())
            kinds = {self._lists[0]: f"STRUCT({fields})[]"}
        elif self._lists:
            kinds = {name: f"{kind}[]" for name, kind in kinds.items()}
        columns = ", ".join(f"{quote_text(name)}: {quote_text(kind)}" for name, kind in kinds.items())
        return f"{self._source[:-1]}, columns={{{columns}}})"


def _is_object_of_lists(connection: duckdb.DuckDBPyConnection, source: str, types: Mapping[str, Any]) -> bool:
    if not all(kind.id == "list" for kind in types.values()):
        return False
    return len(connection.execute(f"SELECT 1 FROM {source} LIMIT 2").fetchall()) == 1


def _list_numbered(columns: list[str]) -> list[re.Match[str]]:
    """Return the names that are another one, apart from case, with a number added."""
    known = {name.casefold() for name in columns}
    found = (re.fullmatch(r"(.+)_[0-9]+", name) for name in columns)
    return [one for one in found if one and one[1].casefold() in known]


def _find_renamed(path: str, columns: list[str]) -> list[str]:
    """Return a note of the keys that differ only in case, to which duckdb adds a number."""
    numbered = _list_numbered(columns)
    if not numbered:
        return []
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - in the sandbox
        head = file.read(1 << 20)
    renamed = [(one[1], one[0]) for one in numbered if json.dumps(one[0]) not in head and json.dumps(one[1]) in head]
    return describe_renamed([old for old, _ in renamed], [new for _, new in renamed])
