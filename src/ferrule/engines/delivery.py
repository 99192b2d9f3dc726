"""Delivers what the step thread samples to the waiting event loops.

A step's tokens for one event loop are delivered in a single callback, and those that a consumer has not fetched yet
form one list: a slow consumer costs memory for its tokens, and delays nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self

from ferrule.engines.protocol import Finished, Sampled
from ferrule.errors import EngineError

Item = Sampled | Finished | EngineError


class TokenChannel:
    """The tokens that arrived for one generation. Used only in the event loop's thread."""

    def __init__(self) -> None:
        self._tokens: list[Sampled] = []
        self._end: Finished | EngineError | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._is_closed = False

    @property
    def is_read(self) -> bool:
        """Whether a task is waiting for it."""
        return self._arrival is not None

    def close(self) -> None:
        """Drop the tokens, and wake the consumer, if there is one, with nothing."""
        self._is_closed = True
        self._wake()

    def put(self, item: Item) -> None:
        """Add an item and wake the consumer."""
        if isinstance(item, Sampled):
            self._tokens.append(item)
        else:
            self._end = item
        self._wake()

    async def take(self) -> list[Sampled] | Finished | None:
        """All available tokens, or the end; None once closed. Raises the error that ended the generation."""
        if not self._tokens and self._end is None:
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        if self._is_closed:
            return None
        if self._tokens:
            tokens, self._tokens = self._tokens, []
            return tokens
        assert self._end is not None
        if isinstance(self._end, EngineError):
            raise self._end
        return self._end

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


class TokenMailbox:
    """Carries tokens from the step thread to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._posted: deque[tuple[TokenChannel, Item]] = deque()
        self._is_scheduled = False

    def post(self, channel: TokenChannel, item: Item) -> None:
        """Add an item, in the step thread; `send` delivers it."""
        self._posted.append((channel, item))

    def send(self) -> bool:
        """Have the loop take the posted items; False if the loop is closed, so that no consumer is left."""
        if self.loop.is_closed():
            return False
        if self._is_scheduled:
            return True
        self._is_scheduled = True
        try:
            self.loop.call_soon_threadsafe(self._hand_out)
        except RuntimeError:  # the loop was closed just now
            return False
        return True

    def _hand_out(self) -> None:
        # First the flag, then the items: one posted in between is delivered now, and the next callback finds nothing.
        self._is_scheduled = False
        while self._posted:
            channel, item = self._posted.popleft()
            channel.put(item)


class TokenStream:
    """The `Generation` of an engine with a step thread: it starts on first read, `cancel` releases its place."""

    def __init__(self, start: Callable[[], TokenChannel], cancel: Callable[[], None]) -> None:
        self._start = start
        self._cancel = cancel
        self._channel: TokenChannel | None = None
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Sampled] | Finished:
        if self._is_over:
            raise StopAsyncIteration
        if self._channel is not None and self._channel.is_read:
            raise EngineError("this generation is already being read by another task")
        try:
            if self._channel is None:
                self._channel = self._start()
            item = await self._channel.take()
        except BaseException:
            self._end()
            raise
        if item is None:
            raise StopAsyncIteration
        if isinstance(item, Finished):
            self._is_over = True
        return item

    async def aclose(self) -> None:
        """Stop; nothing more is yielded. No effect once it has finished."""
        self._end()
        if self._channel is not None:
            self._channel.close()

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        if not self._is_over and self._channel is not None:
            self._cancel()
        self._is_over = True
