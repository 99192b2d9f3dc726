"""The tables of an analysis, with what is known of their columns, and what models were shown of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from ferrule._util.pluralize import pluralize
from ferrule.analysis.result import AnalysisResult
from ferrule.pages.code import show_text
from ferrule.pages.elements import Child, element, fold, make_anchor, show_table


def show_data(result: AnalysisResult) -> Iterator[Markup]:
    """The section about the data; nothing for a question without any."""
    if result.tables or result.shared:
        shared = [fold("What models were shown of the data", show_text(result.shared))] if result.shared else []
        yield element("section", element("h2", "Data"), map(_show_profile, result.tables), shared, id="data")


def _show_profile(table: Any) -> Markup:
    where = table.path.name + (f", {table.part}" if table.part else "")
    size = f"{pluralize(table.rows, 'row')}, {pluralize(len(table.columns), 'column')}"
    header = ("column", "type", "missing", "distinct", "minimum", "maximum", "mean")
    return element(
        "section",
        element("h3", table.name),
        element("p", f"{where} ({table.kind}): {size}. SHA-256 {table.digest[:16]}…", class_="quiet"),
        [element("p", note, class_="quiet") for note in table.notes],
        fold("Columns", show_table(header, map(_list_facts, table.columns)), is_open=len(table.columns) <= 20),
        id=make_anchor("table", table.name),
        class_="card",
    )


def _list_facts(column: Any) -> list[Child]:
    facts = (column.missing, column.distinct, column.minimum, column.maximum, column.mean)
    return [column.name, column.type, *map(_write_fact, facts)]


def _write_fact(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
