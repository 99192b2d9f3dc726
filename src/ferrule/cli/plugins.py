"""`ferrule plugins`: what installed packages add, and what of it can't be used."""

from __future__ import annotations

import typer

from ferrule.cli.options import AsJson


def plugins(as_json: AsJson = False) -> None:
    """List the tools, models and dialects of installed packages. Each is imported to see whether it can be."""
    from ferrule.cli.list_tools import print_json
    from ferrule.cli.plugin_list import plugin_rows, row_line

    if as_json:
        print_json(list(plugin_rows()))
        return
    for row in plugin_rows():
        typer.echo(row_line(row))
