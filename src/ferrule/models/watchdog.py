"""A time limit on each wait of a stream, for less than a timer a wait.

`asyncio.timeout` round each chunk costs several times what the chunk does. Here one timer serves a whole
stream: a wait only notes when it began, and the timer, when it goes off, looks at that and sets itself again.
"""

from __future__ import annotations

import asyncio

_LATE = 0.1
"""Seconds by which a timer is late where the loop stood still, and in which what came meanwhile can be read."""


class SilenceError(Exception):
    """A stage took longer than its limit."""


class Watchdog:
    """Cancels the task that waits for longer than the limit; whoever catches that asks `caught` what it was."""

    __slots__ = (
        "_cancelled_before",
        "_is_spared",
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
        self._is_spared = False
        self.expired = False
        self.is_first = True

    def begin(self, stage: str, setting: str, limit: float) -> None:
        """A wait begins, of another kind than the last one. `stage` says what is missing, `setting` names the limit."""
        self.follow(stage, setting, limit)
        self.listen()

    def follow(self, stage: str, setting: str, limit: float) -> None:
        """The waits from here on are of another kind; none has begun yet."""
        self._stage = stage
        self._setting = setting
        self.limit = limit
        self._is_spared = False
        # The timer may be set for later than a shorter limit ends.
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(limit, self._look)

    def listen(self) -> None:
        """Another wait of the same kind begins. It may be in another task than the last one was."""
        self._task = task = asyncio.current_task(self._loop)
        self._cancelled_before = task.cancelling() if task else 0
        self._since = self._loop.time()

    def heard(self) -> bool:
        """The wait is over; True as long as `is_first` is. Raises `SilenceError` where a cancellation was ignored."""
        self._since = None
        if self.expired:
            raise SilenceError
        return self.is_first

    def stop(self) -> None:
        """Nothing is waited for any more."""
        self._since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now = self._loop.time()
        rest = self.limit if self._since is None else self._since + self.limit - now
        if rest > 0:
            # Heard from since, or the consumer has the chunk: its own slowness is no silence.
            self._timer = self._loop.call_later(rest, self._look)
            self._is_spared = False
            return
        if self._timer is not None and now - self._timer.when() > _LATE and not self._is_spared:
            # The loop was kept from its work, and what came meanwhile is still to be read.
            self._is_spared = True
            self._timer = self._loop.call_later(_LATE, self._look)
            return
        self._timer = None
        if self._task is not None:
            self.expired = True
            self._task.cancel()

    def caught(self, error: BaseException) -> str | None:
        """After an exception: what was not there in time. None where the limit had no part in it."""
        if not self.expired or self._task is None:
            return None
        self.expired = False
        others = self._task.uncancel() > self._cancelled_before
        if others and not isinstance(error, SilenceError):
            # Somebody else has cancelled the task as well, and that is what counts.
            return None
        return f"{self._stage} within {self.limit:g} s (`timeouts.{self._setting}`)"
