"""How a function ends, within a time: a blocking one in a thread of its own, which can be given up but never stopped.

A thread that is done waits for the next function, because making one costs more than the rest of a call. There is no
most number of threads; they are daemons, so that leaving the interpreter doesn't wait for them.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(slots=True)
class Outcome:
    """How a function ended: with a value, or with what it raised."""

    value: Any = None
    error: BaseException | None = None


async def await_outcome(
    function: Callable[..., Awaitable[Any]], arguments: Mapping[str, Any], timeout: float | None
) -> Outcome | None:
    """Await `function(**arguments)`, stopped after `timeout` seconds; None where it was.

    What it raises is its outcome, also `SystemExit`, and a `CancelledError` that nobody meant for the caller. Raises
    `CancelledError` where the caller is cancelled.
    """
    # asyncio.timeout costs a handle in the loop; without one the work is only awaited.
    clock = None if timeout is None else asyncio.timeout(timeout)
    try:
        if clock is None:
            return Outcome(await function(**arguments))
        async with clock:
            return Outcome(await function(**arguments))
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Outcome(error=error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a function raises is its outcome
        return None if clock is not None and clock.expired() else Outcome(error=error)


class ThreadRun:
    """One run of `work` in a thread. Exactly one of two gets its outcome: who awaits `wait`, or `on_late`.

    `on_late` is called, in the thread or in the loop, where the run had been given up (its time was up, or it was
    cancelled), or where the loop was closed.
    """

    def __init__(self, work: Callable[[], Any], on_late: Callable[[Outcome], None]) -> None:
        self._work = work
        self._on_late = on_late
        self._lock = threading.Lock()
        self._running = threading.Lock()
        self._running.acquire()
        self._future: asyncio.Future[Outcome] | None = None
        self._outcome: Outcome | None = None
        self.is_given_up = False
        run_in_worker(self._run)

    async def wait(self, timeout: float | None, *, is_brief: bool = True) -> Outcome | None:
        """Wait for the outcome; None where `timeout` seconds pass first, and the run is given up then.

        Called once, right after the run was made. `is_brief` says that it may well end in a moment.
        """
        if is_brief and _patience.wait_for(self._running, timeout):
            return self._outcome
        with self._lock:
            if self._outcome is not None:
                return self._outcome
            self._future = asyncio.get_running_loop().create_future()
        try:
            if timeout is None:
                return await self._future
            async with asyncio.timeout(timeout):
                return await self._future
        except TimeoutError:
            return self._give_up()
        except asyncio.CancelledError:
            outcome = self._give_up()
            if outcome is not None:
                self._on_late(outcome)
            raise

    def _give_up(self) -> Outcome | None:
        """Give the run up; where it has ended already, its outcome instead."""
        with self._lock:
            self.is_given_up = self._outcome is None
            return self._outcome

    def _run(self) -> None:
        try:
            outcome = Outcome(self._work())
        except BaseException as error:  # noqa: BLE001 - whatever ends the work is its outcome
            outcome = Outcome(error=error)
        with self._lock:
            self._outcome = outcome
            is_late, future = self.is_given_up, self._future
        self._running.release()
        if future is not None and not is_late:
            try:
                future.get_loop().call_soon_threadsafe(_deliver, future, outcome)
            except RuntimeError:  # the loop was closed
                is_late = True
        if is_late:
            self._on_late(outcome)


def _deliver(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


class _Patience:
    """Waits a moment for a function in a thread, in place: to be woken by the loop costs more than most functions take.

    The loop stands still for that moment. So after a wait that was in vain the next functions aren't waited for: one,
    then three, and so on, up to `_MOST_PASSED`.
    """

    def __init__(self) -> None:
        self._passed = 0
        self._to_pass = 0

    def wait_for(self, running: threading.Lock, timeout: float | None) -> bool:
        """Whether the function that holds `running` ended within the moment, and within `timeout` seconds."""
        if self._to_pass:
            self._to_pass -= 1
            return False
        if running.acquire(timeout=_MOMENT if timeout is None else min(_MOMENT, timeout)):
            self._passed = 0
            return True
        self._passed = self._to_pass = min(2 * self._passed + 1, _MOST_PASSED)
        return False


_MOST_IDLE = 32
_MOMENT = 0.0002
"""Seconds."""
_MOST_PASSED = 127
_patience = _Patience()


def run_in_worker(work: Callable[[], None]) -> None:
    """Start `work`, which must not raise, in a thread that runs nothing else until it is done."""
    try:
        _idle.pop()
    except IndexError:
        with _making_pipe:
            _wakeup_pipe()
        # In a list, so that the thread alone decides how long the work is held.
        threading.Thread(target=_serve, args=([work],), name="ferrule tool", daemon=True).start()
    else:
        _queued.append(work)
        os.write(_wakeup_pipe()[1], b"\0")


@lru_cache(maxsize=1)
def _wakeup_pipe() -> tuple[int, int]:
    """The pipe that idle threads read from: each byte in it wakes one of them. Made before the first of them.

    A pipe and not a lock: its writer is taken to be about to wait, so that the kernel starts the reader where the
    writer ran and has no other processor to wake. On a busy machine that saves a third of a call's time.
    """
    return os.pipe()


def _serve(first: list[Callable[[], None]]) -> None:
    work = first.pop()
    while True:
        work()
        del work  # or what it holds would stay for as long as this thread is idle
        if len(_idle) >= _MOST_IDLE:
            return
        _idle.append(None)
        os.read(_wakeup_pipe()[0], 1)
        work = _queued.popleft()


_queued: deque[Callable[[], None]] = deque()
# One entry for each thread that waits, or is just about to, and that nothing was given for yet.
_idle: deque[None] = deque()
_making_pipe = threading.Lock()


def _reset_after_fork() -> None:
    """A forked process has none of the threads, and the pipe is its parent's."""
    _queued.clear()
    _idle.clear()
    if _wakeup_pipe.cache_info().currsize:
        for end in _wakeup_pipe():
            os.close(end)
        _wakeup_pipe.cache_clear()
    _making_pipe.release()


os.register_at_fork(before=_making_pipe.acquire, after_in_parent=_making_pipe.release, after_in_child=_reset_after_fork)
