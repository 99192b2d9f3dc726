"""One connection to an MCP server, from its start to its end.

A task of its own opens and closes it: the SDK's scopes must be exited by the task that entered them, and an error in
one must not cancel a run that happens to hold the connection open.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from ferrule._util.terminal_text import escape_line
from ferrule.errors import FerruleError, RegistryError
from ferrule.execution.secrets import scrub_text
from ferrule.mcp.incoming import MOST_TOOLS, NOT_READ, quiet_sdk, watch_transport
from ferrule.mcp.remote_tools import quote_instructions
from ferrule.mcp.requests import ClientAnswers, make_elicitation_callback, make_sampling_callback
from ferrule.mcp.server_output import ServerOutput
from ferrule.mcp.target import ServerTarget
from ferrule.tools.decorator import Tool

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskGroup
    from mcp.client import Client, IncomingMessage
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, LoggingLevel, LoggingMessageNotificationParams
    from mcp_types import Tool as RemoteTool

OfferedTools: TypeAlias = tuple[tuple[Tool, ...], tuple[str, ...]]
"""The tools of a listing, and the problems of those that can't be offered or fully checked."""

NAME = "ferrule"


def read_own_version() -> str:
    """Return the installed version of ferrule, or 0 if it isn't installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(NAME)
    except PackageNotFoundError:
        return "0"


_GRACE_SECONDS = 5.0
"""Seconds that a server has to answer after a cancelled call, and that a connection has to close."""
_MOST_PAGES = 1000
_UNAUTHORIZED, _NOT_FOUND = 401, 404
_SSE_ADVICE = (
    "an address that ends with /sse is often one of the older HTTP+SSE transport: try the server's address for "
    "streamable HTTP, or the command `uvx --with 'mcp<2' mcp-proxy {}` in its place"
)
_MOST_SHOWN = 80
"""Characters of a line that isn't a message, shown in an error."""
_LONGEST_MESSAGE = 500
_UNPARSED = re.compile(r"Failed to parse .* validation errors? for ")
"""How the SDK begins its report on an answer that isn't a message: a list of what it lacks, for each kind of them."""
_log = logging.getLogger("ferrule.mcp")


class ServerConnection:
    """A connection to a server that is starting or running. Once `is_lost`, it can't be used again.

    `offered` is what `make_tools` made of its last listing, and `dropped` the reasons for what was left out of that;
    `on_change` is called when the server reports that its tools changed.
    `reports_changes` is whether it can be relied on to report that.
    """

    def __init__(
        self,
        name: str,
        origin: str,
        target: ServerTarget,
        start_timeout: float,
        on_change: Callable[[], None],
        answers: ClientAnswers,
        make_tools: Callable[[Sequence[RemoteTool], str], OfferedTools],
    ) -> None:
        self._answers = answers
        self._make_tools = make_tools
        self.output = ServerOutput(name)
        """What the server writes to stderr."""
        self.is_lost = False
        self.offered: OfferedTools = ((), ())
        self.dropped: list[str] = []
        self.reports_changes = True
        self._is_following = False
        self._name = name
        self._origin = origin
        self._target = target
        self._start_timeout = start_timeout
        self._on_change = on_change
        self._client: Client | None = None
        self._scope: CancelScope | None = None
        self._tasks: TaskGroup | None = None
        self._settled = asyncio.Event()
        self._stopped = asyncio.Event()
        self._checked = asyncio.Event()
        self._checked.set()
        self._problem = ""
        self._unreadable = ""
        self._asks_for_login = False
        self._status = 0
        self._owner = asyncio.create_task(self._run(), name=f"MCP server {name}")

    async def wait_until_ready(self) -> None:
        """Wait until the server answers. If it doesn't, its process is killed and `RegistryError` raised."""
        await self._settled.wait()
        if self._problem:
            problem = escape_line(scrub_text(self._problem))
            raise RegistryError(f"the MCP server {self._name!r} ({self._target.label}) {problem}")

    async def check_alive(self) -> bool:
        """Whether the server can be called; after a cancelled call, this waits until that is known."""
        await self._checked.wait()
        return not self.is_lost

    async def close(self) -> None:
        """Close the connection; a process that doesn't exit is killed."""
        self._mark_lost()
        if self._scope is not None and not self._settled.is_set():
            self._scope.cancel()
        await asyncio.wait({self._owner})  # awaiting it directly would pass our own cancellation to it

    def abandon(self) -> None:
        """Mark the connection as lost: its server has ended or can't be reached."""
        self._mark_lost()

    async def list(self) -> None:
        """List the tools that the server offers now. Raises what the SDK raises, and `TimeoutError`."""
        async with asyncio.timeout(self._start_timeout):
            await self._list()

    async def _list(self) -> None:
        from anyio import to_thread

        self.dropped.clear()
        listing = await _list_tools(self._connected)
        if len(listing) > MOST_TOOLS:
            self.dropped.append(f"it lists more than {MOST_TOOLS:,} tools: the first {MOST_TOOLS:,} are offered")
            del listing[MOST_TOOLS:]
        # Schemas take a while to check; a thread is left behind at the deadline.
        quoted = quote_instructions(self._name, self.instructions)
        self.offered = await to_thread.run_sync(self._make_tools, listing, quoted, abandon_on_cancel=True)

    async def call(self, name: str, arguments: dict[str, Any], on_progress: ProgressFnT) -> CallToolResult:
        """Call a tool. Raises what the SDK raises.

        On cancellation it notifies the server, and then checks whether that still answers: see `check_alive`.
        """
        try:
            return await self._connected.call_tool(name, arguments, progress_callback=on_progress)
        except asyncio.CancelledError:
            if self._tasks is not None and not self.is_lost:
                self._checked.clear()
                self._tasks.start_soon(self._check_after_cancel)
            raise

    @property
    def instructions(self) -> str:
        """What the server says about its use; empty if that is nothing."""
        return (self._client.instructions if self._client is not None else None) or ""

    @property
    def _connected(self) -> Client:
        assert self._client is not None
        return self._client

    async def _run(self) -> None:
        try:
            await self._keep_open()
        except Exception as error:  # noqa: BLE001 - whatever a transport raises ends this connection
            ended = f"ended before it was ready; {self._explain_silence() or 'it wrote nothing on stderr'}"
            self._problem = ended if self.is_lost else f"can't be reached: {describe_error(error)}"
            if self._status == _NOT_FOUND and not self.is_lost:
                self._problem = "can't be reached: it answered with HTTP 404 Not Found; check the path of the address"
            if self._target.is_sse:
                self._problem += f"; {_SSE_ADVICE.format(self._target.label)}"
            if self._asks_for_login:
                self._problem = f"asks for a login: run `ferrule mcp login {self._target.url}`, or give headers="
            _log.debug("the MCP server %s ended", self._name, exc_info=error)
        finally:
            self._mark_lost()
            self._settled.set()

    async def _keep_open(self) -> None:
        """Open the connection, keep it open until stopped, and close it; start and end have a deadline."""
        import anyio
        from mcp.client import Client
        from mcp_types import Implementation

        quiet_sdk()
        transport = watch_transport(
            self._target.open_transport(self._note_status, self.output),
            self._mark_lost,
            self._note_unreadable,
            self.dropped.append,
            self._warn_of_cut,
        )
        elicit, sample = self._answers.elicit, self._answers.sample
        client = Client(
            transport,
            elicitation_callback=None if elicit is None else make_elicitation_callback(self._name, elicit),
            sampling_callback=None if sample is None else make_sampling_callback(self._name, self._origin, sample),
            message_handler=self._on_message,
            logging_callback=self._log_message,
            log_level=_find_log_level(),
            cache=None,
            client_info=Implementation(name=NAME, version=read_own_version()),
        )
        if self.is_lost:
            return
        with anyio.CancelScope(deadline=anyio.current_time() + self._start_timeout) as self._scope:
            async with client as self._client, anyio.create_task_group() as self._tasks:
                # Structured content is checked by `content.check_structured`, whose cost is bounded.
                setattr(client.session, "validate_tool_result", _accept_result)  # noqa: B010 - a method is replaced
                await self._set_log_level()
                await self._follow_changes()
                await self._list()
                self._scope.deadline = math.inf
                self._settled.set()
                await self._stopped.wait()
                self._tasks.cancel_scope.cancel()
                self._scope.deadline = anyio.current_time() + _GRACE_SECONDS
        if not self._settled.is_set():
            reason = self._explain_silence()
            self._problem = f"did not answer within {self._start_timeout:g} seconds; it was abandoned"
            self._problem += f"; {reason}" if reason else ""

    def _note_status(self, status: int) -> None:
        self._status = status
        self._asks_for_login = status == _UNAUTHORIZED and self._target.authorize is None

    def _warn_of_cut(self, reason: str) -> None:
        _log.warning("the MCP server %s: %s", self._name, reason)

    def _note_unreadable(self, line: str) -> None:
        """Keep the first line of a server that isn't a message, for the error if it never gets ready."""
        if not self._unreadable:
            shown = line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…"
            self._unreadable = f"it wrote {shown!r}, which is no MCP message: check that this starts an MCP server"

    def _explain_silence(self) -> str:
        """What the server wrote instead of answering; empty if that is nothing."""
        return "; ".join(filter(None, (self._unreadable, self.output.describe())))

    def _mark_lost(self) -> None:
        self.is_lost = True
        self._stopped.set()
        self._checked.set()

    async def _log_message(self, params: LoggingMessageNotificationParams) -> None:
        self.output.log_message(params.level, params.data)

    async def _set_log_level(self) -> None:
        """Ask a server of before 2026 for its log messages; later ones get the level with each request."""
        from mcp import MCPError
        from mcp_types import EmptyResult, SetLevelRequest, SetLevelRequestParams

        level, client = _find_log_level(), self._connected
        if level is not None and client.server_capabilities.logging is not None and _is_old(client):
            with suppress(MCPError):
                await client.session.send_request(
                    SetLevelRequest(params=SetLevelRequestParams(level=level)), EmptyResult
                )

    async def _on_message(self, message: IncomingMessage) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification) and not self._is_following:
            self._on_change()

    async def _follow_changes(self) -> None:
        """Subscribe to changes before the tools are listed, if the protocol's version requires that."""
        client = self._connected
        tools = client.server_capabilities.tools
        self.reports_changes = tools is not None and bool(tools.list_changed)
        if _is_old(client) or not self.reports_changes:
            return
        assert self._tasks is not None
        subscribed = asyncio.Event()
        self._tasks.start_soon(self._follow, client, subscribed)
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                await subscribed.wait()
        except TimeoutError:
            self.reports_changes = False

    async def _follow(self, client: Client, subscribed: asyncio.Event) -> None:
        from mcp import MCPError
        from mcp.client.subscriptions import SubscriptionLost

        try:
            async with client.listen(tools_list_changed=True) as changes:
                self._is_following = True  # from here on each change is also reported as a notification
                subscribed.set()
                async for _ in changes:
                    self._on_change()
        except (MCPError, SubscriptionLost) as error:
            _log.debug("the MCP server %s no longer reports changes", self._name, exc_info=error)
        finally:
            self.reports_changes = self._is_following = False
            subscribed.set()

    async def _check_after_cancel(self) -> None:
        """Check whether a server still answers after a cancelled call; otherwise it is marked as lost."""
        from anyio import move_on_after
        from mcp import MCPError

        with move_on_after(_GRACE_SECONDS) as patience:
            with suppress(MCPError):  # an error is an answer too
                await self._connected.list_tools()
        if patience.cancelled_caught:
            _log.warning("the MCP server %s doesn't answer any more; the connection is closed", self._name)
            self._mark_lost()
        self._checked.set()


def _find_log_level() -> LoggingLevel | None:
    """The lowest level of a server's messages that are logged; None if none are."""
    if not _log.isEnabledFor(logging.INFO):
        return None
    return "debug" if _log.isEnabledFor(logging.DEBUG) else "info"


def _is_old(client: Client) -> bool:
    """Whether a server speaks the protocol of before 2026, with a handshake."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return client.protocol_version not in MODERN_PROTOCOL_VERSIONS


async def _accept_result(_name: str, _result: CallToolResult) -> None:
    """Stand in for the SDK's check of results."""


def describe_error(error: BaseException) -> str:
    """Describe an error, or the first one if the SDK has grouped several."""
    from mcp import MCPError
    from pydantic import ValidationError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return _summarize_message(error.message)
    if isinstance(error, FerruleError):
        return str(error)
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"its answer doesn't follow the MCP specification: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, FileNotFoundError):
        return f"file not found: {error.filename!r}"
    return f"{type(error).__name__}: {error}"


def describe_refusal(error: BaseException) -> str:
    """Describe why a call has no result, to a model: an error of the server in full, with its data."""
    from mcp import MCPError

    if not isinstance(error, MCPError) or NOT_READ in error.message or _UNPARSED.search(error.message):
        return describe_error(error)
    data = json.dumps(error.data, ensure_ascii=False) if error.data else ""
    return "\n".join(filter(None, (error.message.strip(), data)))


def _summarize_message(message: str) -> str:
    """The first line of an error's message, shortened; one sentence for an answer that the SDK couldn't parse."""
    message = message[message.index(NOT_READ) :] if NOT_READ in message else message
    first = message.strip().partition("\n")[0].rstrip()
    if _UNPARSED.search(first):
        return "it answered with no MCP message; check that this is the address of an MCP server"
    return first if len(first) <= _LONGEST_MESSAGE else f"{first[:_LONGEST_MESSAGE]}…"


async def _list_tools(client: Client) -> list[RemoteTool]:
    """List all pages of tools, until there are too many."""
    found: list[RemoteTool] = []
    cursor: str | None = None
    seen: set[str | None] = {None}
    while len(seen) <= _MOST_PAGES:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or len(found) > MOST_TOOLS:
            return found
        if cursor in seen:
            raise RegistryError(f"its list of tools comes to the page {cursor[:_MOST_SHOWN]!r} twice")
        seen.add(cursor)
    raise RegistryError(f"its list of tools has more than {_MOST_PAGES} pages")
