"""A circuit breaker: a provider that keeps failing is sent nothing for a while (Nygard, "Release It!")."""

from __future__ import annotations

from collections import deque
from typing import Literal


class CircuitBreaker:
    """Closed, it lets requests through; open, none; half open, one at a time, whose outcome decides.

    Times are seconds on any one clock. It is not locked: its owner is.
    """

    def __init__(self, failures: int, window: float, open_for: float) -> None:
        self.failures = failures
        self.window = window
        self.open_for = open_for
        self._failed: deque[tuple[float, bool]] = deque()
        """When requests failed, and whether in the middle of an answer."""
        self._opened: float | None = None
        self._probing = False
        self.open_since: float | None = None
        """When it first opened since the last success."""

    def get_state(self, now: float) -> Literal["closed", "open", "half open"]:
        """How it treats the next request."""
        if self._opened is None:
            return "closed"
        return "open" if self._probing or self.get_seconds_until_probe(now) > 0 else "half open"

    def get_seconds_until_probe(self, now: float) -> float:
        """Seconds until a request may be tried, 0 where one may now or is already."""
        return 0.0 if self._opened is None else max(0.0, self._opened + self.open_for - now)

    def admit(self, now: float) -> bool:
        """Let a request through that the state permits; True if it is the probe, whose outcome decides."""
        self._probing = self.get_state(now) == "half open"
        return self._probing

    def record_success(self, probe: bool) -> None:
        """Close it after an answer, unless the request began before it opened and so says nothing about the time
        since."""
        if probe or self._opened is None:
            self._failed.clear()
            self._opened = self.open_since = None
            self._probing = False

    def record_beginning(self, probe: bool) -> None:
        """Note that an answer has begun, which lets a probe close it: the rest may take minutes.

        Answers that broke off stay counted until one is complete: each of them had begun too.
        """
        if probe:
            self.record_success(probe)
        elif self._opened is None:
            self._failed = deque(one for one in self._failed if one[1])

    def record_failure(self, now: float, probe: bool, broke_off: bool = False) -> bool:
        """Count a failed request; True if that opened the breaker. `broke_off`: its answer had begun."""
        if probe:
            self._probing = False
            self._opened = now
            return True
        if self._opened is not None:
            return False
        self._failed.append((now, broke_off))
        while len(self._failed) > self.failures or now - self._failed[0][0] > self.window:
            self._failed.popleft()
        if len(self._failed) < self.failures:
            return False
        self._failed.clear()
        self._opened = self.open_since = now
        return True

    def record_cancellation(self, probe: bool) -> None:
        """Let another request be the probe: this one was abandoned before its outcome was known."""
        if probe:
            self._probing = False
