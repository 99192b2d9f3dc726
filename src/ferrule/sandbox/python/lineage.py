"""What a session and its twins have in common: one pid namespace, its keeper, and who may fork. On the background loop.

The kernel holds up every fork inside and asks here; one that this side hasn't begun is refused.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from ferrule.sandbox.linux import notify
from ferrule.sandbox.python.process import Child
from ferrule.sandbox.python.wire import TWIN_DESCRIPTORS


class Lineage:
    """The processes that come from one session's first. Ends with the last of the sessions that use it."""

    def __init__(self, child: Child, leash: socket.socket | None) -> None:
        """`leash` is where the listener comes; without one, nothing in here ever forks."""
        self.child = child
        self._leash = leash
        self._listener: int | None = None
        self._loop = asyncio.get_running_loop()
        self._wanted: Sequence[int] | None = None
        self._users = 1
        self._forking = asyncio.Lock()

    @property
    def may_fork(self) -> bool:
        """Can this lineage's sessions be forked and rolled back?"""
        return self._leash is not None

    async def confined(self) -> int:
        """Wait for the first process to be contained; its pid. See `Child.confined`."""
        pid = await self.child.confined()
        if self._leash is not None:
            _, descriptors, _, _ = socket.recv_fds(self._leash, 1, 1, socket.MSG_CMSG_CLOEXEC)
            self._listener = descriptors[0]
            self._loop.add_reader(self._listener, self._answer)
            # When nobody is left who could ask, the listener is ready for ever.
            self.child.ended.add_done_callback(lambda _: self._listen_no_more())
        return pid

    @asynccontextmanager
    async def one_fork(self, descriptors: Sequence[int]) -> AsyncIterator[None]:
        """Within this, one fork is wanted; `descriptors` are put where a twin looks for them."""
        async with self._forking:
            self._wanted = descriptors
            try:
                yield
            finally:
                self._wanted = None

    def join(self) -> None:
        """One session more."""
        self._users += 1

    def leave(self) -> None:
        """One session less; the last one ends everything."""
        self._users -= 1
        if self._users:
            return
        self._listen_no_more()
        if self._leash is not None:
            self._leash.close()
        self.child.close()

    def _listen_no_more(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = None

    def _answer(self) -> None:
        listener = self._listener
        asked = notify.received(listener) if listener is not None else None
        if listener is None or asked is None:
            return
        wanted, self._wanted = self._wanted, None
        if wanted is None:
            notify.refuse(listener, asked, errno.EPERM)
            return
        # The one that asks may die at any moment.
        with suppress(OSError):
            for descriptor, place in zip(wanted, TWIN_DESCRIPTORS, strict=False):
                notify.add_descriptor(listener, asked, descriptor, place)
            notify.allow(listener, asked)
