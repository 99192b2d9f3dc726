"""The HTTP client that Google's package is given, so that an answer can be closed, and read where the package drops it.

The package reads an answer by generators that hold one another: one that is left in the middle keeps its connection
until the garbage collector comes by. And of a call that Google could not read, it leaves out what was written.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Any

import httpx2

from ferrule.models.hosted import CONNECT_SECONDS

_LONGEST = 1 << 16


class Answer:
    """The answer to a request that is made in the context where `begin` was called."""

    def __init__(self) -> None:
        self._response: httpx2.Response | None = None
        self._end: deque[bytes] = deque()

    def begin(self) -> None:
        """The next answer that comes in this context is the one."""
        _EXPECTED.set(self)

    def take(self, response: httpx2.Response) -> None:
        """Here it is; it is read by the package, and its end is kept."""
        self._response = response
        read = response.aiter_bytes

        async def kept(chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
            length = 0
            async for piece in read(chunk_size):
                self._end.append(piece)
                length += len(piece)
                while length > _LONGEST and len(self._end) > 1:
                    length -= len(self._end.popleft())
                yield piece

        response.aiter_bytes = kept  # type: ignore[method-assign]

    @property
    def finish_message(self) -> str:
        """What the last chunk says about its end; empty where it says nothing."""
        for line in reversed(b"".join(self._end).decode("utf-8", "replace").splitlines()):
            if line.startswith("data: "):
                return _finish_message(line.removeprefix("data: "))
        return ""

    async def close(self) -> None:
        """Give its connection back."""
        if self._response is not None:
            await self._response.aclose()


def _finish_message(chunk: str) -> str:
    try:
        found: Any = json.loads(chunk)["candidates"][0].get("finishMessage")
    except (ValueError, LookupError, AttributeError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


_EXPECTED: ContextVar[Answer | None] = ContextVar("_EXPECTED", default=None)


class HttpClient(httpx2.AsyncClient):
    """Hands each response to the `Answer` that is expected, and limits how long a connection may take.

    The limit is set here, since the package puts one of its own in the place of the client's.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """See `httpx2.AsyncClient.send`."""
        limits = request.extensions.get("timeout", {})
        request.extensions["timeout"] = {**limits, "connect": CONNECT_SECONDS}
        response = await super().send(request, **options)
        expected = _EXPECTED.get()
        if expected is not None:
            expected.take(response)
        return response
