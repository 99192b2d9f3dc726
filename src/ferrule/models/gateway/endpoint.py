"""The shared state of one provider's address: slots, rate, pauses, circuit breaker and counters.

Requests of several event loops, in several threads, share it, so each step holds its lock. It sends nothing and waits
only for slots. Its circuit breaker is open for a while after a provider kept failing (Nygard, "Release It!").
"""

from __future__ import annotations

import logging
from collections import deque
from threading import RLock
from typing import Literal

from ferrule.errors import Overloaded, ProviderError
from ferrule.models.gateway.attempt import EndpointAttempt
from ferrule.models.gateway.concurrency import AdaptiveLimit, RequestRate, RequestSlots
from ferrule.models.gateway.report import GatewayReport, RequestCounters
from ferrule.models.gateway.retries import RequestFailure
from ferrule.models.gateway.settings import GatewaySettings


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


logger = logging.getLogger(__name__)


class EndpointState:
    """What all requests to one address have in common."""

    def __init__(self, name: str, settings: GatewaySettings) -> None:
        self.name = name
        self._lock = RLock()
        self._settings = settings
        self._limit = AdaptiveLimit(settings.concurrency)
        self._slots = RequestSlots(self._limit, self._lock)
        self._rate = RequestRate()
        self._breaker = CircuitBreaker(settings.breaker_failures, settings.breaker_window, settings.breaker_open)
        self._paused_until = float("-inf")
        self._last_failure = ""
        self._counters = RequestCounters()

    @property
    def settings(self) -> GatewaySettings:
        """The settings from the next step on."""
        return self._settings

    @settings.setter
    def settings(self, settings: GatewaySettings) -> None:
        with self._lock:
            self._settings = settings
            self._limit.set_maximum(settings.concurrency)
            self._breaker.failures = settings.breaker_failures
            self._breaker.window = settings.breaker_window
            self._breaker.open_for = settings.breaker_open
        self._slots.admit_waiting()

    async def acquire_slot(self, attempt: EndpointAttempt) -> None:
        """Wait for a slot. Raises `Overloaded` if too many wait, `ProviderError` if a pause is too long."""
        self.refuse_if_unavailable(attempt)
        try:
            await self._slots.acquire(self._settings.waiting, attempt.number > 1, self.name)
        except Overloaded:
            with self._lock:
                self._counters.not_sent += 1
            raise

    def release_slot(self) -> None:
        """Give a slot back."""
        self._slots.release()

    def refuse_if_unavailable(self, attempt: EndpointAttempt) -> None:
        """Raise `ProviderError` if the breaker is open, or the provider asked for a pause that is too long."""
        with self._lock:
            self._refuse_while_open(attempt.loop.time())
            rest = self._paused_until - attempt.loop.time()
            if rest <= self._settings.total_time:
                return
            self._counters.not_sent += 1
        raise ProviderError(
            f"{self.name}: the provider asked for a pause of which {rest:.0f} s are left, and a request may take "
            f"{self._settings.total_time:g} s (`total_time`). The last failure: {self._last_failure}",
            429,
        )

    def _refuse_while_open(self, now: float) -> None:
        since = self._breaker.open_since
        if since is None or self._breaker.get_state(now) != "open":
            return
        self._counters.not_sent += 1
        rest = self._breaker.get_seconds_until_probe(now)
        then = f"one request is let through in {rest:.0f} s" if rest else "one request is probing it now"
        raise ProviderError(
            f"{self.name}: the circuit breaker is open since {now - since:.0f} s, after repeated failures; "
            f"{then}. The last failure: {self._last_failure}"
        )

    def reserve_send_time(self, attempt: EndpointAttempt) -> float:
        """Reserve the time at which the rate allows an attempt to be sent."""
        with self._lock:
            return self._rate.reserve(attempt.loop.time(), self._settings.requests_per_minute)

    def get_seconds_until_send(self, attempt: EndpointAttempt, reserved: float) -> float:
        """Seconds until the attempt may be sent, including a pause that the provider requested in the meantime."""
        with self._lock:
            return max(reserved, self._paused_until) - attempt.loop.time()

    def record_send(self, attempt: EndpointAttempt) -> None:
        """Count an attempt that is sent now. Raises `ProviderError` if the breaker is open."""
        now = attempt.loop.time()
        with self._lock:
            self._refuse_while_open(now)
            attempt.start(self._breaker.admit(now), self._limit.epoch)
            self._counters.attempts += 1
            if attempt.number == 1:
                self._counters.requests += 1

    def record_first_chunk(self, attempt: EndpointAttempt, seconds: float) -> None:
        """Count an attempt's first chunk, which came after so many seconds."""
        with self._lock:
            self._counters.first_chunk.add(seconds)
            self._breaker.record_beginning(attempt.is_probe)
        # As a probe it has decided; the rest of its answer says nothing about later attempts.
        attempt.is_probe = False

    def record_success(self, attempt: EndpointAttempt) -> None:
        """Count an attempt with a complete answer."""
        attempt.is_settled = True
        with self._lock:
            self._counters.finished += 1
            self._counters.last_chunk.add(attempt.loop.time() - attempt.started)
            self._limit.record_success()
            self._breaker.record_success(attempt.is_probe)

    def record_failure(self, attempt: EndpointAttempt, failure: RequestFailure, pause: float) -> None:
        """Count a failed attempt; `pause` is how long its provider asked to wait, in seconds, 0 for no pause."""
        attempt.is_settled = True
        now = attempt.loop.time()
        with self._lock:
            self._last_failure = failure.message
            self._counters.failures["broken" if attempt.has_passed_on else failure.kind] += 1
            self._paused_until = max(self._paused_until, now + pause)
            opened = self._update_breaker(attempt, failure, now)
        if opened:
            logger.warning("%s: nothing is sent for %g s: %s", self.name, self._breaker.open_for, failure.message)

    def _update_breaker(self, attempt: EndpointAttempt, failure: RequestFailure, now: float) -> bool:
        if failure.kind in ("refused", "bad"):
            # It answers, so it is up.
            self._breaker.record_success(attempt.is_probe)
            return False
        if failure.kind == "overloaded":
            self._limit.record_overload(attempt.epoch)
            # Overload is handled by the limit and the pause; but a probe that fails has failed.
            if not attempt.is_probe:
                return False
        return self._breaker.record_failure(now, attempt.is_probe, attempt.has_passed_on)

    def record_close(self, attempt: EndpointAttempt) -> None:
        """Release the slot of an attempt that is over. One without an outcome was abandoned by its caller."""
        if not attempt.is_settled:
            with self._lock:
                self._counters.given_up += 1
                self._breaker.record_cancellation(attempt.is_probe)
        self._slots.release()

    def report(self, now: float) -> GatewayReport:
        """The counters and the state at this time."""
        with self._lock:
            counters = self._counters
            return GatewayReport(
                name=self.name,
                requests=counters.requests,
                attempts=counters.attempts,
                retries=counters.attempts - counters.requests,
                finished=counters.finished,
                failures=dict(counters.failures),
                given_up=counters.given_up,
                not_sent=counters.not_sent,
                running=self._slots.running,
                waiting=self._slots.waiting,
                concurrency=self._limit.value,
                breaker=self._breaker.get_state(now),
                paused=max(0.0, self._paused_until - now),
                first_chunk=counters.first_chunk.summarize(),
                last_chunk=counters.last_chunk.summarize(),
            )
