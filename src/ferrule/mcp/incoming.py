"""Reads the messages of a server: notices its end, what isn't a message, and what has too much or is nested too deeply.

The SDK's parser refuses JSON of more than 200 levels, and with it a whole listing for one tool's schema. Such a listing
is read here with the levels below `_DEEPEST` cut off; the tools that have them are left out later, by their schema.
What takes long is done in a thread, which a deadline doesn't wait for.
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

MOST_BYTES = 50_000_000
"""The most bytes that are read of one message."""
MOST_VALUES = 250_000
"""The most objects and lists of one message: each takes about a kilobyte while it is checked."""
MOST_PARTS = 10_000
"""The most parts of a result that are kept."""
MOST_TOOLS = 1_000
"""The most tools of a server that are offered."""
NOT_READ = "its answer isn't read: "
"""How the error of a request begins whose answer has too much; the reason follows."""
TOO_LONG = f"it has more than {MOST_BYTES // 1_000_000} MB"
_FEW, _LONG = 50, 100_000
"""Parts or tools, and characters of what isn't a message, from which on a message is checked in a thread."""
_DEEPEST = 180
"""Deeper than any schema that `SchemaRules` accepts, and less than the SDK's parser does."""
_LONGEST_NOTE = 300
ENDS = 4_096
"""Characters of both ends of a message in which its id is looked for if it can't be parsed."""
_VERSION = r'"jsonrpc"\s*:\s*"2\.0"'
_ID = r'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")'
_ID_FIRST = re.compile(rf"\s*\{{\s*(?:{_VERSION}\s*,\s*)?{_ID}")
_ID_LAST = re.compile(rf",\s*{_ID}\s*(?:,\s*{_VERSION}\s*)?\}}\s*\Z")
_ANSWER = re.compile(rf'\s*\{{\s*(?:(?:{_VERSION}|{_ID})\s*,\s*){{0,2}}"(?:result|error)"\s*:')
_ANSWER_FIELDS = {"result", "error"}
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][\da-fA-F]{2})|.)", re.DOTALL
)
"""An escape of a JSON string: a surrogate pair, half of one, or any other."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[\]{}]', re.DOTALL)
_LOGGERS = (
    "client",
    "mcp.client.auth.oauth2",
    "mcp.client.client",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.jsonrpc_dispatcher",
)
_log = logging.getLogger("ferrule.mcp")
_is_ours: ContextVar[bool] = ContextVar("ferrule_mcp_connection", default=False)


def quiet_sdk() -> None:
    """Turn the warnings that the SDK logs in this task, and in those that it starts, into debug records of ours.

    What a server does wrong is told once, by the error that its caller gets.
    """
    _is_ours.set(True)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_divert_warning)


def _divert_warning(record: logging.LogRecord) -> bool:
    if not _is_ours.get() or record.levelno < logging.WARNING:
        return True
    _log.debug("%s", record.getMessage(), exc_info=record.exc_info)
    return False


@asynccontextmanager
async def watch_transport(
    transport: AbstractAsyncContextManager[TransportStreams],
    on_end: Callable[[], None],
    on_unreadable: Callable[[str], None],
    on_dropped: Callable[[str], None],
    on_cut: Callable[[str], None],
) -> AsyncIterator[TransportStreams]:
    """Open a transport; `on_end` is called as soon as the server's stream ends.

    `on_unreadable` is called with each line that isn't a message, `on_dropped` with the reason for each tool that is
    left out of a listing because it doesn't follow the specification: the SDK would refuse the whole listing. `on_cut`
    is called with what was left out of a result that has too many parts.
    """
    async with transport as (read, write):
        yield _WatchedStream(read, on_end, on_unreadable, on_dropped, on_cut), write


def find_excess(text: str) -> str:
    """Why a message has too much to be parsed; empty if it hasn't. It is JSON, which isn't checked."""
    if text.count("{") + text.count("[") > MOST_VALUES:
        bare = _STRING.sub("", text)
        if bare.count("{") + bare.count("[") > MOST_VALUES:
            return f"it has more than {MOST_VALUES:,} objects and lists"
    return ""


def parse_message(line: str) -> SessionMessage | Exception:
    """Parse a message; what isn't one gives the SDK's error, for the session.

    Halves of a surrogate pair, which some servers make when they cut a text, are replaced. An answer that can't be
    parsed becomes an error, so that nobody waits for it.
    """
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter
    from pydantic_core import from_json

    value: Any = None
    try:
        try:
            # The adapter alone takes several times as long, and as much memory.
            value = from_json(line)
        except ValueError:
            repaired = _ESCAPE.sub(_replace_lone_surrogate, line) if "\\u" in line else line
            return SessionMessage(jsonrpc_message_adapter.validate_json(repaired, by_name=False))
        return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValueError as error:
        if isinstance(value, dict) and _ANSWER_FIELDS & value.keys() and "method" not in value:
            return make_error(value.get("id"), "it isn't a JSON-RPC message") or error
        return error


def _replace_lone_surrogate(found: re.Match[str]) -> str:
    return "\\ufffd" if found["lone"] else found[0]


def make_error(number: Any, reason: str) -> SessionMessage | None:
    """Make the error that answers the request of this id, instead of an answer that isn't read; None for no id."""
    from mcp.shared.message import SessionMessage
    from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

    if isinstance(number, bool) or not isinstance(number, int | str):
        return None
    error = ErrorData(code=INTERNAL_ERROR, message=f"{NOT_READ}{reason}")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))


def refuse_answer(first: str, last: str, reason: str) -> SessionMessage | None:
    """Answer the request that a message which isn't read would have answered, found by the ends of its text."""
    found = _ID_FIRST.match(first) or _ID_LAST.search(last)
    if found is None:
        return None
    number = found[1]
    return make_error(int(number) if number.isdecimal() else number[1:-1], reason)


class _WatchedStream:
    """A stream from a server that reports its end before those who wait for an answer see it."""

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        on_end: Callable[[], None],
        on_unreadable: Callable[[str], None],
        on_dropped: Callable[[str], None],
        on_cut: Callable[[str], None],
    ) -> None:
        self._stream = stream
        self._on_end = on_end
        self._on_unreadable = on_unreadable
        self._on_dropped = on_dropped
        self._on_cut = on_cut

    @property
    def last_context(self) -> Any:
        """The context in which the last message was sent, for the SDK."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Receive the next message."""
        from anyio import ClosedResourceError, EndOfStream

        try:
            return await self._check(await self._stream.receive())
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
            return await self._check(await anext(self._stream))
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> _WatchedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._stream.__aexit__(*error)

    async def _check(self, received: SessionMessage | Exception) -> SessionMessage | Exception:
        from anyio import to_thread

        if _is_small(received):
            return self._recover(received)
        return await to_thread.run_sync(self._recover, received, abandon_on_cancel=True)

    def _recover(self, received: SessionMessage | Exception) -> SessionMessage | Exception:
        """Read what the SDK would refuse; called in a thread if it is large."""
        from pydantic import ValidationError

        if isinstance(received, ValidationError):
            line = _find_line(received)
            if line is None:
                return received
            recovered = _read_deep_message(line)
            if recovered is None and _ANSWER.match(line):
                recovered = refuse_answer(line[:ENDS], line[-ENDS:], "it is no valid JSON")
            if recovered is None:
                self._on_unreadable(line)
                return received
            received = recovered
        if not isinstance(received, Exception):
            for reason in _drop_invalid_tools(received):
                self._on_dropped(reason)
            if reason := _cut_content(received):
                self._on_cut(reason)
            _replace_invalid_content(received)
        return received


def _is_small(received: SessionMessage | Exception) -> bool:
    """Whether it takes no time to check a message."""
    if isinstance(received, Exception):
        return len(_find_line(received) or "") < _LONG
    result = _get_result(received)
    return all(len(result[name]) <= _FEW for name in ("tools", "content") if isinstance(result.get(name), list))


def _find_line(error: Exception) -> str | None:
    """The line that isn't JSON; None for JSON that isn't a message, and for any other error."""
    from pydantic import ValidationError

    line = error.errors(include_url=False)[0]["input"] if isinstance(error, ValidationError) else None
    return line if isinstance(line, str) else None


def _get_result(received: SessionMessage) -> dict[str, Any]:
    from mcp_types import JSONRPCResponse

    return received.message.result if isinstance(received.message, JSONRPCResponse) else {}


def _drop_invalid_tools(received: SessionMessage) -> Iterator[str]:
    """Remove the tools from a listing that don't follow the specification; yields the reason for each."""
    from mcp_types.methods import validate_server_result
    from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
    from pydantic import ValidationError

    result = _get_result(received)
    listed = result.get("tools")
    if not isinstance(listed, list):
        return
    del listed[MOST_TOOLS + 1 :]  # with one more, so that it is known that there are too many
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


def _cut_content(received: SessionMessage) -> str:
    """Leave out what is too much of a tool's result, with a note that the model reads; returns what was left out."""
    content = _get_result(received).get("content")
    if not isinstance(content, list) or len(content) <= MOST_PARTS:
        return ""
    count = len(content)
    text = f"left out: {count - MOST_PARTS:,} of the {count:,} parts of a result, of which {MOST_PARTS:,} are read"
    content[MOST_PARTS:] = [{"type": "text", "text": f"[{text}]"}]
    return text


def _replace_invalid_content(received: SessionMessage) -> None:
    """Replace the parts of a tool's result that don't follow the specification by notes that the model reads.

    The SDK would refuse the whole result, of a call that was run.
    """
    result = _get_result(received)
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
