"""MCP servers whose tools a session offers beside its own, open for as long as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ferrule.errors import RegistryError
from ferrule.mcp.client import MCPServer
from ferrule.mcp.remote_tools import rename_taken
from ferrule.session.terminal_output import print_notice, print_warnings
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import ToolRegistry


class SessionServers:
    """Servers by their commands or addresses. One that can't be reached is left out, with a warning.

    Raises `SettingsError` for what names no server.
    """

    def __init__(self, servers: Sequence[str], start_timeout: float) -> None:
        self._servers = [MCPServer(server, start_timeout=start_timeout) for server in servers]
        self._held: list[MCPServer] = []

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of the servers' tools, for a policy to trust."""
        return tuple(server.origin for server in self._servers)

    async def open(self) -> None:
        """Open them, all at once. Raises `SettingsError` without the SDK."""
        answers = await asyncio.gather(*map(self._hold, self._servers))
        self._servers = [server for server, is_held in zip(self._servers, answers, strict=True) if is_held]

    async def add_to(self, registry: ToolRegistry) -> ToolRegistry:
        """A registry and the tools that the servers have now, under names that aren't taken in it.

        They are ordinary tools, found by their names like any other. A server that was lost is started again; where it
        can't be, its tools are left out, with a warning.
        """
        found = await asyncio.gather(*map(_tools_of, self._servers))
        for server, tools in zip(self._servers, found, strict=True):
            registry = registry.add(*rename_taken(tools, registry.names, server.name))
        return registry

    async def close(self) -> None:
        """Close them, all at once."""
        await asyncio.gather(*(server.__aexit__() for server in self._held))

    async def _hold(self, server: MCPServer) -> bool:
        try:
            await server.__aenter__()
        except RegistryError as error:
            _warn(error)
            return False
        self._held.append(server)
        return True


async def _tools_of(server: MCPServer) -> Sequence[Tool]:
    try:
        async with server.open_tools(()) as tools:
            return tools
    except RegistryError as error:
        _warn(error)
        return ()


def _warn(error: RegistryError) -> None:
    print_notice(f"{error}; its tools are not offered")


@contextmanager
def open_servers(servers: Sequence[str], start_timeout: float, runner: asyncio.Runner) -> Iterator[SessionServers]:
    """The servers, open in the runner's event loop. Raises `SettingsError` for what names none, or without the SDK."""
    opened = SessionServers(servers, start_timeout)
    with print_warnings("ferrule.mcp"):
        try:
            runner.run(opened.open())
            yield opened
        finally:
            runner.run(opened.close())
