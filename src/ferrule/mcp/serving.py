"""Serves a registry by the Model Context Protocol: every call goes through the executor, with policy and journal.

Over stdio, stdout belongs to the protocol: what tools print goes to stderr, see `stdio.py`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as RemoteTool

from ferrule.blobs import BlobStore
from ferrule.conversation import ToolCall, ToolResult
from ferrule.errors import SettingsError, ToolFailed
from ferrule.events import ToolProgress
from ferrule.execution import Approver, Executor, Journal, Policy
from ferrule.execution.approver import Decide
from ferrule.mcp.connection import NAME, read_own_version
from ferrule.mcp.content import write_content, write_structured
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import BoundRegistry, ToolRegistry
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

_MOST_WAITING = 256
"""The most progress events that wait for a slow client; the oldest are dropped."""
_DIGITS = 6
_LEAST_STEP = 10**-_DIGITS
"""How much the number of a progress message is above that of the last, of a tool that reports no other."""


def make_server(registry: BoundRegistry, executor: Executor, name: str, workspace: Path | None) -> Server[Any]:
    """Make a server that lists the registry's tools and runs their calls through the executor."""
    listing = [_describe_tool(tool) for tool in registry.tools]
    numbers = itertools.count(1)

    async def list_tools(
        _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=listing)

    async def call_tool(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        call = ToolCall(f"mcp_{next(numbers)}", params.name, json.dumps(params.arguments or {}, ensure_ascii=False))
        result = await _run_call(executor, call, context, workspace)
        tool = registry.get(params.name)
        schema = None if tool is None or result.is_error else tool.output_schema
        if schema is None:
            return CallToolResult(content=write_content(result), is_error=result.is_error)
        try:
            return CallToolResult(content=write_content(result), structured_content=write_structured(result, schema))
        except ToolFailed as error:
            return CallToolResult(content=[TextContent(text=f"error: {error.reason}")], is_error=True)

    return Server(name, version=read_own_version(), on_list_tools=list_tools, on_call_tool=call_tool)


def _describe_tool(tool: Tool) -> RemoteTool:
    spec = tool.spec
    said = spec.annotations
    hints = ToolAnnotations(
        read_only_hint=said.read_only,
        destructive_hint=said.destructive,
        idempotent_hint=said.idempotent,
        open_world_hint=said.open_world,
    )
    return RemoteTool(
        name=spec.name,
        description=spec.description,
        input_schema=dict(spec.parameters),
        output_schema=None if tool.output_schema is None else dict(tool.output_schema),
        annotations=hints,
    )


async def _run_call(
    executor: Executor, call: ToolCall, context: ServerRequestContext[Any], workspace: Path | None
) -> ToolResult:
    """Run a call; its progress is sent while it runs, all of it before the result."""
    reporter = _Reporter(context)
    reporting = asyncio.create_task(reporter.run())
    try:
        result = await executor.run(call, CallScope(blobs=executor.blobs, emit=reporter.put, workspace=workspace))
        reporter.end()
        await reporting
    finally:
        reporting.cancel()
    assert isinstance(result, ToolResult), "an executor with on_ask='deny' never pauses"
    return result


class _Reporter:
    """Sends the progress of one call; the SDK drops it if the client didn't ask for progress."""

    def __init__(self, context: ServerRequestContext[Any]) -> None:
        self._session = context.session
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[ToolProgress] = deque(maxlen=_MOST_WAITING)
        self._changed = asyncio.Event()
        self._is_over = False
        self._last: float | None = None

    def put(self, progress: ToolProgress) -> None:
        """Send progress soon. Callable from any thread."""
        self._waiting.append(progress)
        self._loop.call_soon_threadsafe(self._changed.set)

    def end(self) -> None:
        """End the reports: no more progress comes."""
        self._is_over = True
        self._changed.set()

    async def run(self) -> None:
        """Send progress as it comes, until the end."""
        while True:
            while self._waiting:
                await self._send(self._waiting.popleft())
            if self._is_over:
                return
            await self._changed.wait()
            self._changed.clear()

    async def _send(self, progress: ToolProgress) -> None:
        # The protocol requires the number to increase each time, even if a tool reports only text.
        last, total = self._last, None if progress.fraction is None else 1.0
        least = 0.0 if last is None else round(last + _LEAST_STEP, _DIGITS)
        if progress.fraction is not None:
            self._last = max(least, progress.fraction)
        elif last is None:
            self._last = 1.0
        else:
            self._last = last + 1 if last >= 1 else least
        await self._session.report_progress(self._last, total, progress.text or None)


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
