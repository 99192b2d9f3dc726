"""`ferrule plugins`: the plugins of installed packages, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from ferrule.cli.options import AsJson

if TYPE_CHECKING:
    from ferrule.tools.plugins import Plugin


def plugins(as_json: AsJson = False) -> None:
    """List the tools, models and dialects of installed packages. Each is imported, to check that it can be."""
    from ferrule.session.terminal.output import print_json, print_notice

    if as_json:
        print_json(list(list_plugins()))
        return
    rows = list(list_plugins())
    for row in rows:
        typer.echo(_format_row(row))
    if not rows:
        print_notice("no installed package has plugins")


def list_plugins() -> Iterator[dict[str, Any]]:
    """Yield a row for each plugin: kind, name, package, place, problem, and the names of its tools if it has any."""
    from ferrule.errors import PluginError
    from ferrule.tools.plugins import find_plugins, load_plugin_tools

    for one in load_plugin_tools():
        yield _make_row(one.plugin, one.problem, tools=list(one.registry.names))
    for plugin in (*find_plugins("models"), *find_plugins("dialects")):
        try:
            plugin.load()
        except PluginError as error:
            yield _make_row(plugin, str(error))
        else:
            yield _make_row(plugin, "")


def _make_row(plugin: Plugin, problem: str, **more: Any) -> dict[str, Any]:
    head = {"kind": plugin.kind, "name": plugin.name, "package": plugin.package, "where": plugin.target}
    return {**head, "problem": problem or None, **more}


def _format_row(row: dict[str, Any]) -> str:
    from ferrule._util.terminal_text import escape_line

    tools = f": {', '.join(row['tools'])}" if row.get("tools") else ""
    problem = f"; not usable: {row['problem']}" if row["problem"] else ""
    return escape_line(f"{row['kind']:8}  {row['name']}{tools}  ({row['package']}, {row['where']}){problem}")
