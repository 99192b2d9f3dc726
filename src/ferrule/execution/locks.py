"""Read-write locks between the tools of one Toolset instance: several that only read run together, any other alone.

They are fair: first come, first served, so calls keep the order in which they were made. A lock works across threads
and event loops, because an instance may be shared between them, and because a call that was given up releases it from
its thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary


@dataclass(slots=True, eq=False)
class LockHolder:
    """One holder of a lock, or one that waits for it; `release` gives it back, from any thread."""

    lock: ReadWriteLock
    shared: bool
    loop: asyncio.AbstractEventLoop | None = None
    admitted: asyncio.Future[None] | None = None
    is_held: bool = field(default=False)

    def release(self) -> None:
        """Give the lock back; a second time does nothing."""
        self.lock._release(self)


class ReadWriteLock:
    """Held by several that share it, or by one that doesn't, in the order in which they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: set[LockHolder] = set()
        self._waiting: deque[LockHolder] = deque()

    async def acquire(self, shared: bool, seconds: float | None = None) -> LockHolder | None:
        """Wait for the lock; None where `seconds` pass first."""
        holder = LockHolder(self, shared)
        with self._lock:
            if not self._waiting and self._has_room(holder):
                self._admit(holder)
                return holder
            holder.loop = asyncio.get_running_loop()
            holder.admitted = holder.loop.create_future()
            self._waiting.append(holder)
        try:
            async with asyncio.timeout(seconds):
                await holder.admitted
        except TimeoutError:
            return None if self._withdraw(holder) else holder
        except asyncio.CancelledError:
            if not self._withdraw(holder):
                holder.release()
            raise
        return holder

    def _release(self, holder: LockHolder) -> None:
        """Take the lock from a holder and give it to those who can have it now."""
        with self._lock:
            if not holder.is_held:
                return
            holder.is_held = False
            self._holders.remove(holder)
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        admitted = []
        with self._lock:
            while self._waiting and self._has_room(self._waiting[0]):
                holder = self._waiting.popleft()
                self._admit(holder)
                admitted.append(holder)
        for holder in admitted:
            assert holder.loop is not None
            assert holder.admitted is not None
            try:
                holder.loop.call_soon_threadsafe(_settle, holder.admitted)
            except RuntimeError:  # its loop was closed while it waited
                holder.release()

    def _has_room(self, holder: LockHolder) -> bool:
        return not self._holders or (holder.shared and all(other.shared for other in self._holders))

    def _admit(self, holder: LockHolder) -> None:
        holder.is_held = True
        self._holders.add(holder)

    def _withdraw(self, holder: LockHolder) -> bool:
        with self._lock:
            if holder.is_held:
                return False
            self._waiting.remove(holder)
        self._admit_waiting()
        return True


def _settle(admitted: asyncio.Future[None]) -> None:
    if not admitted.done():
        admitted.set_result(None)


_locks: WeakKeyDictionary[Any, ReadWriteLock] = WeakKeyDictionary()
_locks_lock = threading.Lock()


def get_lock(barrier: object) -> ReadWriteLock:
    """The one lock of a barrier, for as long as the barrier lives."""
    with _locks_lock:
        lock = _locks.get(barrier)
        if lock is None:
            lock = _locks[barrier] = ReadWriteLock()
        return lock
