"""`ferrule call`: one call, through the executor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferrule.cli.options import AsJson, JournalFile, Plugins, PolicyFile, ToolFolders, Yes


def call(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help="Its name; what follows are its arguments: --NAME VALUE.")],
    *,
    tools: ToolFolders = None,
    plugins: Plugins = False,
    json_arguments: Annotated[
        str | None, typer.Option(metavar="OBJECT", help="The arguments as a JSON object; options go before it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write images of the result here.")] = None,
    as_json: AsJson = False,
    yes: Yes = False,
    policy: PolicyFile = None,
    journal: JournalFile = None,
) -> None:
    """Call a tool through the executor.

    The exit status is 1 where it fails, 2 for wrong arguments.
    """
    from ferrule.cli.calling import called
    from ferrule.cli.offer import offered
    from ferrule.cli.permission import opened_terms
    from ferrule.cli.results import show

    with opened_terms(yes, policy, journal) as terms:
        result = called(tool, context.args, json_arguments, offered(tools or [], plugins), terms)
    show(result, out, as_json)
    terms.tell_of_denials()
    if result.is_error:
        raise typer.Exit(2 if result.status == "invalid" else 1)
