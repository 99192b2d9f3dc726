"""Threads for blocking functions: each has one to itself, and there is no most number of them.

A thread that is done waits a while for the next function, because making one costs more than the rest of a call. They
are daemons, so that leaving the interpreter doesn't wait for them.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

_IDLE_SECONDS = 10.0
_MOST_IDLE = 32


def run_in_worker(work: Callable[[], None]) -> None:
    """Start `work`, which must not raise, in a thread that runs nothing else until it is done."""
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
        worker.give(work)
        threading.Thread(target=worker.live, name="ferrule tool", daemon=True).start()
    else:
        worker.give(work)


class _Worker:
    """One thread's inbox, which holds one function at most."""

    def __init__(self) -> None:
        self._work: Callable[[], None] | None = None
        self._has_work = threading.Lock()
        self._has_work.acquire()

    def give(self, work: Callable[[], None]) -> None:
        self._work = work
        self._has_work.release()

    def live(self) -> None:
        while self._has_work.acquire(timeout=_IDLE_SECONDS) or not _retired(self):
            work, self._work = self._work, None
            if work is None:
                continue
            work()
            del work  # or what it holds would stay for as long as this thread is idle
            if len(_idle) >= _MOST_IDLE:
                return
            _idle.append(self)


_idle: deque[_Worker] = deque()
# A forked process has none of the threads.
os.register_at_fork(after_in_child=_idle.clear)


def _retired(worker: _Worker) -> bool:
    """Whether the worker could leave the idle ones: not where somebody has just taken it."""
    try:
        _idle.remove(worker)
    except ValueError:
        return False
    return True
