"""The clients of an SDK, one for each event loop: a connection that one of them opened can't be used by another.

A client is closed with its loop, if not before. Few will close a model that is used in one line, and a socket that
outlives its loop can't be closed any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

Client = TypeVar("Client")


class LoopClients(Generic[Client]):
    """Makes a client where a loop has none yet; `close` frees what it holds."""

    def __init__(self, make: Callable[[], Client], close: Callable[[Client], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _Open[Client]] = WeakKeyDictionary()

    async def get(self) -> Client:
        """The client of the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            client = self._make()
            found = self._clients[loop] = _Open(client, _open_while_the_loop_runs(client, self._close))
            await anext(found.life)
        return found.client

    async def aclose(self) -> None:
        """Close the client of this event loop."""
        found = self._clients.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.life.aclose()


@dataclass(frozen=True, slots=True)
class _Open(Generic[Client]):
    """A client, and what closes it."""

    client: Client
    life: AsyncGenerator[None, None]


async def _open_while_the_loop_runs(
    client: Client, close: Callable[[Client], Awaitable[None]]
) -> AsyncGenerator[None, None]:
    """An event loop that is shut down closes the generators that wait in it, and so this client as well."""
    try:
        yield
    finally:
        await close(client)
