"""Which requests may be sent now: an adaptive limit, a fair and bounded queue for its slots, and a rate."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from threading import RLock

from ferrule.errors import Overloaded


class AdaptiveLimit:
    """The number of requests that may run: halved on overload, increased by one after a window of successes.

    (Additive increase, multiplicative decrease: Chiu and Jain, 1989.) A window is as many successes as the limit.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.value = maximum
        self.epoch = 0
        """How often it was halved. A request remembers the epoch in which it began."""
        self._successes = 0

    def record_success(self) -> None:
        """Count an answered request; a full window of them raises the limit by one."""
        self._successes += 1
        if self._successes >= self.value:
            self._successes = 0
            self.value = min(self.maximum, self.value + 1)

    def record_overload(self, epoch: int) -> None:
        """Halve the limit after a 429 or similar, but only once for all requests of the same epoch."""
        if epoch == self.epoch:
            self.epoch += 1
            self._successes = 0
            self.value = max(1, self.value // 2)

    def set_maximum(self, maximum: int) -> None:
        """Set the maximum of the limit."""
        # A limit that was never halved is not an estimate, so it follows the maximum.
        self.value = maximum if self.epoch == 0 else min(self.value, maximum)
        self.maximum = maximum


class RequestRate:
    """Spaces requests evenly."""

    def __init__(self) -> None:
        self._next = 0.0

    def reserve(self, now: float, per_minute: float | None) -> float:
        """Reserve the next free time to send a request; returns it on the clock of `now`, in seconds."""
        if per_minute is None:
            return now
        moment = max(now, self._next)
        self._next = moment + 60 / per_minute
        return moment


@dataclass(slots=True, eq=False)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    woken: asyncio.Future[None]
    has_slot: bool = False


class RequestSlots:
    """As many slots as the limit currently allows, and a queue for the rest.

    Requests may come from several event loops in several threads, which share the slots. `lock` is the owner's, which
    also guards the limit; it is reentrant, because a waiter whose loop is gone is removed by the garbage collector, at
    any moment and in any thread.
    """

    def __init__(self, limit: AdaptiveLimit, lock: RLock) -> None:
        self._limit = limit
        self._lock = lock
        self.running = 0
        # Ordered sets. Those that had a slot before go first: they came before all others.
        self._returning: OrderedDict[_Waiter, None] = OrderedDict()
        self._new: OrderedDict[_Waiter, None] = OrderedDict()

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._returning) + len(self._new)

    async def acquire(self, most_waiting: int, returning: bool, name: str) -> None:
        """Wait for a slot. Raises `Overloaded` if `most_waiting` wait, unless `returning`: it had one before."""
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
                if waiter.has_slot:
                    self.running -= 1
                    self._admit_waiting()
                else:
                    line.pop(waiter, None)
            raise

    def release(self) -> None:
        """Give a slot back."""
        with self._lock:
            self.running -= 1
            self._admit_waiting()

    def admit_waiting(self) -> None:
        """Admit those waiting, after the limit has grown."""
        with self._lock:
            self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self.running < self._limit.value and (line := self._returning or self._new):
            waiter, _ = line.popitem(last=False)
            waiter.has_slot = _wake(waiter)
            self.running += waiter.has_slot


def _wake(waiter: _Waiter) -> bool:
    """Wake a waiter; False if its event loop is gone, and the waiter with it."""
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
