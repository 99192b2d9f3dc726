"""One attempt at a request: what of it must be closed, and what became of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import replace
from inspect import isawaitable
from typing import TypeVar

from ferrule.models.failure import Failure
from ferrule.models.gateway_settings import Timeouts
from ferrule.models.stalls import stalls_of
from ferrule.models.watchdog import Watchdog

Chunk = TypeVar("Chunk")
logger = logging.getLogger(__name__)


class Attempt:
    """One attempt. Times are those of its event loop, in seconds."""

    __slots__ = (
        "_first_began",
        "_lost_before",
        "_opened",
        "_stalls",
        "epoch",
        "is_probe",
        "is_settled",
        "loop",
        "number",
        "passed_on",
        "started",
        "watch",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int = 1, began: float | None = None) -> None:
        self.loop = loop
        self.number = number
        self._first_began = began
        self.started = 0.0
        self.is_probe = False
        self.epoch = 0
        self.passed_on = False
        self.is_settled = False
        self.watch = Watchdog(loop)
        self._stalls = stalls_of(loop)
        self._lost_before = 0.0
        self._opened: list[object] = []

    @property
    def began(self) -> float:
        """When the first attempt at the same request was sent."""
        return self.started if self._first_began is None else self._first_began

    def next(self) -> Attempt:
        """Another attempt at the same request."""
        return Attempt(self.loop, self.number + 1, self.began)

    def enter(self, is_probe: bool, epoch: int) -> None:
        """It is sent now; `leave` must follow."""
        self._lost_before = self._stalls.follow()
        self.started = self.loop.time()
        self.is_probe = is_probe
        self.epoch = epoch

    async def open(
        self, start: Callable[[], Awaitable[AsyncIterable[Chunk]]], timeouts: Timeouts
    ) -> AsyncIterator[Chunk]:
        """Send it; an iterator of the chunks, whose waits are watched from here on."""
        self.watch.begin("no answer", "connect", timeouts.connect)
        chunks = await start()
        self._opened.append(chunks)
        # An SDK's stream and its iterator may be two things, and each may hold the connection.
        iterator = aiter(chunks)
        if iterator is not chunks:
            self._opened.append(iterator)
        self.watch.heard()
        self.watch.begin("no first chunk", "first", timeouts.first)
        return iterator

    def hear(self, timeouts: Timeouts) -> float:
        """The first chunk is there: seconds since it was sent."""
        self.passed_on = True
        self.watch.is_first = False
        self.watch.follow("nothing more", "silence", timeouts.silence)
        return self.loop.time() - self.started

    def failure(
        self, error: BaseException, failure_of: Callable[[Exception], Failure | None], name: str
    ) -> Failure | None:
        """What an exception means; None where it is not the provider's. `name` is whose silence it may be."""
        late = self.watch.caught(error)
        if late is not None:
            failure: Failure | None = Failure("failed", f"{name}: {late}", timed_out=True)
        else:
            failure = failure_of(error) if isinstance(error, Exception) else None
        return failure if failure is None or not failure.timed_out else self._blamed(failure)

    def _blamed(self, failure: Failure) -> Failure:
        """Whose failure it is that a time limit has passed: this process's, where it looked away for half of it."""
        waited = min(self.loop.time() - self.started, self.watch.limit)
        lost = self._stalls.seconds - self._lost_before
        if lost < waited / 2:
            return failure
        why = f"this process was busy: its event loop stood still for {lost:.1f} of {waited:.1f} s"
        return replace(failure, kind="stalled", message=f"{failure.message} ({why})")

    def leave(self) -> None:
        """It is over."""
        self._stalls.leave()

    async def close(self) -> None:
        """Close what was opened: the iterator first, then the stream, also where closing the first is cancelled."""
        self.watch.stop()
        try:
            while self._opened:
                await _close(self._opened.pop())
        finally:
            if self._opened:
                await self.close()


async def _close(opened: object) -> None:
    close = getattr(opened, "aclose", None) or getattr(opened, "close", None)
    if close is None:
        return
    try:
        closing = close()
        if isawaitable(closing):
            await closing
    except Exception:
        # Whatever it is: the request is over, and its own outcome is what counts.
        logger.debug("closing a provider's stream failed", exc_info=True)
