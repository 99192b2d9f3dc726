"""What a session and its twins have in common: one pid namespace, its keeper, and who may fork. On the background loop.

The kernel holds up every fork inside and asks here; one that this side hasn't begun is refused.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from ferrule.sandbox.linux import seccomp_notify as notify
from ferrule.sandbox.python.parent.child_process import ChildProcess
from ferrule.sandbox.python.parent.process_handle import list_children, read_parent
from ferrule.sandbox.python.wire.frames import TWIN_DESCRIPTORS, WireError


class SessionLineage:
    """The processes that come from one session's first. Ends with the last of the sessions that use it."""

    def __init__(self, child: ChildProcess, leash: socket.socket | None) -> None:
        """`leash` is where the listener comes; without one, nothing in here ever forks."""
        self.child = child
        self._leash = leash
        self._listener: int | None = None
        self._loop = asyncio.get_running_loop()
        self._wanted: Sequence[int] | None = None
        self._asker = 0
        self.made: set[int] = set()
        self._users = 1
        self.when_over: Callable[[], None] = _do_nothing
        self._forking = asyncio.Lock()

    @property
    def may_fork(self) -> bool:
        """Can this lineage's sessions be forked and rolled back?"""
        return self._leash is not None

    async def wait_until_confined(self) -> int:
        """Wait for the first process to be contained; its pid. See `ChildProcess.wait_until_confined`."""
        pid = await self.child.wait_until_confined()
        if self._leash is not None:
            _, descriptors, _, _ = socket.recv_fds(self._leash, 1, 1, socket.MSG_CMSG_CLOEXEC)
            self._listener = descriptors[0]
            self._loop.add_reader(self._listener, self._answer)
            # When nobody is left who could ask, the listener is ready for ever.
            self.child.ended.add_done_callback(lambda _: self._listen_no_more())
        return pid

    def admit(self, pid: int, asker: int) -> None:
        """The process that has greeted after a fork of `asker` is taken for it. Raises `WireError` where it isn't.

        Of the forks that were allowed one is new: its father is who asked, and nobody has been it before.
        """
        if pid in self.made or read_parent(pid) != asker:
            raise WireError("a greeting from another process than the fork")
        self.made.add(pid)

    def end_strays(self, asker: int) -> None:
        """End what a process has forked that never greeted as it should."""
        for pid in set(list_children(asker)) - self.made:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    @asynccontextmanager
    async def allow_one_fork(self, descriptors: Sequence[int], asker: int) -> AsyncIterator[None]:
        """Within this, one fork is wanted; `descriptors` are put where a twin looks for them.

        `asker` is the process that is to fork: its first thread, which has its number, and no other that a run left.
        """
        async with self._forking:
            self._wanted, self._asker = descriptors, asker
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
        self.when_over()

    def _listen_no_more(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = None

    def _answer(self) -> None:
        listener = self._listener
        asked = notify.receive_call(listener) if listener is not None else None
        if listener is None or asked is None:
            return
        wanted = self._wanted
        if wanted is None or asked.pid != self._asker:
            notify.refuse(listener, asked, errno.EPERM)
            return
        self._wanted = None
        # The one that asks may die at any moment.
        with suppress(OSError):
            for descriptor, place in zip(wanted, TWIN_DESCRIPTORS, strict=False):
                notify.add_descriptor(listener, asked, descriptor, place)
            notify.allow(listener, asked)


def _do_nothing() -> None:
    """What follows the end of a lineage that nobody waits for."""
