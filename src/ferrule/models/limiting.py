"""Who may send a request now: an adaptive limit, a fair and bounded queue for its places, and a rate."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from threading import RLock

from ferrule.errors import Overloaded


class AdaptiveLimit:
    """How many requests may run: halved when the provider is overloaded, one more after a window of successes.

    (Additive increase, multiplicative decrease: Chiu and Jain, 1989.) A window is as many successes as the limit.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.value = most
        self.epoch = 0
        """How often it was halved. A request keeps the epoch in which it began."""
        self._successes = 0

    def succeeded(self) -> None:
        """A request went well."""
        self._successes += 1
        if self._successes >= self.value:
            self._successes = 0
            self.value = min(self.most, self.value + 1)

    def overloaded(self, epoch: int) -> None:
        """A request of that epoch was turned away. A whole crowd that was sent at once halves the limit once."""
        if epoch == self.epoch:
            self.epoch += 1
            self._successes = 0
            self.value = max(1, self.value // 2)

    def bound(self, most: int) -> None:
        """Set another upper limit."""
        # A limit that was never halved is not an estimate of anything, so it follows.
        self.value = most if self.epoch == 0 else min(self.value, most)
        self.most = most


class Rate:
    """Spaces requests evenly."""

    def __init__(self) -> None:
        self._next = 0.0

    def reserve(self, now: float, per_minute: float | None) -> float:
        """Take the next free moment and say what time it is."""
        if per_minute is None:
            return now
        moment = max(now, self._next)
        self._next = moment + 60 / per_minute
        return moment


@dataclass(slots=True, eq=False)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    woken: asyncio.Future[None]
    has_place: bool = False


class Places:
    """As many places as the limit has at the moment; who finds none waits in line.

    Requests may come from several event loops in several threads: all of them share the places. `lock` is the
    owner's, which guards the limit as well; reentrant, because what waited on a loop that is gone is cleared away by
    the garbage collector, at any moment and in any thread.
    """

    def __init__(self, limit: AdaptiveLimit, lock: RLock) -> None:
        self._limit = limit
        self._lock = lock
        self.running = 0
        # Ordered sets. Those that had a place before go first: they came before all others.
        self._returning: OrderedDict[_Waiter, None] = OrderedDict()
        self._new: OrderedDict[_Waiter, None] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._returning) + len(self._new)

    async def take(self, most_waiting: int, returning: bool, name: str) -> None:
        """Wait for a place. Raises `Overloaded` where too many wait, unless this one had a place before."""
        with self._lock:
            line = self._returning if returning else self._new
            if self.running < self._limit.value and not line and not self._returning:
                self.running += 1
                return
            if not returning and len(self._new) >= most_waiting:
                raise Overloaded(
                    f"{name}: {self.running} requests run (at most {self._limit.value} at the moment) and "
                    f"{self.waiting} wait (at most {most_waiting}); send fewer at once, or set `waiting` higher "
                    "by ferrule.models.gateway.configure"
                )
            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future())
            line[waiter] = None
        try:
            await waiter.woken
        except BaseException:
            with self._lock:
                if waiter.has_place:
                    self.running -= 1
                    self._hand_out()
                else:
                    line.pop(waiter, None)
            raise

    def free(self) -> None:
        """Give a place back."""
        with self._lock:
            self.running -= 1
            self._hand_out()

    def hand_out(self) -> None:
        """Let in who waits, after the limit has grown."""
        with self._lock:
            self._hand_out()

    def _hand_out(self) -> None:
        while self.running < self._limit.value and (line := self._returning or self._new):
            waiter, _ = line.popitem(last=False)
            waiter.has_place = _wake(waiter)
            self.running += waiter.has_place


def _wake(waiter: _Waiter) -> bool:
    """Wake who waits; False where its event loop is gone, and it with it."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if waiter.loop is here:
        _resolve(waiter.woken)
        return True
    try:
        waiter.loop.call_soon_threadsafe(_resolve, waiter.woken)
    except RuntimeError:
        return False
    return True


def _resolve(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
