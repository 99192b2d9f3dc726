"""Read-write locks between the tools of one Toolset instance: read-only ones run concurrently, any other alone.

They are fair: calls get the lock in the order in which they were made. A lock works across threads and event loops,
because they may share an instance, and because an abandoned call releases its lock from its thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary


@dataclass(slots=True, eq=False)
class LockHolder:
    """A holder of a lock, or one that waits for it; `release` may be called from any thread."""

    lock: ReadWriteLock
    shared: bool
    loop: asyncio.AbstractEventLoop | None = None
    admitted: asyncio.Future[None] | None = None
    is_held: bool = field(default=False)

    def release(self) -> None:
        """Release the lock; a second time does nothing."""
        self.lock._release(self)


class ReadWriteLock:
    """A fair lock, held by several shared holders or by one exclusive one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: set[LockHolder] = set()
        # In order; any of them may withdraw. The first of a plain dict isn't found at once after others were removed.
        self._waiting: OrderedDict[LockHolder, None] = OrderedDict()

    async def acquire(self, shared: bool, seconds: float | None = None) -> LockHolder | None:
        """Wait for the lock; None after `seconds`."""
        holder = LockHolder(self, shared)
        with self._lock:
            if not self._waiting and self._has_room(holder):
                self._admit(holder)
                return holder
            holder.loop = asyncio.get_running_loop()
            holder.admitted = holder.loop.create_future()
            self._waiting[holder] = None
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
        """Take the lock from a holder, and admit those who can have it now."""
        with self._lock:
            if not holder.is_held:
                return
            holder.is_held = False
            self._holders.remove(holder)
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        admitted = []
        with self._lock:
            while self._waiting and self._has_room(holder := next(iter(self._waiting))):
                del self._waiting[holder]
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
        # Several holders are all shared.
        return not self._holders or (holder.shared and next(iter(self._holders)).shared)

    def _admit(self, holder: LockHolder) -> None:
        holder.is_held = True
        self._holders.add(holder)

    def _withdraw(self, holder: LockHolder) -> bool:
        with self._lock:
            if holder.is_held:
                return False
            del self._waiting[holder]
        self._admit_waiting()
        return True


def _settle(admitted: asyncio.Future[None]) -> None:
    if not admitted.done():
        admitted.set_result(None)


_locks: WeakKeyDictionary[Any, ReadWriteLock] = WeakKeyDictionary()
_locks_lock = threading.Lock()


def get_lock(barrier: object) -> ReadWriteLock:
    """Return the lock of a barrier; it is the same as long as the barrier lives."""
    with _locks_lock:
        lock = _locks.get(barrier)
        if lock is None:
            lock = _locks[barrier] = ReadWriteLock()
        return lock
