"""What a session and its forks share: a pid namespace, its reaper, and the control of forks. On the background loop.

The kernel suspends every fork inside and asks this process, which refuses forks that it didn't request.
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
    """The processes descended from a session's first one. Ends with the last session that uses it."""

    def __init__(self, child: ChildProcess, listener_socket: socket.socket | None) -> None:
        """`listener_socket` receives the seccomp listener; without it, no process of the lineage can fork."""
        self.child = child
        self._listener_socket = listener_socket
        self._listener: int | None = None
        self._loop = asyncio.get_running_loop()
        self._pending: Sequence[int] | None = None
        self._asker = 0
        self.admitted: set[int] = set()
        self._users = 1
        self.on_end: Callable[[], None] = _do_nothing
        self._forking = asyncio.Lock()

    @property
    def may_fork(self) -> bool:
        """Can this lineage's sessions be forked and rolled back?"""
        return self._listener_socket is not None

    async def wait_until_confined(self) -> int:
        """Wait until the first process is contained and return its pid. See `ChildProcess.wait_until_confined`."""
        pid = await self.child.wait_until_confined()
        if self._listener_socket is not None:
            _, descriptors, _, _ = socket.recv_fds(self._listener_socket, 1, 1, socket.MSG_CMSG_CLOEXEC)
            self._listener = descriptors[0]
            self._loop.add_reader(self._listener, self._answer)
            # Once no process is left that could fork, the listener would always be ready.
            self.child.ended.add_done_callback(lambda _: self._close_listener())
        return pid

    def admit(self, pid: int, asker: int) -> None:
        """Accept the process that greeted as the fork of `asker`. Raises `WireError` if it isn't.

        The requested fork is a child of `asker` with a pid that wasn't admitted before.
        """
        if pid in self.admitted or read_parent(pid) != asker:
            raise WireError("the greeting is not from the fork")
        self.admitted.add(pid)

    def kill_unknown_children(self, asker: int) -> None:
        """Kill children of a process that were never admitted."""
        for pid in set(list_children(asker)) - self.admitted:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    @asynccontextmanager
    async def allow_one_fork(self, descriptors: Sequence[int], asker: int) -> AsyncIterator[None]:
        """Allow one fork within this context; `descriptors` are installed in it at `TWIN_DESCRIPTORS`.

        `asker` is the process to fork: its first thread, whose id is the pid, not another thread that a run left.
        """
        async with self._forking:
            self._pending, self._asker = descriptors, asker
            try:
                yield
            finally:
                self._pending = None

    def join(self) -> None:
        """Add a session."""
        self._users += 1

    def leave(self) -> None:
        """Remove a session; removing the last one ends the lineage."""
        self._users -= 1
        if self._users:
            return
        self._close_listener()
        if self._listener_socket is not None:
            self._listener_socket.close()
        self.child.close()
        self.on_end()

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = None

    def _answer(self) -> None:
        listener = self._listener
        call = notify.receive_call(listener) if listener is not None else None
        if listener is None or call is None:
            return
        pending = self._pending
        if pending is None or call.pid != self._asker:
            notify.refuse(listener, call, errno.EPERM)
            return
        self._pending = None
        # The calling process may die at any moment.
        with suppress(OSError):
            for descriptor, place in zip(pending, TWIN_DESCRIPTORS, strict=False):
                notify.add_descriptor(listener, call, descriptor, place)
            notify.allow(listener, call)


def _do_nothing() -> None:
    """The default of `SessionLineage.on_end`."""
