"""One process of a session, in the parent: stopped, woken, killed through a descriptor. On the background loop."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path


class ProcessHandle:
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
        """Nothing of it runs until `resume`, whatever it would rather do."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End a `stop`."""
        self._signal(signal.SIGCONT)

    def wake(self) -> None:
        """Let a checkpoint take the session over."""
        self._signal(signal.SIGUSR1)
        self.resume()

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


def cpu_seconds(pid: int) -> float:
    """Processor time of all its threads until now; 0 where it can't be asked."""
    try:
        # Its CPU clock, as clock_getcpuclockid(3) numbers it.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def peak_memory(pid: int) -> int:
    """The most bytes that were resident; 0 where it can't be asked."""
    return _status(pid, b"VmHWM:") * 1024


def read_parent(pid: int) -> int:
    """The process that made it, or took it over from the one that did; 0 where it can't be asked."""
    return _status(pid, b"PPid:")


def list_children(pid: int) -> list[int]:
    """The processes that it made or took over, by looking at each process that there is."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - strings, for speed
    return [number for number in numbers if read_parent(number) == pid]


def _status(pid: int, name: bytes) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return 0
    _, _, rest = status.partition(b"\n" + name)
    return int(rest.split(maxsplit=1)[0]) if rest else 0
