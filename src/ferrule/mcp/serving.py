"""Serves a registry by the Model Context Protocol: every call goes through the executor, with policy and journal.

Over stdio, stdout belongs to the protocol: what tools print goes to stderr, see `stdio.py`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from ferrule.blobs import BlobStore
from ferrule.errors import SettingsError
from ferrule.execution import Approver, Executor, Journal, Policy
from ferrule.execution.approver import Decide
from ferrule.mcp.connection import NAME
from ferrule.tools.registry import ToolRegistry

_GRACE_SECONDS = 5
"""Seconds that open requests have to finish when the server stops."""


async def serve(  # noqa: PLR0913 - all but the first have defaults
    registry: ToolRegistry,
    *,
    policy: Policy | None = None,
    journal: Journal | None = None,
    approver: Approver | Decide | None = None,
    blobs: BlobStore | None = None,
    workspace: Path | str | None = None,
    transport: Literal["stdio", "http"] = "stdio",
    host: str = "127.0.0.1",
    port: int = 0,
    path: str = "/mcp",
    name: str = NAME,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the tools of a registry until the client disconnects (stdio) or this is cancelled or interrupted (http).

    Toolsets are created once and shared by all clients. A call that the policy asks about, and that no `approver`
    allows, is denied with a reason that the client receives; `workspace` is the folder in which the profiles
    `accept-edits` and `auto` don't ask. Over http, `port` 0 takes a free one; `on_ready` is called with the address
    once it can be reached. There is no authentication: whoever can reach the address can call the tools. Raises
    `SettingsError` without the SDK, `OSError` if the address can't be used.
    """
    if find_spec("mcp") is None:
        raise SettingsError('MCP needs the mcp package: pip install "ferrule[mcp]"')
    from ferrule.mcp.server import make_server
    from ferrule.mcp.stdio import open_stdio

    if transport not in ("stdio", "http"):
        raise SettingsError(f"unknown transport {transport!r}: use stdio or http")
    async with AsyncExitStack() as stack:
        # Before any tool's code runs, so that nothing it prints can get between the messages.
        streams = await stack.enter_async_context(open_stdio()) if transport == "stdio" else None
        bound = await stack.enter_async_context(registry.open())
        executor = Executor(bound, policy=policy, approver=approver, journal=journal, blobs=blobs)
        server = make_server(bound, executor, name, None if workspace is None else Path(workspace))
        if streams is not None:
            await server.run(*streams, server.create_initialization_options())
        else:
            app = server.streamable_http_app(streamable_http_path=path, host=host)
            await serve_http(app, host, port, path, on_ready)


def _listen(host: str, port: int, shown: str) -> socket.socket:
    """Open a socket that listens at an address. Raises `OSError`, which names the address as `shown`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = found[0]
        listener = socket.socket(family, kind)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{shown}:{port}") from error
    return listener


async def serve_http(app: Any, host: str, port: int, path: str, on_ready: Callable[[str], None] | None) -> None:
    """Serve `app`; `on_ready` is called with its address once it accepts connections. Raises `OSError`."""
    import uvicorn

    shown = f"[{host}]" if ":" in host else host
    with _listen(host, port, shown) as listener:
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=_GRACE_SECONDS
        )
        server = uvicorn.Server(config)
        if on_ready is not None:
            # The socket listens already: connections wait until the app is ready.
            on_ready(f"http://{shown}:{listener.getsockname()[1]}{path}")
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            server.should_exit = True
            await asyncio.wait({task}, timeout=2 * _GRACE_SECONDS)
            raise
        finally:
            task.cancel()
        await task
