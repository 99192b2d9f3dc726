"""A registry served by the Model Context Protocol: every call goes through the executor, policy and journal included.

Over stdio, standard output belongs to the protocol: what tools print goes to stderr, see `standard.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Literal

from ferrule.blobs import BlobStore
from ferrule.errors import SettingsError
from ferrule.execution import Approver, Executor, Journal, Policy
from ferrule.mcp.identity import NAME
from ferrule.registry import ToolRegistry


async def serve(  # noqa: PLR0913 - all but the first have defaults
    registry: ToolRegistry,
    *,
    policy: Policy | None = None,
    journal: Journal | None = None,
    approver: Approver | None = None,
    blobs: BlobStore | None = None,
    transport: Literal["stdio", "http"] = "stdio",
    host: str = "127.0.0.1",
    port: int = 0,
    path: str = "/mcp",
    name: str = NAME,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the tools of a registry until the client leaves (stdio) or this is cancelled or interrupted (http).

    Toolsets are made once and shared by all clients. A call that the policy asks about, and that no `approver` allows,
    is denied in words that reach the client. Over http, `port` 0 takes a free one; `on_ready` gets the address once it
    can be reached. There is no authentication: whoever reaches the address can call the tools. Raises `SettingsError`
    without the SDK, `OSError` where the address can't be taken.
    """
    if find_spec("mcp") is None:
        raise SettingsError('MCP needs the mcp package: pip install "ferrule[mcp]"')
    from ferrule.mcp.offered import server_of
    from ferrule.mcp.standard import standard_streams

    if transport not in ("stdio", "http"):
        raise SettingsError(f"there is no transport {transport!r}; there are stdio and http")
    async with AsyncExitStack() as stack:
        # Before anything of a tool's runs, so that nothing it prints can get between the messages.
        streams = await stack.enter_async_context(standard_streams()) if transport == "stdio" else None
        bound = await stack.enter_async_context(registry.open())
        executor = Executor(bound, policy=policy, approver=approver, journal=journal, blobs=blobs)
        server = server_of(bound, executor, name)
        if streams is not None:
            await server.run(*streams, server.create_initialization_options())
        else:
            from ferrule.mcp.http import serve_http

            app = server.streamable_http_app(streamable_http_path=path, host=host)
            await serve_http(app, host, port, path, on_ready)
