"""`ferrule mcp`: serve tools by the Model Context Protocol, and try the servers of others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ferrule.cli.options import AsJson, JournalFile, PolicyFile, Trust, Yes

mcp = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Serve tools by the Model Context Protocol, or use a server's."
)

Server: TypeAlias = Annotated[
    str, typer.Argument(metavar="SERVER", help="The command that starts it, in quotes, or its http(s) address.")
]
Seconds: TypeAlias = Annotated[float, typer.Option(min=0.1, help="How long it may take to be ready, and to answer.")]


@mcp.command("serve")
def _serve(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FOLDER]...", help="Folders with *_tool.py files, or `python` or `shell`."),
    ] = None,
    *,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve on this address, and not on stdin and stdout.")
    ] = None,
    yes: Yes = False,
    policy: PolicyFile = None,
    journal: JournalFile = None,
) -> None:
    """Serve the tools that come with ferrule and those of the folders.

    Without --http the client is whoever started this command: the protocol is spoken on stdin and stdout.
    """
    from ferrule.cli.mcp_serving import serve_tools
    from ferrule.cli.permission import opened_terms

    with opened_terms(yes, policy, journal) as terms:
        serve_tools(folders or [], http, terms, yes)


@mcp.command("list")
def _list(server: Server, timeout: Seconds = 60.0, as_json: AsJson = False) -> None:
    """List the tools of a server, and what is wrong with those that can't be offered."""
    from ferrule.cli.mcp_using import list_tools

    list_tools(server, timeout, as_json)


@mcp.command("call", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def _call(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    server: Server,
    tool: Annotated[str, typer.Argument(help="Its name; what follows are its arguments: --NAME VALUE.")],
    *,
    json_arguments: Annotated[
        str | None, typer.Option(metavar="OBJECT", help="The arguments as a JSON object; options go before SERVER.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write images of the result here.")] = None,
    timeout: Seconds = 60.0,
    trust: Trust = False,
    as_json: AsJson = False,
    yes: Yes = False,
    policy: PolicyFile = None,
    journal: JournalFile = None,
) -> None:
    """Call a tool of a server through the executor.

    The exit status is 1 where it fails, 2 for wrong arguments or a server that doesn't answer.
    """
    from ferrule.cli.mcp_using import called
    from ferrule.cli.permission import opened_terms
    from ferrule.cli.results import show

    with opened_terms(yes, policy, journal) as terms:
        result = called(server, tool, context.args, json_arguments, terms, timeout=timeout, trust=trust)
    show(result, out, as_json)
    terms.tell_of_denials()
    if result.is_error:
        raise typer.Exit(2 if result.status == "invalid" else 1)
