"""The target of a client: a command to run or an address, and the SDK's transport to it."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ferrule.errors import SettingsError
from ferrule.execution.secrets import scrub_text
from ferrule.mcp.http_bodies import bound_body, explain_status
from ferrule.mcp.oauth import open_login
from ferrule.mcp.server_output import ServerOutput
from ferrule.mcp.stdio_client import open_command

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


@dataclass(frozen=True, slots=True, repr=False)
class ServerTarget:
    """A server's address, or its command with the environment and folder to start it in.

    `authorize` is called with the address at which a person logs in. Only the label is shown: all else may be secret.
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

    @property
    def is_sse(self) -> bool:
        """Whether the address looks like one of the older transport, which isn't supported."""
        return self.url is not None and urlsplit(self.url).path.rstrip("/").endswith("/sse")

    def __repr__(self) -> str:
        return f"<ServerTarget {self.label}>"

    def open_transport(
        self, on_status: Callable[[int], None], output: ServerOutput
    ) -> AbstractAsyncContextManager[TransportStreams]:
        """Open the SDK's transport; `on_status` is called with the HTTP status of each response of the server.

        `output` reads what a server that is started by a command writes to stderr.
        """
        return self._open_http(on_status) if self.url is not None else self._open_stdio(output)

    @asynccontextmanager
    async def _open_stdio(self, output: ServerOutput) -> AsyncIterator[TransportStreams]:
        async with output.open_pipe() as stderr, open_command(self.command, self.env, self.cwd, stderr) as streams:
            yield streams

    @asynccontextmanager
    async def _open_http(self, on_status: Callable[[int], None]) -> AsyncIterator[TransportStreams]:
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        assert self.url is not None

        async def check_response(response: Any) -> None:
            bound_body(response)
            if str(response.request.url) == self.url:  # not one of the authorization server
                on_status(response.status_code)
                explain_status(response)

        headers = None if self.headers is None else dict(self.headers)
        has_own = any(name.lower() == "authorization" for name in headers or ())
        async with (
            nullcontext() if has_own else open_login(self.url, self.authorize) as login,
            create_mcp_http_client(headers=headers, auth=login) as http,
            streamable_http_client(self.url, http_client=http, max_sse_event_size=None) as streams,
        ):
            http.headers["accept-encoding"] = "identity"
            http.event_hooks["response"].append(check_response)
            yield streams


def parse_target(
    server: str | Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | Path | None,
    headers: Mapping[str, str] | None,
) -> ServerTarget:
    """Parse a command line, a list of its words, or an address. Raises `SettingsError`."""
    _check_texts("env", env)
    _check_texts("headers", headers)
    if isinstance(server, str) and is_address(server):
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
        raise SettingsError(f"the command {scrub_text(str(server))!r} can't be read: {error}") from error
    if not command:
        raise SettingsError("an MCP server is named by the command that starts it, or by its http address")
    return ServerTarget(None, command, env, cwd, None)


def is_address(server: str) -> bool:
    """Whether a server is given by its address, and not by a command."""
    return server.startswith(("http://", "https://"))


def _check_texts(option: str, given: Mapping[Any, Any] | None) -> None:
    for name, value in (given or {}).items():
        if not (isinstance(name, str) and isinstance(value, str)):
            kind = type(value).__name__
            raise SettingsError(
                f"the names and values of {option} must be text, but {name!r} has a value of type {kind}"
            )
