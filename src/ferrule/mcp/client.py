"""An MCP server whose tools models can call.

    server = MCPServer("npx -y @modelcontextprotocol/server-filesystem .", name="files")
    model(...).using(server)                   # opened for each run
    async with server: ...                     # or held open, and shared by the runs inside

Each tool is of origin `mcp:<name>`, with a hash of the command or address if the name is derived: its annotations can
only make a policy stricter, until the policy trusts that origin. `connection.py` opens and closes a connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.conversation import ToolOutput
from ferrule.errors import FerruleError, RegistryError, SettingsError, ToolFailed
from ferrule.execution.call_clock import current_clock
from ferrule.mcp.connection import ServerConnection, describe_error, describe_refusal
from ferrule.mcp.content import check_structured, is_short, read_failure, read_parts
from ferrule.mcp.incoming import NOT_READ
from ferrule.mcp.remote_tools import make_tools, rename_taken
from ferrule.mcp.requests import ClientAnswers, Elicit, Sample
from ferrule.mcp.server_name import choose_name, make_origin
from ferrule.mcp.target import parse_target
from ferrule.tools.decorator import Tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.schema_validator import SchemaValidator
from ferrule.tools.scope import CallScope

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_log = logging.getLogger("ferrule.mcp")

_LONGEST_PROBLEM, _MOST_WARNINGS = 500, 20
_CONNECTION_ENDS = ("Connection closed", "SSE stream failed", "SSE stream ended")
"""How the SDK reports that a server's answer can't come any more: its code is also one that servers may use."""
_NO_SESSION = ("Session terminated", "Session not found")
"""The SDK's messages, on either side, if a server over HTTP doesn't know the session because it was restarted."""


class MCPServer:
    """An MCP server, given by the command that starts it (a line, or its words) or by its `http(s)://` address.

    A registry, and so `using`, takes it like a tool: it is opened for each run, or shared if it is open already. While
    it is open, `registry` has its current tools, and `problems` lists the tools that can't be offered and the parts
    of schemas that aren't checked. It belongs to one event loop at a time.

    `name` is used in its origin and the prefix of its tools; by default it is derived from the program or host, and the
    origin is bound to the command or address by a hash.
    `timeout` is for each call and `start_timeout` for starting, both in seconds. `env` is added to the few
    variables that a started server inherits, `cwd` is its folder; `headers` go with each request to an address.
    `on_change` gets the new registry each time the server reports that its tools changed. `elicit` asks a person what
    the server wants to know, `sample` a model for a message: the server may ask only for what is given. `authorize` is
    called with the address at which a person logs in, if the server at an address asks for that; without it, the tokens
    of an earlier login are used.

    Raises `SettingsError` for an invalid command or address; an unreachable server is an error when it is opened.
    """

    def __init__(  # noqa: PLR0913 - all but the first have defaults
        self,
        server: str | Sequence[str],
        *,
        name: str | None = None,
        timeout: float | None = 60.0,
        start_timeout: float = 30.0,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        headers: Mapping[str, str] | None = None,
        on_change: Callable[[ToolRegistry], None] | None = None,
        elicit: Elicit | None = None,
        sample: Sample | None = None,
        authorize: Callable[[str], None] | None = None,
    ) -> None:
        self._target = replace(parse_target(server, env, cwd, headers), authorize=authorize)
        self.name = choose_name(self._target, name)
        self.origin = make_origin(self._target, self.name, is_given=name is not None)
        """The origin of its tools, which a policy may trust: `Policy(trusted=(server.origin,))`."""
        self.problems: tuple[str, ...] = ()
        self.instructions = ""
        """What the server says about the use of its tools, which models read too; empty until it was opened."""
        for seconds in (timeout, start_timeout):
            if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
                raise SettingsError(f"the MCP server {self.name!r}: a timeout must be seconds above 0, not {seconds!r}")
        self._timeout = timeout
        self._start_timeout = start_timeout
        self._on_change = on_change
        self._answers = ClientAnswers(elicit, sample)
        self._connection: ServerConnection | None = None
        self._listed: ServerConnection | None = None
        self._tools: tuple[Tool, ...] = ()
        self._users = 0
        self._is_stale = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._left: set[ServerConnection] = set()
        self._refreshing: set[asyncio.Task[None]] = set()
        self._listing = asyncio.Lock()

    @property
    def registry(self) -> ToolRegistry:
        """Its tools, as last listed. Raises `RegistryError` if it isn't open."""
        if not self._users:
            raise RegistryError(f"the MCP server {self.name!r} isn't open; use it inside `async with`")
        return ToolRegistry(self._tools)

    async def __aenter__(self) -> MCPServer:
        """Start or connect to it. Raises `RegistryError` if it doesn't answer, and `SettingsError` without the SDK."""
        _require_sdk()
        loop = asyncio.get_running_loop()
        if self._users and self._loop is not loop:
            raise RegistryError(f"the MCP server {self.name!r} is open in another event loop; make one for each")
        if not self._users:
            self._loop, self._listing = loop, asyncio.Lock()
        self._users += 1
        try:
            await self._get_live_connection()
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._leave()

    @asynccontextmanager
    async def open_tools(self, taken: Collection[str]) -> AsyncIterator[Sequence[Tool]]:
        """Yield its tools for one run, renamed if their names are `taken`: see `ferrule.tools.registry.ToolSource`."""
        is_listed_before = self._users > 0
        async with self:
            connection = await self._get_live_connection()
            if self._refreshing:
                await asyncio.wait(set(self._refreshing))  # a change that was announced is being listed
            elif self._is_stale or (is_listed_before and not connection.reports_changes):
                await self._refresh(is_announced=self._is_stale)
            yield rename_taken(self._tools, taken, self.name)

    async def _leave(self) -> None:
        self._users -= 1
        if not self._users and self._connection is not None:
            self._left.add(self._connection)
            self._connection = None
            # Concurrently, since killing one may take some seconds.
            await asyncio.gather(*(connection.close() for connection in self._left))
            self._left.clear()

    async def _get_live_connection(self) -> ServerConnection:
        """Return the connection, or a new one if the last was lost. Raises `RegistryError`."""
        connection = await self._get_ready_connection()
        if not await connection.check_alive():
            connection = await self._get_ready_connection()
        return connection

    async def _get_ready_connection(self) -> ServerConnection:
        if self._connection is None or self._connection.is_lost:
            if self._connection is not None:
                self._left.add(self._connection)
            # After a cancelled caller, the next one waits only for the rest of the start.
            self._connection = ServerConnection(
                self.name,
                self.origin,
                self._target,
                self._start_timeout,
                self._on_tools_changed,
                self._answers,
                partial(make_tools, origin=self.origin, timeout=self._timeout, function_for=self._make_function),
            )
        connection = self._connection
        await connection.wait_until_ready()
        if connection is not self._listed:
            self._listed = connection
            self._update_tools(connection)
        return connection

    def _update_tools(self, connection: ServerConnection) -> None:
        before = self.problems
        self._tools, found = connection.offered
        self.instructions = connection.instructions
        self.problems = tuple(map(_shorten, (*connection.dropped, *found)))
        new = [problem for problem in dict.fromkeys(self.problems) if problem not in before]
        for problem in new[:_MOST_WARNINGS]:
            _log.warning("the MCP server %s: %s", self.name, problem)
        if len(new) > _MOST_WARNINGS:
            _log.warning("the MCP server %s has %d more problems", self.name, len(new) - _MOST_WARNINGS)

    def _on_tools_changed(self) -> None:
        self._is_stale = True
        if len(self._refreshing) > 1:
            return  # one lists the tools now, another will when that is done
        task = asyncio.create_task(self._refresh(is_announced=True))
        self._refreshing.add(task)
        task.add_done_callback(self._refreshing.discard)

    async def _refresh(self, is_announced: bool) -> None:
        """List the tools again; if that fails they stay the same."""
        async with self._listing:
            connection = self._connection
            if connection is None or connection.is_lost:
                return
            self._is_stale = False
            try:
                await connection.wait_until_ready()
                await connection.list()
            except Exception as error:  # noqa: BLE001 - a server may fail in any way; its tools stay known
                self._is_stale = True
                # A server that announces changes just before it is closed, or ends, hasn't failed to list them.
                level = logging.DEBUG if connection.is_lost else logging.WARNING
                _log.log(level, "the MCP server %s couldn't list its tools: %s", self.name, describe_error(error))
                return
            self._update_tools(connection)
        if is_announced and self._on_change is not None:
            self._on_change(ToolRegistry(self._tools))

    def _make_function(self, name: str, validator: SchemaValidator | None) -> Callable[..., Any]:
        # A name that no parameter of a server's tool is likely to have.
        async def call(*, _ferrule_scope: CallScope, **arguments: Any) -> ToolOutput:
            result = await self._call(name, arguments, _ferrule_scope)
            if is_short(result):
                return _read_result(result, validator)
            return await asyncio.to_thread(_read_result, result, validator)

        return call

    async def _call(self, name: str, arguments: dict[str, Any], scope: CallScope) -> CallToolResult:
        if not self._users:
            raise ToolFailed(f"the MCP server {self.name!r} is closed")

        clock = current_clock.get()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            if clock is not None:
                clock.restart()
            fraction = min(1.0, max(0.0, progress / total)) if total else None
            scope.report_progress(message or f"{progress:g}" + (f" of {total:g}" if total else ""), fraction)

        try:
            connection = await self._get_live_connection()
        except FerruleError as error:
            raise ToolFailed(f"not run: {error}") from error
        try:
            return await connection.call(name, arguments, on_progress)
        except Exception as error:
            raise ToolFailed(self._explain_failure(connection, error)) from error

    def _explain_failure(self, connection: ServerConnection, error: Exception) -> str:
        """Explain to the model why a call has no result."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

        code, message = (error.code, error.message) if isinstance(error, MCPError) else (None, "")
        if code == INVALID_REQUEST and message in _NO_SESSION:
            connection.abandon()
            return f"not run: the MCP server {self.name!r} was restarted; call again"
        if NOT_READ in message:
            return f"the MCP server {self.name!r} gave no result: {describe_error(error)}"
        if connection.is_lost or (code == CONNECTION_CLOSED and message.startswith(_CONNECTION_ENDS)):
            connection.abandon()
            if output := connection.output.describe():
                _log.warning("the MCP server %s ended while a call ran; %s", self.name, output)
            return (
                f"the MCP server {self.name!r} ended while the call ran; it may have had some of its effects; "
                "the next call starts the server again"
            )
        return f"the MCP server {self.name!r} gave no result: {describe_refusal(error)}"

    def __repr__(self) -> str:
        return f"<MCPServer {self.name} ({self._target.label})>"


def _read_result(result: CallToolResult, validator: SchemaValidator | None) -> ToolOutput:
    """Read a result as one of ours. Raises `ToolFailed`, for the model."""
    if result.is_error:
        raise ToolFailed(read_failure(result))
    if validator is not None and result.structured_content is not None:
        check_structured(result.structured_content, validator)
    return ToolOutput(read_parts(result) or "", result.structured_content)


def _shorten(problem: str) -> str:
    return problem if len(problem) <= _LONGEST_PROBLEM else f"{problem[:_LONGEST_PROBLEM]}…"


def _require_sdk() -> None:
    if find_spec("mcp") is None:
        raise SettingsError('MCP needs the mcp package: pip install "ferrule[mcp]"')
