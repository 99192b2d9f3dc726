"""Pools of zygotes with mounted files: one pool for each set of files, since a zygote's view never changes.

On the background loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.containment import RunLimits
from ferrule.sandbox.mounted_files import MountedFile
from ferrule.sandbox.python.parent.zygote_pool import ZygotePool, ZygoteSettings

_MAX_IDLE: Final = 2
"""Unused pools that are kept: the next run often has the same files."""

Files = tuple[MountedFile, ...]


class MountedPools:
    """A sandbox's pools with mounted files, besides its pool without any; recently used ones are kept."""

    def __init__(self, settings: ZygoteSettings, usual: RunLimits) -> None:
        self._settings = settings
        self._usual = usual
        self._pools: OrderedDict[Files, ZygotePool] = OrderedDict()
        self._users: dict[Files, int] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @contextmanager
    def use(self, files: Files) -> Iterator[ZygotePool]:
        """Yield the pool for these files, which stays open while it is in use."""
        pool = self._acquire(files)
        try:
            yield pool
        finally:
            self._release(files)

    def _acquire(self, files: Files) -> ZygotePool:
        if self._is_closed:
            raise SandboxUnavailable("this sandbox is closed: make a new one")
        pool = self._pools.get(files)
        if pool is None:
            pool = self._pools[files] = ZygotePool(replace(self._settings, files=files), self._usual)
        self._pools.move_to_end(files)
        self._users[files] = self._users.get(files, 0) + 1
        return pool

    def _release(self, files: Files) -> None:
        """Remove a user, and close unused pools except the most recent ones."""
        self._users[files] -= 1
        idle = [each for each in self._pools if not self._users[each]]
        for each in idle[: max(0, len(idle) - _MAX_IDLE)]:
            del self._users[each]
            task = asyncio.get_running_loop().create_task(self._pools.pop(each).aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Close all of them. Can be called again."""
        self._is_closed = True
        for pool in self._pools.values():
            await pool.aclose()
        await asyncio.gather(*self._closing)
