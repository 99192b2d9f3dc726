"""The bodies of a server's answers over HTTP: bounded, repaired and explained before the SDK parses them whole."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final

from ferrule.mcp.incoming import MOST_BYTES, MOST_VALUES, NOT_READ, TOO_LONG, find_excess

_EVENT_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_KEPT_STATUS: Final = (401, 404)
"""What the SDK reads the status of: a login, and a session that the server no longer knows."""
_FAILED: Final = 400
_PHRASES: Final = {one.value: one.phrase for one in HTTPStatus}
_LONGEST_REASON: Final = 200
_REASONS: Final = ("message", "detail", "error_description", "error")
_ESCAPE: Final = re.compile(
    rb"\\(?:(?P<open>(?:u[dD][89abAB][\da-fA-F]{2}\\?|u[dD][89abAB][\da-fA-F]{2}\\u[\da-fA-F]{0,3}|u[\da-fA-F]{0,3}|)\Z)"
    rb"|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(?P<half>u[dD][89a-fA-F][\da-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape that the piece doesn't end, a pair, half of one, or any other."""
_TAIL: Final = 3
"""Bytes before a piece in which the end of an event may have begun."""


def bound_body(response: Any) -> None:
    """Let a response fail once one of its messages has too much to be parsed.

    Messages are the events of a stream, and otherwise the whole body. The error is one that the SDK passes on to those
    who wait for the answer.
    """
    from httpx2 import AsyncByteStream, SSEError, StreamError

    class Bounded(AsyncByteStream):
        def __init__(self, stream: AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
            message, escapes = BoundedMessage(is_event=is_events), SurrogateEscapes()
            async for piece in self._stream:
                if excess := message.add(piece):
                    raise (SSEError if is_events else StreamError)(f"{NOT_READ}{excess}")
                yield escapes.repair(piece)
            yield escapes.held

        async def aclose(self) -> None:
            await self._stream.aclose()

    # What a body is once it is decompressed would have no bound.
    response.headers.pop("content-encoding", None)
    response.stream = Bounded(response.stream)


class SurrogateEscapes:
    """Replaces the escapes of half a surrogate pair in pieces of JSON, which the SDK's parser refuses.

    `held` is the beginning of an escape whose rest is in the next piece.
    """

    def __init__(self) -> None:
        self.held = b""

    def repair(self, piece: bytes) -> bytes:
        """Return a piece without halves of pairs, and without what is held of its end."""
        data, self.held = self.held + piece, b""
        return _ESCAPE.sub(self._replace, data) if b"\\" in data else data

    def _replace(self, found: re.Match[bytes]) -> bytes:
        if found["open"] is not None:
            self.held = found[0]
            return b""
        return found[0] if found["half"] is None else b"\\ufffd"


def explain_status(response: Any) -> None:
    """Let the body of a failed request say its status, where it isn't an error of the protocol.

    The SDK reports such an error as it is, and of any other body nothing but that there was an error.
    """
    from httpx2 import AsyncByteStream
    from mcp_types import INTERNAL_ERROR

    if response.status_code < _FAILED or response.status_code in _KEPT_STATUS:
        return

    class Explained(AsyncByteStream):
        def __init__(self, stream: AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            body = b"".join([piece async for piece in self._stream])
            if _is_protocol_error(body):
                yield body
                return
            reason = _find_reason(body) if kind.startswith(("text/plain", "application/json")) else ""
            after = response.headers.get("retry-after")
            message = f"it answered with HTTP {response.status_code} {_PHRASES.get(response.status_code, '')}".rstrip()
            message += (f": {reason}" if reason else "") + (
                f"; retry after {after} s" if (after or "").isdigit() else ""
            )
            error = {"code": INTERNAL_ERROR, "message": message}
            yield json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()

        async def aclose(self) -> None:
            await self._stream.aclose()

    kind = response.headers.get("content-type", "").lower()
    response.headers["content-type"] = "application/json"
    response.headers.pop("content-length", None)
    response.stream = Explained(response.stream)


def _is_protocol_error(body: bytes) -> bool:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "jsonrpc" in value and isinstance(value.get("error"), dict)


def _find_reason(body: bytes) -> str:
    """The first line of what the body of a refusal says, shortened."""
    text = body.decode(errors="replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        inner = value.get("error")
        value = value | inner if isinstance(inner, dict) else value
        text = next((value[name] for name in _REASONS if isinstance(value.get(name), str)), "")
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _LONGEST_REASON else f"{first[:_LONGEST_REASON]}…"


class BoundedMessage:
    """Counts what was read of one message: a body, or the event of a stream that was begun last."""

    def __init__(self, is_event: bool) -> None:
        self._is_event = is_event
        self._begin(b"")

    def _begin(self, tail: bytes) -> None:
        self._pieces = [tail]
        self._size = self._values = 0
        self._most = MOST_VALUES

    def add(self, piece: bytes) -> str:
        """Add what was read; returns why it is too much, empty if it isn't."""
        if self._is_event:
            held = self._pieces[-1][-_TAIL:]
            ends = [found.end() for found in _EVENT_END.finditer(held + piece)]
            if ends:
                piece = (held + piece)[ends[-1] :]
                self._begin(b"")
        self._pieces.append(piece)
        self._size += len(piece)
        self._values += piece.count(b"{") + piece.count(b"[")
        if self._size > MOST_BYTES:
            return TOO_LONG
        if self._values <= self._most:
            return ""
        self._most *= 2  # so that strings, which may have brackets too, are looked for only a few times
        return find_excess(b"".join(self._pieces).decode("latin-1"))
