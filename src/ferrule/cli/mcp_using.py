"""The tools of somebody's MCP server, listed, and one of them called."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from ferrule.cli.calling import call_from, result_of
from ferrule.cli.complaints import Complaints
from ferrule.cli.list_tools import print_json, tool_data, tool_lines
from ferrule.cli.permission import Terms
from ferrule.conversation import ToolResult
from ferrule.mcp.client import MCPServer
from ferrule.toolspec import ToolSpec


def list_tools(server: str, timeout: float, as_json: bool) -> None:
    """Print the tools of a server. Raises `RegistryError` where it doesn't answer, `SettingsError` for no server."""
    opened = MCPServer(server, start_timeout=timeout)
    with telling_of_problems():
        specs = asyncio.run(_specs(opened))
    if as_json:
        print_json([tool_data(spec) for spec in specs])
        return
    for spec in specs:
        typer.echo("\n".join(tool_lines(spec)))


def called(
    server: str, name: str, options: Sequence[str], given: str | None, terms: Terms, *, timeout: float, trust: bool
) -> ToolResult:
    """The result of calling a tool of a server; raises as `list_tools`, and for arguments that can't be read."""
    opened = MCPServer(server, start_timeout=timeout, timeout=timeout)
    if trust:
        terms = terms.trusting(opened.origin)
    with telling_of_problems():
        return asyncio.run(_called(opened, name, options, given, terms))


@contextmanager
def telling_of_problems() -> Iterator[None]:
    """What a server does wrong is told."""
    log, complaints = logging.getLogger("ferrule.mcp"), Complaints()
    log.addHandler(complaints)
    try:
        yield
    finally:
        log.removeHandler(complaints)


async def _specs(server: MCPServer) -> tuple[ToolSpec, ...]:
    async with server:
        return server.registry.specs


async def _called(server: MCPServer, name: str, options: Sequence[str], given: str | None, terms: Terms) -> ToolResult:
    async with server:
        return await result_of(server.registry, call_from(server.registry, name, options, given), terms)
