"""MCP servers whose tools `ask` and `chat` offer beside their own, held open for as long as the command runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ferrule.cli.guard import complain
from ferrule.cli.mcp_using import telling_of_problems
from ferrule.errors import RegistryError
from ferrule.mcp.client import MCPServer
from ferrule.mcp.offering import beside
from ferrule.registry import ToolRegistry
from ferrule.tool import Tool


class Servers:
    """Servers by their commands or addresses. One that can't be reached is told, and left behind.

    Raises `SettingsError` for what names no server.
    """

    def __init__(self, servers: Sequence[str], start_timeout: float) -> None:
        self._servers = [MCPServer(server, start_timeout=start_timeout) for server in servers]
        self._held: list[MCPServer] = []

    @property
    def origins(self) -> tuple[str, ...]:
        """What a policy may trust."""
        return tuple(server.origin for server in self._servers)

    async def open(self) -> None:
        """Open them, all at once. Raises `SettingsError` without the SDK."""
        answers = await asyncio.gather(*map(self._hold, self._servers))
        self._servers = [server for server, is_held in zip(self._servers, answers, strict=True) if is_held]

    async def beside(self, registry: ToolRegistry) -> ToolRegistry:
        """A registry and the tools that the servers have now, under names that aren't taken in it.

        They are ordinary tools, so that whatever asks for one by its name finds it. A server that was lost is started
        again; where it can't be, its tools are missing, which is told.
        """
        found = await asyncio.gather(*map(_tools_of, self._servers))
        for server, tools in zip(self._servers, found, strict=True):
            registry = registry.add(*beside(tools, registry.names, server.name))
        return registry

    async def close(self) -> None:
        """Close them, all at once."""
        await asyncio.gather(*(server.__aexit__() for server in self._held))

    async def _hold(self, server: MCPServer) -> bool:
        try:
            await server.__aenter__()
        except RegistryError as error:
            _leave_behind(error)
            return False
        self._held.append(server)
        return True


async def _tools_of(server: MCPServer) -> Sequence[Tool]:
    try:
        async with server.opened(()) as tools:
            return tools
    except RegistryError as error:
        _leave_behind(error)
        return ()


def _leave_behind(error: RegistryError) -> None:
    complain(f"{error}; its tools are not offered")


@contextmanager
def opened_servers(servers: Sequence[str], start_timeout: float, runner: asyncio.Runner) -> Iterator[Servers]:
    """The servers, open in the runner's event loop. Raises `SettingsError` for what names none, or without the SDK."""
    opened = Servers(servers, start_timeout)
    with telling_of_problems():
        try:
            runner.run(opened.open())
            yield opened
        finally:
            runner.run(opened.close())
