"""What the numbers of an analysis' answer may have come from: its question, the profiles of its tables, its tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ferrule.analysis.numbers.source_numbers import NumberSource
from ferrule.analysis.result import TaskExecution
from ferrule.analysis.settings import PYTHON

MOST_VALUES = 2_000
"""How many numbers of a task's structured result are considered, and lines of it."""
_LARGEST = 10**300
_TABLE = {"columns", "rows", "index", "total_rows"}
"""The keys of a table as JSON."""


def collect_sources(question: str, profiles: Mapping[str, str], tasks: Iterable[TaskExecution]) -> list[NumberSource]:
    """The sources for `match_numbers`. `profiles` are what models were shown of each table, by its name.

    Only a task that ran code is one that computes. What a task of another tool says has a number from a model.
    """
    sources = [NumberSource("question", "question", question)]
    sources += [NumberSource(f"{name}.profile", "profile", text) for name, text in profiles.items()]
    for task in tasks:
        if task.status == "done":
            sources.append(_read_run(task) if task.tool == PYTHON else NumberSource(task.id, "model", task.result))
    return sources


def _read_run(task: TaskExecution) -> NumberSource:
    """What the code of a task printed and left: not the checks and notes of its result, which a model stated."""
    values = tuple(islice(read_numbers(task.value), MOST_VALUES))
    lines = islice(_describe_value(task.value), MOST_VALUES)
    return NumberSource(task.id, "run", "\n".join(filter(None, (task.output.strip(), *lines))), values)


def _describe_value(value: Any, name: str = "") -> Iterator[str]:
    """A line for each part of JSON data, with the names that lead to it; for a table, one for each cell.

    Row labels that are numbers are left out: mostly they only count the rows.
    """
    if isinstance(value, Mapping):
        if value.keys() >= _TABLE:
            yield from _describe_cells(value, name)
            return
        for key, inner in value.items():
            yield from _describe_value(inner, f"{name} {key}".strip())
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _describe_value(inner, name)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


def _describe_cells(table: Mapping[str, Any], name: str) -> Iterator[str]:
    index = table["index"] or [None] * len(table["rows"])
    for label, row in zip(index, table["rows"], strict=False):
        words = label if isinstance(label, str) else ""
        for column, cell in zip(table["columns"], row, strict=False):
            yield from _describe_value(cell, " ".join(filter(None, (name, words, str(column)))))


def describe_profiles(tables: Iterable[Any]) -> dict[str, str]:
    """What the profile of each table says, by its name, for `collect_sources`."""
    return {table.name: "\n".join(_describe_table(table)) for table in tables}


def _describe_table(table: Any) -> Iterator[str]:
    yield f"{table.name}: {table.rows} rows, {len(table.columns)} columns"
    for column in table.columns:
        facts = column.model_dump(exclude_none=True, exclude_defaults=True)
        yield ", ".join(f"{name} {value}" for name, value in facts.items())


def read_numbers(value: Any) -> Iterator[float]:
    """The finite numbers in JSON data, in its order; of a table those of its cells, and not of its index."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        if abs(value) < _LARGEST and math.isfinite(value):
            yield float(value)
    elif isinstance(value, Mapping):
        cells = [value["rows"]] if value.keys() >= _TABLE else value.values()
        for inner in cells:
            yield from read_numbers(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from read_numbers(inner)
