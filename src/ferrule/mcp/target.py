"""The target of a client: a command to run or an address, and the SDK's transport to it."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast
from urllib.parse import urlsplit

from ferrule.errors import SettingsError
from ferrule.formats.tool_offers import ToolNames
from ferrule.mcp.oauth import open_login
from ferrule.mcp.server_output import ServerOutput
from ferrule.toolspec import ToolSpec

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}")
_LAUNCHERS = {"npx", "bunx", "uvx", "uv", "run", "node", "deno", "docker", "env", "exec", "tool", "-m"}
_PROGRAM_SUFFIXES = (".py", ".js", ".mjs", ".ts", ".sh")


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """A server's address, or its command with the environment and folder to start it in.

    `authorize` is called with the address at which a person logs in.
    """

    url: str | None
    command: tuple[str, ...]
    env: Mapping[str, str] | None
    cwd: str | Path | None
    headers: Mapping[str, str] | None
    authorize: Callable[[str], None] | None = None

    @property
    def label(self) -> str:
        """Its name in messages: the program, or the address without possible secrets."""
        if self.url is None:
            return self.command[0]
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def open_transport(
        self, on_status: Callable[[int], None], output: ServerOutput
    ) -> AbstractAsyncContextManager[TransportStreams]:
        """Open the SDK's transport; `on_status` is called with the HTTP status of each response of the server.

        `output` reads what a server that is started by a command writes to stderr.
        """
        return self._open_http(on_status) if self.url is not None else self._open_stdio(output)

    @asynccontextmanager
    async def _open_stdio(self, output: ServerOutput) -> AsyncIterator[TransportStreams]:
        from mcp.client.stdio import StdioServerParameters, stdio_client

        program, *arguments = self.command
        env = None if self.env is None else dict(self.env)
        parameters = StdioServerParameters(command=program, args=arguments, env=env, cwd=self.cwd)
        async with output.open_pipe() as stderr, stdio_client(parameters, errlog=cast("TextIO", stderr)) as streams:
            yield streams

    @asynccontextmanager
    async def _open_http(self, on_status: Callable[[int], None]) -> AsyncIterator[TransportStreams]:
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        assert self.url is not None

        async def note_status(response: Any) -> None:
            if str(response.request.url) == self.url:  # not one of the authorization server
                on_status(response.status_code)

        headers = None if self.headers is None else dict(self.headers)
        has_own = any(name.lower() == "authorization" for name in headers or ())
        async with (
            nullcontext() if has_own else open_login(self.url, self.authorize) as login,
            create_mcp_http_client(headers=headers, auth=login) as http,
            streamable_http_client(self.url, http_client=http) as streams,
        ):
            http.event_hooks["response"].append(note_status)
            yield streams


def parse_target(
    server: str | Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | Path | None,
    headers: Mapping[str, str] | None,
) -> ServerTarget:
    """Parse a command line, a list of its words, or an address. Raises `SettingsError`."""
    if isinstance(server, str) and server.startswith(("http://", "https://")):
        if env is not None or cwd is not None:
            raise SettingsError("env and cwd are for a server that is started by a command, not for an address")
        if not urlsplit(server).hostname:
            raise SettingsError(f"{server!r} has no host; write http://HOST:PORT/mcp")
        return ServerTarget(server, (), None, None, headers)
    if headers is not None:
        raise SettingsError("headers are for a server at an address, not for one that is started by a command")
    if not isinstance(server, str) and not (
        isinstance(server, Sequence) and all(isinstance(word, str) for word in server)
    ):
        raise SettingsError(
            f"an MCP server is named by its command, a text or a list of words, or by its http address, not {server!r}"
        )
    try:
        command = tuple(shlex.split(server) if isinstance(server, str) else server)
    except ValueError as error:
        raise SettingsError(f"the command {server!r} can't be read: {error}") from error
    if not command:
        raise SettingsError("an MCP server is named by the command that starts it, or by its http address")
    return ServerTarget(None, command, env, cwd, None)


def choose_name(target: ServerTarget, given: str | None) -> str:
    """Choose the name of a server: the given one, or one derived from its command or address. Raises `SettingsError`.

    It is never the one that the server gives itself, since policies trust servers by name.
    """
    if given is not None:
        if not _NAME.fullmatch(given):
            raise SettingsError(
                f"the name {given!r} of an MCP server: write 1 to 32 letters, digits, '_' or '-', a letter or '_' first"
            )
        return given
    if target.url is not None:
        host = urlsplit(target.url).hostname or ""
        found = "localhost" if host in ("127.0.0.1", "::1") else host
    else:
        words = [word for word in target.command if not _is_launcher(word)]
        found = (words or [target.command[0]])[0].rstrip("/").rpartition("/")[2]
        for suffix in _PROGRAM_SUFFIXES:
            found = found.removesuffix(suffix)
    return ToolNames([ToolSpec(found, "", {})]).encode(found)[:32]


def _is_launcher(word: str) -> bool:
    program = word.rpartition("/")[2]
    return word.startswith("-") or program in _LAUNCHERS or re.fullmatch(r"python[\d.]*", program) is not None
