"""Counts the processes below this one, their threads and their memory, as /proc tells it."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Census:
    """What the processes below this one take."""

    processes: int
    threads: int
    memory: int
    """Bytes that are resident; what forks share is counted for each."""


def memory_of(pid: int | str) -> int:
    """Bytes that are resident and not shared with a file or another process, of a process that may be gone."""
    try:
        _, resident, shared = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[:3]
    except FileNotFoundError:
        return 0
    return PAGE * (int(resident) - int(shared))


def descendants() -> dict[int, list[str]]:
    """By process id: the fields of its `stat` from the state on."""
    found: dict[int, list[str]] = {}
    waiting = list(children(os.getpid()))
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
            if fields[0] != "Z":
                found[pid] = fields
            waiting += children(pid)
    return found


def children(pid: int) -> Iterator[int]:
    """The processes that a process's threads started, or that were left to it."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield from map(int, (thread / "children").read_text(encoding="utf-8").split())


def census() -> Census:
    """Count now."""
    found = descendants().values()
    return Census(len(found), sum(int(each[17]) for each in found), PAGE * sum(int(each[21]) for each in found))


class Watch:
    """Notes the most of each that was there at once while it is entered."""

    async def __aenter__(self) -> "Watch":
        self.before = self.most = census()
        self._pids = set(descendants())
        self._task = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            now = census()
            self.most = Census(*(max(getattr(self.most, name), getattr(now, name)) for name in Census.__slots__))

    async def end_new(self) -> None:
        """End the processes that were not there before, and wait until they are gone."""
        while new := descendants().keys() - self._pids:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.02)

    async def left(self, patience: float) -> int:
        """How many processes are more than before, after at most `patience` seconds of waiting for them to go."""
        end = time.monotonic() + patience
        looks = 0  # one look is not enough: a process that just lost its parent is nobody's for a moment
        while looks < 3 and time.monotonic() < end:
            await asyncio.sleep(0.02)
            looks = looks + 1 if len(descendants()) <= self.before.processes else 0
        return max(len(descendants()) - self.before.processes, 0)
