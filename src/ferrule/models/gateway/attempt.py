"""One attempt at a request: its time limits, what it opened, and how it ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar

from ferrule.errors import choose_advice
from ferrule.models.gateway.retries import RequestFailure
from ferrule.models.gateway.settings import Timeouts

Chunk = TypeVar("Chunk")
logger = logging.getLogger(__name__)

_GRACE = 0.1
"""Seconds. A timer that fires later than this was delayed by the event loop (a breakpoint, a function that blocked, a
suspended laptop): data that arrived in the meantime gets as long to be read before the wait counts as silence."""


class SilenceError(Exception):
    """A stage of a request took longer than its limit."""


class Watchdog:
    """Cancels the task that waits longer than the limit; `get_timeout_reason` then says what was missing.

    `asyncio.timeout` around each chunk costs several times as much as the chunk. Here one timer serves a whole stream:
    a wait only records when it began, and the timer, when it fires, checks that and rearms itself.
    """

    __slots__ = (
        "_cancelled_before",
        "_had_grace",
        "_loop",
        "_setting",
        "_since",
        "_stage",
        "_task",
        "_timer",
        "expired",
        "is_first",
        "limit",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._since: float | None = None
        self.limit = 0.0
        self._stage = self._setting = ""
        self._cancelled_before = 0
        self._had_grace = False
        self.expired = False
        self.is_first = True

    def begin_stage(self, stage: str, setting: str, limit: float) -> None:
        """Start waiting in a new stage. `stage` says what is missing, `setting` names its limit, in seconds."""
        self.set_stage(stage, setting, limit)
        self.begin_wait()

    def set_stage(self, stage: str, setting: str, limit: float) -> None:
        """Apply another limit to the waits from here on; none has begun yet."""
        self._stage = stage
        self._setting = setting
        self.limit = limit
        self._had_grace = False
        # The timer may be set for later than the end of a shorter limit.
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(limit, self._check)

    def begin_wait(self) -> None:
        """Start another wait in the same stage, possibly in another task than the last one."""
        self._task = task = asyncio.current_task(self._loop)
        self._cancelled_before = task.cancelling() if task else 0
        self._since = self._loop.time()

    def end_wait(self) -> bool:
        """End the wait; True as long as `is_first` is. Raises `SilenceError` if the cancellation was swallowed."""
        self._since = None
        if self.expired:
            raise SilenceError
        return self.is_first

    def stop(self) -> None:
        """Stop watching."""
        self._since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        now = self._loop.time()
        rest = self.limit if self._since is None else self._since + self.limit - now
        if rest > 0:
            # A chunk has arrived since, or the consumer is handling one: its own slowness doesn't count as silence.
            self._timer = self._loop.call_later(rest, self._check)
            self._had_grace = False
            return
        if self._timer is not None and now - self._timer.when() > _GRACE and not self._had_grace:
            # The event loop was blocked, and data that arrived is still to be read.
            self._had_grace = True
            self._timer = self._loop.call_later(_GRACE, self._check)
            return
        self._timer = None
        if self._task is not None:
            self.expired = True
            self._task.cancel()

    def get_timeout_reason(self, error: BaseException) -> str | None:
        """What was missing when the limit passed; None where `error` has another cause."""
        if not self.expired or self._task is None:
            return None
        self.expired = False
        others = self._task.uncancel() > self._cancelled_before
        if others and not isinstance(error, SilenceError):
            # The task was cancelled from outside as well, and that takes precedence.
            return None
        setting = choose_advice(f" (`timeouts.{self._setting}` of ferrule.models.gateway.configure)", "")
        return f"{self._stage} within {self.limit:g} s{setting}"


class EndpointAttempt:
    """One attempt at a request. Times are those of its event loop, in seconds."""

    __slots__ = (
        "_first_started",
        "_opened",
        "epoch",
        "has_passed_on",
        "is_probe",
        "is_settled",
        "loop",
        "number",
        "started",
        "watch",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, number: int = 1, first_started: float | None = None) -> None:
        self.loop = loop
        self.number = number
        self._first_started = first_started
        self.started = 0.0
        self.is_probe = False
        self.epoch = 0
        self.has_passed_on = False
        self.is_settled = False
        self.watch = Watchdog(loop)
        self._opened: list[object] = []

    @property
    def first_started(self) -> float:
        """When the first attempt at the same request was sent."""
        return self.started if self._first_started is None else self._first_started

    def make_next(self) -> EndpointAttempt:
        """The next attempt at the same request."""
        return EndpointAttempt(self.loop, self.number + 1, self.first_started)

    def start(self, is_probe: bool, epoch: int) -> None:
        """Note that it is sent now, in which epoch of the limit, and whether it probes an open circuit breaker."""
        self.started = self.loop.time()
        self.is_probe = is_probe
        self.epoch = epoch

    async def open(
        self, start: Callable[[], Awaitable[AsyncIterable[Chunk]]], timeouts: Timeouts
    ) -> AsyncIterator[Chunk]:
        """Send the request. Returns an iterator of the chunks, whose waits are watched from here on."""
        self.watch.begin_stage("no answer", "connect", timeouts.connect)
        chunks = await start()
        self._opened.append(chunks)
        # The stream and its iterator may be two objects, each of which may hold the connection.
        iterator = aiter(chunks)
        if iterator is not chunks:
            self._opened.append(iterator)
        self.watch.end_wait()
        self.watch.begin_stage("no first chunk", "first", timeouts.first)
        return iterator

    def record_first_chunk(self, timeouts: Timeouts) -> float:
        """Seconds from sending the attempt to its first chunk, which has just come."""
        self.has_passed_on = True
        self.watch.is_first = False
        self.watch_silence(timeouts)
        return self.loop.time() - self.started

    def watch_silence(self, timeouts: Timeouts) -> None:
        """Limit the time between two chunks from here on."""
        self.watch.set_stage("nothing more", "silence", timeouts.silence)

    def explain(
        self, error: BaseException, failure_of: Callable[[Exception], RequestFailure | None], name: str
    ) -> RequestFailure | None:
        """What an exception means; None if it doesn't come from the provider. `name` is used in timeout messages."""
        late = self.watch.get_timeout_reason(error)
        if late is not None:
            return RequestFailure("failed", f"{name}: {late}")
        return failure_of(error) if isinstance(error, Exception) else None

    async def close(self) -> None:
        """Close what was opened: the iterator first, then the stream, even if closing the first is cancelled."""
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
        # Whatever the error: the request is over, and its own outcome counts.
        logger.debug("closing a provider's stream failed", exc_info=True)
