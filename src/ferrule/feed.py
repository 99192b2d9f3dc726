"""A bounded way for events from a task, and from threads, to whoever watches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

from ferrule.events import ToolProgress

Item = TypeVar("Item")


class Feed(Generic[Item]):
    """Events in order. `put` waits while `limit` of them are unread; progress of one call replaces what is unread."""

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._waiting: deque[Item] = deque()
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._loop = asyncio.get_running_loop()
        self._error: BaseException | None = None
        self._is_over = False

    async def put(self, item: Item) -> None:
        """Add an event; waits for room."""
        await self._has_room.wait()
        self.add(item)

    def add(self, item: Item) -> None:
        """Add an event at once, over the limit if need be. In the event loop's thread only."""
        self._waiting.append(item)
        if len(self._waiting) >= self._limit:
            self._has_room.clear()
        self._changed.set()

    def put_soon(self, item: Item) -> None:
        """Add progress from any thread, never waiting."""
        self._loop.call_soon_threadsafe(self._coalesce, item)

    def fail(self, error: BaseException) -> None:
        """Raise `error` to whoever watches, after the events that came before."""
        self._error = error

    def end(self) -> None:
        """No more events come."""
        self._is_over = True
        self._changed.set()

    async def events(self) -> AsyncIterator[Item]:
        """The events as they come, until the end."""
        while True:
            while self._waiting:
                item = self._waiting.popleft()
                self._has_room.set()
                yield item
            if self._is_over:
                if self._error is not None:
                    raise self._error
                return
            self._changed.clear()
            await self._changed.wait()

    def _coalesce(self, item: Item) -> None:
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, ToolProgress) and isinstance(item, ToolProgress) and last.call_id == item.call_id:
            self._waiting[-1] = item
        elif not self._is_over:
            self.add(item)
