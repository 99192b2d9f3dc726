"""Zygotes that show mounted files: one pool for each set of files, since what a zygote sees never changes.

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

_MOST_IDLE: Final = 2
"""Pools that are kept though nobody uses them: the next run often has the same files."""

Files = tuple[MountedFile, ...]


class MountedPools:
    """The pools of one sandbox beside its own, which shows no file; those used last are kept."""

    def __init__(self, settings: ZygoteSettings, usual: RunLimits) -> None:
        self._settings = settings
        self._usual = usual
        self._pools: OrderedDict[Files, ZygotePool] = OrderedDict()
        self._users: dict[Files, int] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @contextmanager
    def use(self, files: Files) -> Iterator[ZygotePool]:
        """The pool for these files, which stays for as long as somebody uses it."""
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
        """One user less; pools that nobody uses are closed, but for the last few."""
        self._users[files] -= 1
        idle = [each for each in self._pools if not self._users[each]]
        for each in idle[: max(0, len(idle) - _MOST_IDLE)]:
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
