"""`ferrule mcp`: serve tools by the Model Context Protocol, and use those of servers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ferrule.cli.options import (
    APPROVAL_HINT,
    PASSED_ON,
    AsJson,
    JournalFile,
    PolicyFile,
    ServerEnvironment,
    ToolFolders,
    Trust,
    Yes,
    change_folder,
    read_server_environment,
)

if TYPE_CHECKING:
    from ferrule.conversation import ToolResult
    from ferrule.mcp.client import MCPServer
    from ferrule.session.approvals import Permissions
    from ferrule.tools.decorator import Tool

_SERVER_HINT = "start the server with --policy FILE to allow calls, or with --yes to allow all"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")

mcp = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Serve tools by the Model Context Protocol, or use a server's."
)

Server: TypeAlias = Annotated[
    str, typer.Argument(metavar="SERVER", help="The command that starts it, in quotes, or its http(s) address.")
]
Seconds: TypeAlias = Annotated[float, typer.Option(min=0.1, help="How long it may take to start, and to answer.")]


@mcp.command("serve")
def _serve(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FOLDER]...", help="Folders with *_tool.py files, or `python`, `shell` or `coding`."),
    ] = None,
    *,
    tools: ToolFolders = None,
    _folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", "-C", metavar="FOLDER", is_eager=True, callback=change_folder, help="Work in this folder."
        ),
    ] = None,
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve on this address, instead of stdin and stdout.")
    ] = None,
    yes: Yes = False,
    policy: PolicyFile = None,
    journal: JournalFile = None,
) -> None:
    """Serve the calculator and the tools of the folders.

    With `coding`, the calculator is left out. Without --http the client is the program that starts this command, over
    stdin and stdout.
    """
    from ferrule.session.approvals import open_permissions

    # Without --http, stdin is the client's, so nobody can be asked there.
    with open_permissions(yes, policy, journal, _SERVER_HINT, can_ask=http is not None) as permissions:
        serve_tools([*(folders or ()), *(tools or ())], http, permissions)


@mcp.command("list")
def _list(server: Server, timeout: Seconds = 60.0, env: ServerEnvironment = None, as_json: AsJson = False) -> None:
    """List the tools of a server, and why others of it can't be offered."""
    print_tools(server, timeout, as_json, env)


@mcp.command("call", context_settings=PASSED_ON)
def _call(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    server: Server,
    tool: Annotated[str, typer.Argument(help="Its name; all that follows are its arguments: --NAME VALUE.")],
    *,
    json_arguments: Annotated[
        str | None, typer.Option(metavar="OBJECT", help="The arguments as a JSON object.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write images of the result here.")] = None,
    timeout: Seconds = 60.0,
    env: ServerEnvironment = None,
    trust: Trust = False,
    as_json: AsJson = False,
    yes: Yes = False,
    policy: PolicyFile = None,
    journal: JournalFile = None,
) -> None:
    """Call a tool of a server through the executor. Options go before SERVER.

    The exit status is 1 if the call fails, 2 for invalid arguments or a server that doesn't answer.
    """
    import asyncio

    from ferrule.cli.call import print_result
    from ferrule.errors import SettingsError
    from ferrule.mcp.client import MCPServer
    from ferrule.session.approvals import open_permissions
    from ferrule.session.terminal.output import print_warnings

    if tool.startswith("-"):
        raise SettingsError(f"the name of a tool goes after SERVER, not {tool}; options go before SERVER")
    with open_permissions(yes, policy, journal, APPROVAL_HINT) as permissions:
        environment = read_server_environment(env, [server])
        opened = MCPServer(server, start_timeout=timeout, timeout=timeout, env=environment)
        granted = permissions.trust(opened.origin) if trust else permissions
        with print_warnings("ferrule.mcp"):
            result = asyncio.run(_call_tool(opened, tool, context, json_arguments, granted))
    print_result(result, out, as_json)
    permissions.warn_of_denials()
    if result.is_error:
        raise typer.Exit(2 if result.status == "invalid" else 1)


@mcp.command("login")
def _login(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The http(s) address of a server.")],
    timeout: Annotated[float, typer.Option(min=1, help="How long the login may take.")] = 300.0,
) -> None:
    """Log in to a server by OAuth, in a browser on this machine.

    The tokens are saved for the other commands.
    """
    log_in(address, timeout)


@mcp.command("logout")
def _logout(address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The address of the server.")]) -> None:
    """Delete the saved tokens of a server."""
    from ferrule.errors import SettingsError
    from ferrule.mcp.oauth import delete_tokens

    if not delete_tokens(address):
        raise SettingsError(f"no login to {address} is saved")
    typer.echo("logged out")


def log_in(address: str, timeout: float) -> None:
    """Log in to a server, and say where its tokens are. Raises `SettingsError` and `RegistryError`."""
    import asyncio

    from ferrule._util.terminal_text import escape_line
    from ferrule.errors import SettingsError
    from ferrule.mcp.client import MCPServer
    from ferrule.mcp.oauth import find_token_file
    from ferrule.session.terminal.output import print_notice

    if not address.startswith(("http://", "https://")):
        raise SettingsError("a login is for a server at an http:// or https:// address")

    def show(login: str) -> None:
        print_notice("open this address in a browser on this machine to log in:")
        print(escape_line(login), file=sys.stderr, flush=True)

    asyncio.run(_read_tools(MCPServer(address, start_timeout=timeout, authorize=show)))
    file = find_token_file(address)
    typer.echo(f"logged in; the tokens are in {file}" if file.exists() else "connected; this server asks for no login")


def serve_tools(folders: Sequence[Path], http: str | None, permissions: Permissions) -> None:
    """Serve the tools of the folders. Raises `SettingsError` for an invalid address, and `OSError`."""
    import asyncio
    from contextlib import nullcontext

    from ferrule._util.pluralize import pluralize
    from ferrule.cli.tool_sources import collect_tools
    from ferrule.mcp.serving import serve
    from ferrule.mcp.stdio import redirect_stdout
    from ferrule.session.terminal.output import print_notice

    host, port = ("", 0) if http is None else _parse_address(http)
    with redirect_stdout():
        registry = collect_tools(folders)
    if "coding" in map(str, folders):
        # A sub-agent needs the model of a run, and a server has none. Clients asked for no calculator.
        registry = registry.without(*(name for name in ("task", "calculator") if name in registry))
    if http is not None and host not in _LOOPBACK:
        print_notice(f"whoever can reach {host} can call these tools: there is no authentication")
    count = pluralize(len(registry), "tool")
    serving = serve(
        registry,
        policy=permissions.policy,
        journal=permissions.journal,
        approver=permissions.approver,
        workspace=Path.cwd(),
        transport="stdio" if http is None else "http",
        host=host,
        port=port,
        on_ready=lambda address: print(f"{count} at {address}", file=sys.stderr, flush=True),
    )
    with nullcontext() if http is None else redirect_stdout():
        asyncio.run(serving)


def _parse_address(text: str) -> tuple[str, int]:
    from ferrule.errors import SettingsError

    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SettingsError(f"--http {text}: write it as HOST:PORT, such as 127.0.0.1:8000; port 0 is any free one")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def print_tools(server: str, timeout: float, as_json: bool, env: Sequence[str] | None = None) -> None:
    """Print the tools of a server. Raises `RegistryError` if it doesn't answer, `SettingsError` if it is invalid.

    `env` are variables to start it with, as `--env` takes them.
    """
    import asyncio

    from ferrule.cli.tools import format_tool, tool_to_json
    from ferrule.mcp.client import MCPServer
    from ferrule.session.terminal.output import print_json, print_warnings

    opened = MCPServer(server, start_timeout=timeout, env=read_server_environment(env, [server]))
    with print_warnings("ferrule.mcp"):
        tools = asyncio.run(_read_tools(opened))
    if as_json:
        print_json([tool_to_json(tool) for tool in tools])
        return
    for tool in tools:
        typer.echo("\n".join(format_tool(tool.spec)))


async def _read_tools(server: MCPServer) -> tuple[Tool, ...]:
    # Not its registry as listed at the start: changes that it has announced since are listed first.
    async with server.open_tools(()) as tools:
        return tuple(tools)


async def _call_tool(
    server: MCPServer, name: str, context: typer.Context, given: str | None, permissions: Permissions
) -> ToolResult:
    from ferrule.cli.call import parse_call, run_call

    async with server:
        call = parse_call(server.registry, name, context, given)
        return await run_call(server.registry, call, permissions)
