"""Stops, resumes and kills one process of a session through a descriptor, in the parent. On the background loop."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path


class ProcessHandle:
    """A process that isn't the parent's child. The kernel reported its pid with a message that it sent."""

    def __init__(self, pid: int, number: int = 0, *, keeps_files: bool = True) -> None:
        """`number` identifies a checkpoint and its files. Raises `ProcessLookupError` if the process has died."""
        self.pid = pid
        self.number = number
        self.keeps_files = keeps_files
        self._handle: int | None = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self.died: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._handle, self._on_death)

    def stop(self) -> None:
        """Suspend it until `resume`; it can't prevent that."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End a `stop`."""
        self._signal(signal.SIGCONT)

    def wake(self) -> None:
        """Resume a checkpoint as the session's process."""
        self._signal(signal.SIGUSR1)
        self.resume()

    def kill(self) -> None:
        """Kill it. Can be called again."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """Kill it and close the descriptor."""
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


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU time of all its threads so far; 0 if unavailable."""
    try:
        # Its CPU clock, as clock_getcpuclockid(3) numbers it.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def read_peak_memory(pid: int) -> int:
    """Return its peak resident memory in bytes; 0 if unavailable."""
    return _read_status_number(pid, b"VmHWM:") * 1024


def read_parent(pid: int) -> int:
    """Return its parent's pid; 0 if unavailable."""
    return _read_status_number(pid, b"PPid:")


def list_children(pid: int) -> list[int]:
    """Return the pids of its children, by reading the status of every process."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - strings, for speed
    return [number for number in numbers if read_parent(number) == pid]


def _read_status_number(pid: int, name: bytes) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return 0
    _, _, rest = status.partition(b"\n" + name)
    return int(rest.split(maxsplit=1)[0]) if rest else 0
