"""MCP servers whose tools a session offers in addition to its own, open as long as the session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from ferrule._util.background import run_synchronously
from ferrule.errors import RegistryError
from ferrule.mcp.client import MCPServer
from ferrule.mcp.remote_tools import rename_taken
from ferrule.mcp.requests import ClientAnswers
from ferrule.mcp.target import is_address
from ferrule.session.project_file import ServerData
from ferrule.session.server_requests import ServerRequests
from ferrule.session.terminal.output import print_notice, print_warnings
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import ToolRegistry

_TIMEOUT = 60.0
"""Seconds that a call may take."""
_PATIENT_TIMEOUT = 600.0


class SessionServers:
    """The servers of a session, given by their commands or addresses. Unreachable ones are skipped, with a warning.

    `start_timeout` is how many seconds each may take to be ready; `requests` answers what they ask. `declared` are
    those of a `ferrule.toml`, by name; `environment` is added to the variables of `servers` that are commands. Raises
    `SettingsError` for an invalid command or address.
    """

    def __init__(
        self,
        servers: Sequence[str],
        start_timeout: float,
        requests: ServerRequests | None = None,
        declared: Mapping[str, ServerData] = MappingProxyType({}),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.requests = requests
        answers = ClientAnswers() if requests is None else requests.answers
        # A call in which a person is asked takes as long as the person does.
        timeout = _PATIENT_TIMEOUT if answers.elicit is not None or answers.sample is not None else _TIMEOUT
        self._servers = [
            MCPServer(
                server,
                env=None if is_address(server) else environment,
                start_timeout=start_timeout,
                timeout=timeout,
                elicit=answers.elicit,
                sample=answers.sample,
            )
            for server in servers
        ]
        self._servers += [
            MCPServer(
                one.url or one.command or "",
                name=name,
                env=one.env or None,
                headers=one.headers or None,
                start_timeout=start_timeout,
                timeout=timeout,
                elicit=answers.elicit,
                sample=answers.sample,
            )
            for name, one in declared.items()
        ]
        self._opened: list[MCPServer] = []

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of the servers' tools, which a policy may trust."""
        return tuple(server.origin for server in self._servers)

    async def open(self, require_all: bool = False) -> None:
        """Open all servers concurrently; those that can't be reached are skipped, with a warning.

        Raises `SettingsError` if the MCP SDK isn't installed, and with `require_all` `RegistryError` for the first
        server that can't be reached.
        """
        errors = await asyncio.gather(*map(self._open_server, self._servers))
        for error in filter(None, errors):
            if require_all:
                raise error
            _warn(error)
        self._servers = [server for server, error in zip(self._servers, errors, strict=True) if error is None]

    async def add_to(self, registry: ToolRegistry) -> ToolRegistry:
        """Return a registry with the servers' current tools added, under names that aren't taken in it.

        A server that was lost is started again; if that fails, its tools are left out, with a warning.
        """
        found = await asyncio.gather(*map(_open_tools, self._servers))
        for server, tools in zip(self._servers, found, strict=True):
            registry = registry.add(*rename_taken(tools, registry.names, server.name))
        return registry

    async def close(self) -> None:
        """Close all servers concurrently."""
        await asyncio.gather(*(server.__aexit__() for server in self._opened))

    async def _open_server(self, server: MCPServer) -> RegistryError | None:
        try:
            await server.__aenter__()
        except RegistryError as error:
            return error
        self._opened.append(server)
        return None


async def _open_tools(server: MCPServer) -> Sequence[Tool]:
    try:
        async with server.open_tools(()) as tools:
            return tools
    except RegistryError as error:
        _warn(error)
        return ()


def _warn(error: RegistryError) -> None:
    print_notice(f"{error}; its tools are not offered")


@contextmanager
def open_servers(
    servers: Sequence[str],
    start_timeout: float,
    requests: ServerRequests | None = None,
    require_all: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Iterator[SessionServers]:
    """Open servers on the background loop of the process; `requests` and `environment` are as for `SessionServers`.

    Raises `SettingsError` for an invalid command or address, or if the MCP SDK isn't installed, and with `require_all`
    `RegistryError` for a server that can't be reached.
    """
    opened = SessionServers(servers, start_timeout, requests, environment=environment)
    with print_warnings("ferrule.mcp"):
        try:
            run_synchronously(opened.open(require_all))
            yield opened
        finally:
            run_synchronously(opened.close())
