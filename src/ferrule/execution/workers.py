"""Threads for blocking functions: each has one to itself, and there is no most number of them.

A thread that is done waits for the next function, because making one costs more than the rest of a call. They are
daemons, so that leaving the interpreter doesn't wait for them.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from functools import lru_cache

_MOST_IDLE = 32


def run_in_worker(work: Callable[[], None]) -> None:
    """Start `work`, which must not raise, in a thread that runs nothing else until it is done."""
    try:
        _idle.pop()
    except IndexError:
        with _making_bell:
            _bell()
        # In a list, so that the thread alone decides how long the work is held.
        threading.Thread(target=_live, args=([work],), name="ferrule tool", daemon=True).start()
    else:
        _given.append(work)
        os.write(_bell()[1], b"\0")


@lru_cache(maxsize=1)
def _bell() -> tuple[int, int]:
    """The pipe that idle threads read from: each byte in it wakes one of them. Made before the first of them.

    A pipe and not a lock: its writer is taken to be about to wait, so that the kernel starts the reader where the
    writer ran and has no other processor to wake. On a busy machine that saves a third of a call's time.
    """
    return os.pipe()


def _live(first: list[Callable[[], None]]) -> None:
    work = first.pop()
    while True:
        work()
        del work  # or what it holds would stay for as long as this thread is idle
        if len(_idle) >= _MOST_IDLE:
            return
        _idle.append(None)
        os.read(_bell()[0], 1)
        work = _given.popleft()


_given: deque[Callable[[], None]] = deque()
# One entry for each thread that waits, or is just about to, and that nothing was given for yet.
_idle: deque[None] = deque()
_making_bell = threading.Lock()


def _start_afresh() -> None:
    """A forked process has none of the threads, and the pipe is its parent's."""
    _given.clear()
    _idle.clear()
    if _bell.cache_info().currsize:
        for end in _bell():
            os.close(end)
        _bell.cache_clear()
    _making_bell.release()


os.register_at_fork(before=_making_bell.acquire, after_in_parent=_making_bell.release, after_in_child=_start_afresh)
