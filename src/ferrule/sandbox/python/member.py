"""One process of a session, in the parent: stopped, woken, killed through a descriptor. On the background loop."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress


class Member:
    """A process that the parent didn't make. Its pid came from the kernel with a message that it sent."""

    def __init__(self, pid: int, number: int = 0, *, keeps_files: bool = True) -> None:
        """`number` is a checkpoint's, by which its files are kept. Raises `ProcessLookupError` where it has died."""
        self.pid = pid
        self.number = number
        self.keeps_files = keeps_files
        self._handle: int | None = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self.died: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._handle, self._on_death)

    def stop(self) -> None:
        """Nothing of it runs until `go_on`, whatever it would rather do."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """End a `stop`."""
        self._signal(signal.SIGCONT)

    def wake(self) -> None:
        """Let a checkpoint take the session over."""
        self._signal(signal.SIGUSR1)
        self.go_on()

    def kill(self) -> None:
        """End it. Can be called again."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """End it, and close what is open here."""
        self.kill()
        self._on_death()

    def _signal(self, number: signal.Signals) -> None:
        if self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def _on_death(self) -> None:
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None
        if not self.died.done():
            self.died.set_result(None)
