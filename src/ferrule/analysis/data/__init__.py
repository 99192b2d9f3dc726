"""Data of an analysis: files are read and profiled in a sandbox, described to models, and bound for code that runs.

`reading` makes tables of files, `sharing` writes what a model is shown of them, `session` runs code that uses them.
`child` is the code that does the reading, inside the sandbox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._util.lazy_exports import make_getattr

if TYPE_CHECKING:
    from ferrule.analysis.data.reading import read_tables
    from ferrule.analysis.data.session import DataSession
    from ferrule.analysis.data.sharing import Share, describe_tables, neutralise_markers, quote_text
    from ferrule.analysis.data.sources import DataSource, make_sources, parse_data_argument
    from ferrule.analysis.data.table import ColumnProfile, Table
    from ferrule.analysis.data.task_value import TaskValue

_HOMES = {
    "ColumnProfile": "table",
    "DataSession": "session",
    "DataSource": "sources",
    "Share": "sharing",
    "Table": "table",
    "TaskValue": "task_value",
    "describe_tables": "sharing",
    "make_sources": "sources",
    "neutralise_markers": "sharing",
    "parse_data_argument": "sources",
    "quote_text": "sharing",
    "read_tables": "reading",
}

__all__ = [
    "ColumnProfile",
    "DataSession",
    "DataSource",
    "Share",
    "Table",
    "TaskValue",
    "describe_tables",
    "make_sources",
    "neutralise_markers",
    "parse_data_argument",
    "quote_text",
    "read_tables",
]

if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as exported
    __getattr__ = make_getattr(__name__, _HOMES)
