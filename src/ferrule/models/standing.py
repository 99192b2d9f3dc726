"""How things stand with one provider's address, as all requests to it have found: counted, and concluded from.

Requests of several event loops, in several threads, share it, so each step is taken under its lock. It sends nothing
and waits for nothing but a place.
"""

from __future__ import annotations

import logging
from threading import RLock

from ferrule.errors import Overloaded, ProviderError
from ferrule.models.attempt import Attempt
from ferrule.models.breaker import Breaker
from ferrule.models.failure import Failure
from ferrule.models.gateway_report import GatewayReport, Tally
from ferrule.models.gateway_settings import GatewaySettings
from ferrule.models.limiting import AdaptiveLimit, Places, Rate

logger = logging.getLogger(__name__)


class Standing:
    """What is known of one address."""

    def __init__(self, name: str, settings: GatewaySettings) -> None:
        self.name = name
        self._lock = RLock()
        self._settings = settings
        self._limit = AdaptiveLimit(settings.concurrency)
        self._places = Places(self._limit, self._lock)
        self._rate = Rate()
        self._breaker = Breaker(settings.breaker_failures, settings.breaker_window, settings.breaker_open)
        self._paused_until = float("-inf")
        self._last_failure = ""
        self._tally = Tally()

    @property
    def settings(self) -> GatewaySettings:
        """What holds from the next step on."""
        return self._settings

    @settings.setter
    def settings(self, settings: GatewaySettings) -> None:
        with self._lock:
            self._settings = settings
            self._limit.bound(settings.concurrency)
            self._breaker.failures = settings.breaker_failures
            self._breaker.window = settings.breaker_window
            self._breaker.open_for = settings.breaker_open
        self._places.hand_out()

    async def take_place(self, attempt: Attempt) -> None:
        """Wait for a place. Raises `Overloaded` where too many wait, `ProviderError` where there is no use in it."""
        self.check(attempt)
        try:
            await self._places.take(self._settings.waiting, attempt.number > 1, self.name)
        except Overloaded:
            with self._lock:
                self._tally.not_sent += 1
            raise

    def free_place(self) -> None:
        """Give a place back."""
        self._places.free()

    def check(self, attempt: Attempt) -> None:
        """Raise `ProviderError` where the breaker is open, or the provider asked for a pause that is too long."""
        with self._lock:
            self._refuse_while_open(attempt.loop.time())
            rest = self._paused_until - attempt.loop.time()
            if rest <= self._settings.total_time:
                return
            self._tally.not_sent += 1
        raise ProviderError(
            f"{self.name}: the provider asked for a pause of which {rest:.0f} s are left, and a request may take "
            f"{self._settings.total_time:g} s (`total_time`); its words: {self._last_failure}",
            429,
        )

    def _refuse_while_open(self, now: float) -> None:
        since = self._breaker.since
        if since is None or self._breaker.state(now) != "open":
            return
        self._tally.not_sent += 1
        rest = self._breaker.opens_in(now)
        then = f"a request is let through in {rest:.0f} s" if rest else "a request is on its way to try it"
        raise ProviderError(
            f"{self.name}: the circuit breaker is open since {now - since:.0f} s, because it failed again and again; "
            f"{then}. The last failure: {self._last_failure}"
        )

    def slot(self, attempt: Attempt) -> float:
        """When an attempt may be sent by the rate; the slot is then taken."""
        with self._lock:
            return self._rate.reserve(attempt.loop.time(), self._settings.requests_per_minute)

    def wait(self, attempt: Attempt, slot: float) -> float:
        """Seconds until the attempt may be sent; a pause that is asked for meanwhile makes it longer."""
        with self._lock:
            return max(slot, self._paused_until) - attempt.loop.time()

    def sends(self, attempt: Attempt) -> None:
        """An attempt is sent now. Raises `ProviderError` where the breaker is open."""
        now = attempt.loop.time()
        with self._lock:
            self._refuse_while_open(now)
            attempt.enter(self._breaker.admit(now), self._limit.epoch)
            self._tally.attempts += 1
            if attempt.number == 1:
                self._tally.requests += 1

    def heard_first(self, attempt: Attempt, seconds: float) -> None:
        """An attempt's first chunk came after so many seconds."""
        with self._lock:
            self._tally.first_chunk.add(seconds)
            self._breaker.succeeded(attempt.is_probe)
        # It has decided; what becomes of the rest of its answer says nothing of what was found since.
        attempt.is_probe = False

    def ended(self, attempt: Attempt) -> None:
        """An attempt's answer came whole."""
        attempt.is_settled = True
        with self._lock:
            self._tally.finished += 1
            self._tally.last_chunk.add(attempt.loop.time() - attempt.started)
            self._limit.succeeded()
            self._breaker.succeeded(attempt.is_probe)

    def failed(self, attempt: Attempt, failure: Failure, pause: float) -> None:
        """An attempt failed, and its provider asked for a pause of so many seconds (0 for none)."""
        attempt.is_settled = True
        now = attempt.loop.time()
        with self._lock:
            self._last_failure = failure.message
            self._tally.failures["broken" if attempt.passed_on else failure.kind] += 1
            self._paused_until = max(self._paused_until, now + pause)
            opened = self._conclude(attempt, failure, now)
        if opened:
            logger.warning("%s: nothing is sent for %g s: %s", self.name, self._breaker.open_for, failure.message)

    def _conclude(self, attempt: Attempt, failure: Failure, now: float) -> bool:
        if failure.kind in ("refused", "bad"):
            # It answers, so it is there.
            self._breaker.succeeded(attempt.is_probe)
            return False
        if failure.kind == "stalled":
            # That says nothing of the provider, and another attempt may decide.
            self._breaker.left(attempt.is_probe)
            return False
        if failure.kind == "overloaded":
            self._limit.overloaded(attempt.epoch)
            # Having too much to do is what the limit and the pause are for; but a probe that fails has failed.
            if not attempt.is_probe:
                return False
        return self._breaker.failed(now, attempt.is_probe)

    def left(self, attempt: Attempt) -> None:
        """An attempt is over, and gives its place back. One that isn't settled was given up by who asked for it."""
        if not attempt.is_settled:
            with self._lock:
                self._tally.given_up += 1
                self._breaker.left(attempt.is_probe)
        attempt.leave()
        self._places.free()

    def report(self, now: float) -> GatewayReport:
        """Everything that is counted, at this time."""
        with self._lock:
            tally = self._tally
            return GatewayReport(
                name=self.name,
                requests=tally.requests,
                attempts=tally.attempts,
                retries=tally.attempts - tally.requests,
                finished=tally.finished,
                failures=dict(tally.failures),
                given_up=tally.given_up,
                not_sent=tally.not_sent,
                running=self._places.running,
                waiting=self._places.waiting,
                concurrency=self._limit.value,
                breaker=self._breaker.state(now),
                paused=max(0.0, self._paused_until - now),
                first_chunk=tally.first_chunk.summary(),
                last_chunk=tally.last_chunk.summary(),
            )
