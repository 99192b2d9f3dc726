"""The time that a running call has taken, which doesn't count the time in which a person is asked.

The call may ask itself (`CallScope.authorize`), or be that of a sub-agent, one of whose own calls needs approval.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from ferrule.execution.tool_output import is_in_tool

MOST_TIMEOUTS = 10
"""How many times its timeout a call may take that keeps giving signs of life."""
current_clock: ContextVar[CallClock | None] = ContextVar("current_clock", default=None)
"""The clock of the innermost running call that has a timeout."""


class CallClock:
    """A clock that can be paused. It belongs to the running event loop.

    `latest` is the `time.monotonic()` value at which the call must have ended even if a person is being asked, None for
    no limit. The calls around this one, whose clocks are paused with it, are those of `current_clock`.
    """

    def __init__(self, latest: float | None = None) -> None:
        self._latest = latest
        self._above = current_clock.get()
        self._loop = asyncio.get_running_loop()
        self._paused_seconds = 0.0
        self._paused_at = 0.0
        self._pauses = 0
        self._resumed: asyncio.Future[None] | None = None
        self._last_sign: float | None = None

    def read(self) -> float:
        """Return the time in seconds: that of `time.monotonic()`, less what was spent in pauses."""
        now = self._paused_at if self._pauses else time.monotonic()
        return now - self._paused_seconds

    def restart(self) -> None:
        """Begin the timeout of the call anew, since its tool has given a sign of life; see `wait`."""
        self._last_sign = self.read()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop this clock and those of the calls around; pauses may overlap."""
        if asyncio.get_running_loop() is not self._loop:
            yield  # a tool has started a run on another loop: what waits here could not be resumed from there
            return
        with nullcontext() if self._above is None else self._above.pause():
            self._begin_pause()
            try:
                yield
            finally:
                self._end_pause()

    def _begin_pause(self) -> None:
        if not self._pauses:
            self._paused_at = time.monotonic()
            self._resumed = self._loop.create_future()
        self._pauses += 1

    def _end_pause(self) -> None:
        self._pauses -= 1
        if not self._pauses and self._resumed is not None:
            self._paused_seconds += time.monotonic() - self._paused_at
            self._resumed.set_result(None)
            self._resumed = None

    async def wait(self, task: asyncio.Task[Any], timeout: float) -> None:
        """Wait until `task` is done, or `timeout` seconds by this clock have passed since the last `restart`.

        `MOST_TIMEOUTS` times that is the limit in all.
        """
        start = self._last_sign = self.read()
        while not task.done():
            left = None if self._latest is None else self._latest - time.monotonic()
            if self._resumed is None:
                end = min(self._last_sign + timeout, start + MOST_TIMEOUTS * timeout)
                left = end - self.read() if left is None else min(left, end - self.read())
            if left is not None and left <= 0:
                return
            awaited = {task} if self._resumed is None else {task, self._resumed}
            await asyncio.wait(awaited, timeout=left, return_when=asyncio.FIRST_COMPLETED)


@contextmanager
def pause_calls() -> Iterator[None]:
    """Leave the running calls, if any, while a person is asked: their time stands still.

    What is printed meanwhile isn't a tool's output.
    """
    clock, before = current_clock.get(), is_in_tool.set(False)
    try:
        with nullcontext() if clock is None else clock.pause():
            yield
    finally:
        is_in_tool.reset(before)
