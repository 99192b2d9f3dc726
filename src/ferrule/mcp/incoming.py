"""Reads the messages of a server: notices its end, what isn't a message, and what is nested too deeply to be read.

The SDK's parser refuses JSON of more than 200 levels, and with it a whole listing for one tool's schema. Such a listing
is read here with the levels below `_DEEPEST` cut off; the tools that have them are left out later, by their schema.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage

_DEEPEST = 180
"""Deeper than any schema that `SchemaRules` accepts, and less than the SDK's parser does."""
_LONGEST_NOTE = 300
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_LOGGERS = (
    "mcp.client.auth.oauth2",
    "mcp.client.session",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.jsonrpc_dispatcher",
)
_log = logging.getLogger("ferrule.mcp")
_is_ours: ContextVar[bool] = ContextVar("ferrule_mcp_connection", default=False)


def quiet_sdk() -> None:
    """Turn the tracebacks that the SDK logs in this task, and in those that it starts, into debug records of ours.

    What a server does wrong is told once, by the error that its caller gets.
    """
    _is_ours.set(True)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_divert_traceback)


def _divert_traceback(record: logging.LogRecord) -> bool:
    if not (_is_ours.get() and record.exc_info):
        return True
    _log.debug("%s", record.getMessage(), exc_info=record.exc_info)
    return False


@asynccontextmanager
async def watch_transport(
    transport: AbstractAsyncContextManager[TransportStreams],
    on_end: Callable[[], None],
    on_unreadable: Callable[[str], None],
    on_dropped: Callable[[str], None],
) -> AsyncIterator[TransportStreams]:
    """Open a transport; `on_end` is called as soon as the server's stream ends.

    `on_unreadable` is called with each line that isn't a message, `on_dropped` with the reason for each tool that is
    left out of a listing because it doesn't follow the specification: the SDK would refuse the whole listing.
    """
    async with transport as (read, write):
        yield _WatchedStream(read, on_end, on_unreadable, on_dropped), write


class _WatchedStream:
    """A stream from a server that reports its end before those who wait for an answer see it."""

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        on_end: Callable[[], None],
        on_unreadable: Callable[[str], None],
        on_dropped: Callable[[str], None],
    ) -> None:
        self._stream = stream
        self._on_end = on_end
        self._on_unreadable = on_unreadable
        self._on_dropped = on_dropped

    @property
    def last_context(self) -> Any:
        """The context in which the last message was sent, for the SDK."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Receive the next message."""
        from anyio import ClosedResourceError, EndOfStream

        try:
            return self._recover(await self._stream.receive())
        except (EndOfStream, ClosedResourceError):
            self._on_end()
            raise

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return self._recover(await anext(self._stream))
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> _WatchedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stream.__aexit__(*error)

    def _recover(self, received: SessionMessage | Exception) -> SessionMessage | Exception:
        from pydantic import ValidationError

        if isinstance(received, ValidationError):
            line = received.errors(include_url=False)[0]["input"]
            if not isinstance(line, str):
                return received
            recovered = _read_deep_message(line)
            if recovered is None:
                self._on_unreadable(line)
                return received
            received = recovered
        if not isinstance(received, Exception):
            for reason in _drop_invalid_tools(received):
                self._on_dropped(reason)
            _replace_invalid_content(received)
        return received


def _drop_invalid_tools(received: SessionMessage) -> Iterator[str]:
    """Remove the tools from a listing that don't follow the specification; yields the reason for each."""
    from mcp_types import JSONRPCResponse
    from mcp_types.methods import validate_server_result
    from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
    from pydantic import ValidationError

    message = received.message
    result = message.result if isinstance(message, JSONRPCResponse) else {}
    listed = result.get("tools")
    if not isinstance(listed, list):
        return
    version = LATEST_MODERN_VERSION if "resultType" in result else LATEST_HANDSHAKE_VERSION
    for tool in tuple(listed):
        try:
            validate_server_result("tools/list", version, {**result, "tools": [tool]})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["loc"][0] != "tools":
                return  # the listing itself is wrong, which is for the SDK to say
            listed.remove(tool)
            name = tool.get("name") if isinstance(tool, dict) else tool
            place = ".".join(map(str, first["loc"][2:]))
            yield f"{name!r} is not offered: it doesn't follow the MCP specification: {place}: {first['msg']}"


def _replace_invalid_content(received: SessionMessage) -> None:
    """Replace the parts of a tool's result that don't follow the specification by notes that the model reads.

    The SDK would refuse the whole result, of a call that was run.
    """
    from mcp_types import JSONRPCResponse

    message = received.message
    result = message.result if isinstance(message, JSONRPCResponse) else {}
    content = result.get("content")
    if not isinstance(content, list) or not _find_invalid_part(result):
        return
    for number, block in enumerate(content):
        if problem := _find_invalid_part({"content": [block]} | _select(result, "resultType")):
            kind = block.get("type") if isinstance(block, dict) else None
            named = f" of the type {kind!r}" if isinstance(kind, str) else ""
            content[number] = _make_note(f"part {number + 1} of {len(content)}{named}", problem)
    if problem := _find_invalid_part({"content": []} | _select(result, "resultType", "structuredContent")):
        del result["structuredContent"]
        content.append(_make_note("the structured content", problem))


def _find_invalid_part(result: dict[str, Any]) -> str:
    """Why a tool's result doesn't follow the specification; empty if it does."""
    from mcp_types import CallToolResult
    from mcp_types.methods import validate_server_result
    from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
    from pydantic import ValidationError

    version = LATEST_MODERN_VERSION if "resultType" in result else LATEST_HANDSHAKE_VERSION
    try:
        validate_server_result("tools/call", version, result)
        CallToolResult.model_validate(result, by_name=False)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        # A part is compared with each type that it could be; those that it isn't have nothing to say.
        others = {one["loc"][:3] for one in problems if one["type"] == "literal_error" and one["loc"][3:] == ("type",)}
        of_type = [one for one in problems if one["loc"][:3] not in others]
        if not of_type:
            return "unknown type"
        place = ".".join(str(step) for step in (of_type[0]["loc"][3:] or of_type[0]["loc"][:1]))
        return f"{place}: {of_type[0]['msg']}"
    return ""


def _select(result: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: result[name] for name in names if name in result}


def _make_note(what: str, problem: str) -> dict[str, str]:
    text = f"[left out: {what} doesn't follow the MCP specification: {problem}]"
    return {"type": "text", "text": text if len(text) <= _LONGEST_NOTE else f"{text[:_LONGEST_NOTE]}…]"}


def _read_deep_message(line: str) -> SessionMessage | None:
    """Read a message without its deepest levels. Only a listing is kept; any other answer becomes an error."""
    from mcp.shared.message import SessionMessage
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

    pruned = prune_json(line)
    if pruned == line:
        return None
    try:
        message = jsonrpc_message_adapter.validate_json(pruned, by_name=False)
    except ValueError:
        return None
    if isinstance(message, JSONRPCResponse) and "tools" not in message.result:
        error = ErrorData(code=INTERNAL_ERROR, message="the server's answer is nested too deeply to be read")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
    return SessionMessage(message)


def prune_json(text: str, deepest: int = _DEEPEST) -> str:
    """Replace the lists and objects of a JSON text that are below `deepest` levels by null. The text isn't checked."""
    kept: list[str] = []
    depth = start = 0
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in "[{":
            depth += 1
            if depth == deepest + 1:
                kept.append(text[start : token.start()])
        elif mark in "]}":
            depth -= 1
            if depth == deepest:
                kept.append("null")
                start = token.end()
    return "".join(kept) + text[start:] if depth <= deepest else "".join(kept)
