"""The rows of `ferrule plugins`, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ferrule.errors import PluginError
from ferrule.execution.showing import visible
from ferrule.plugin_tools import plugin_tools
from ferrule.plugins import Plugin, installed


def plugin_rows() -> Iterator[dict[str, Any]]:
    """Every plugin: its kind, name, package, place and problem; those of tools with the names of these."""
    for one in plugin_tools():
        yield _row(one.plugin, one.problem, tools=list(one.registry.names))
    for plugin in (*installed("models"), *installed("dialects")):
        try:
            plugin.load()
        except PluginError as error:
            yield _row(plugin, str(error))
        else:
            yield _row(plugin, "")


def row_line(row: dict[str, Any]) -> str:
    """A row for people."""
    tools = f": {', '.join(row['tools'])}" if row.get("tools") else ""
    problem = f"; not usable: {row['problem']}" if row["problem"] else ""
    return visible(f"{row['kind']:8}  {row['name']}{tools}  ({row['package']}, {row['where']}){problem}")


def _row(plugin: Plugin, problem: str, **more: Any) -> dict[str, Any]:
    head = {"kind": plugin.kind, "name": plugin.name, "package": plugin.package, "where": plugin.where}
    return {**head, "problem": problem or None, **more}
