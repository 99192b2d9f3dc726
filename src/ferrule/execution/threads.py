"""Runs a function with a timeout: a blocking one in a thread of its own, which can be abandoned but not stopped.

An idle thread waits for the next function, because creating one costs more than the rest of a call. The number of
threads is not limited; they are daemons, so that the interpreter doesn't wait for them at exit.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, final

from ferrule.execution.call_clock import CallClock, current_clock


@final
@dataclass(slots=True)
class ThreadOutcome:
    """The outcome of a function: its value, or what it raised."""

    value: Any = None
    error: BaseException | None = None


async def await_outcome(
    function: Callable[..., Awaitable[Any]],
    arguments: Mapping[str, Any],
    timeout: float | None,
    on_late: Callable[[ThreadOutcome], None] | None = None,
    on_abandon: Callable[[], None] | None = None,
    clock: CallClock | None = None,
) -> ThreadOutcome | Literal["stopped", "abandoned"]:
    """Await `function(**arguments)`, for at most `timeout` seconds; then it is cancelled, and what it returns ignored.

    `clock` measures these seconds, if it is given; it is the function's `current_clock`.
    A function that hasn't ended `GRACE_SECONDS` after that is abandoned, also if the caller is cancelled: `on_abandon`
    is called, and `on_late` with its outcome if it ends after all. What a function raises is its outcome, including
    `SystemExit` and a `CancelledError` of its own. Raises `CancelledError` if the caller is cancelled, once the
    function has ended or was abandoned.
    """
    if timeout is not None:
        return await _await_in_task(function, arguments, timeout, on_late, on_abandon, clock)
    # Only awaited: a task of its own would cost more than most functions.
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    try:
        outcome = ThreadOutcome(await function(**arguments))
    except asyncio.CancelledError as error:
        if task.cancelling():
            raise
        return ThreadOutcome(error=error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a function raises is its outcome
        return ThreadOutcome(error=error)
    if task.cancelling() > before:
        # The function has caught what was meant for its caller, who is to stop all the same.
        raise asyncio.CancelledError
    return outcome


async def _await_in_task(
    function: Callable[..., Awaitable[Any]],
    arguments: Mapping[str, Any],
    timeout: float,
    on_late: Callable[[ThreadOutcome], None] | None,
    on_abandon: Callable[[], None] | None,
    clock: CallClock | None,
) -> ThreadOutcome | Literal["stopped", "abandoned"]:
    task = asyncio.create_task(_capture(function, arguments, clock))
    try:
        await (asyncio.wait({task}, timeout=timeout) if clock is None else clock.wait(task, timeout))
    except asyncio.CancelledError:
        await _stop(task, on_late, on_abandon)
        raise
    return task.result() if task.done() else await _stop(task, on_late, on_abandon)


async def _capture(
    function: Callable[..., Awaitable[Any]], arguments: Mapping[str, Any], clock: CallClock | None
) -> ThreadOutcome:
    if clock is not None:
        current_clock.set(clock)
    try:
        return ThreadOutcome(await function(**arguments))
    except (Exception, asyncio.CancelledError, SystemExit) as error:  # noqa: BLE001 - as above
        return ThreadOutcome(error=error)


async def _stop(
    task: asyncio.Task[ThreadOutcome],
    on_late: Callable[[ThreadOutcome], None] | None,
    on_abandon: Callable[[], None] | None,
) -> Literal["stopped", "abandoned"]:
    """Cancel a function's task and wait briefly for its end; a caller that is cancelled meanwhile doesn't wait."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
    finally:
        if not task.done():
            _abandon(task, on_late)
            if on_abandon is not None:
                on_abandon()
    return "stopped" if task.done() else "abandoned"


def _abandon(task: asyncio.Task[ThreadOutcome], on_late: Callable[[ThreadOutcome], None] | None) -> None:
    _abandoned.add(task)
    task.add_done_callback(_abandoned.discard)
    if on_late is not None:
        task.add_done_callback(lambda done: on_late(done.result()))
    # As asyncio doesn't know it any more, `asyncio.run` doesn't wait for it at the end of the program.
    asyncio.tasks._unregister_task(task)
    task._log_destroy_pending = False  # type: ignore[attr-defined]


GRACE_SECONDS = 2.0
"""Seconds that a cancelled async function has to end."""
_abandoned: set[asyncio.Task[ThreadOutcome]] = set()
"""The loop references tasks only weakly."""


class ThreadRun:
    """A run of `work` in a thread. Its outcome goes either to the caller of `wait` or to `on_late`, never to both.

    `on_late` is called, in the thread or in the loop, if the run was abandoned (after a timeout or cancellation) or
    the loop was closed.
    """

    def __init__(self, work: Callable[[], Any], on_late: Callable[[ThreadOutcome], None]) -> None:
        self._work = work
        self._on_late = on_late
        self._lock = threading.Lock()
        self._running = threading.Lock()
        self._running.acquire()
        self._future: asyncio.Future[ThreadOutcome] | None = None
        self._outcome: ThreadOutcome | None = None
        self.is_given_up = False
        run_in_worker(self._run)

    async def wait(self, timeout: float | None, *, is_brief: bool = True) -> ThreadOutcome | None:
        """Wait for the outcome; None after `timeout` seconds, when the run is abandoned.

        To be called once, right after the run was created. `is_brief` is whether it may end very soon.
        """
        if is_brief and _brief_wait.wait_for(self._running, timeout):
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

    def _give_up(self) -> ThreadOutcome | None:
        """Abandon the run, or return its outcome if it has ended already."""
        with self._lock:
            self.is_given_up = self._outcome is None
            return self._outcome

    def _run(self) -> None:
        try:
            outcome = ThreadOutcome(self._work())
        except BaseException as error:  # noqa: BLE001 - whatever ends the work is its outcome
            outcome = ThreadOutcome(error=error)
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


def _deliver(future: asyncio.Future[ThreadOutcome], outcome: ThreadOutcome) -> None:
    if not future.done():
        future.set_result(outcome)


class _BriefWait:
    """Blocks briefly for a function in a thread, since waking up through the loop takes longer than most functions.

    This blocks the loop too. So after a wait in vain, the next functions aren't waited for: one, then three, and so on,
    up to `_MOST_SKIPPED`.
    """

    def __init__(self) -> None:
        self._skipped = 0
        self._to_skip = 0

    def wait_for(self, running: threading.Lock, timeout: float | None) -> bool:
        """Whether the function that holds `running` ended in that brief time, and within `timeout` seconds."""
        if self._to_skip:
            self._to_skip -= 1
            return False
        if running.acquire(timeout=_BRIEFLY if timeout is None else min(_BRIEFLY, timeout)):
            self._skipped = 0
            return True
        self._skipped = self._to_skip = min(2 * self._skipped + 1, _MOST_SKIPPED)
        return False


_MOST_IDLE = 32
_BRIEFLY = 0.0002
"""Seconds."""
_MOST_SKIPPED = 127
_brief_wait = _BriefWait()


def run_in_worker(work: Callable[[], None]) -> None:
    """Start `work`, which must not raise, in a thread that runs nothing else until it is done."""
    try:
        _idle.pop()
    except IndexError:
        with _making_pipe:
            _get_wakeup_pipe()
        # In a list, so that the thread holds the only reference to the work.
        threading.Thread(target=_serve, args=([work],), name="ferrule tool", daemon=True).start()
    else:
        _queued.append(work)
        os.write(_get_wakeup_pipe()[1], b"\0")


@lru_cache(maxsize=1)
def _get_wakeup_pipe() -> tuple[int, int]:
    """Return the pipe that idle threads read from: each byte in it wakes one of them. Made before the first thread.

    Not a lock: the kernel takes the writer of a pipe to be about to wait, and starts the reader on the same processor
    instead of waking another. On a busy machine that saves a third of a call's time.
    """
    return os.pipe()


def _serve(first: list[Callable[[], None]]) -> None:
    work = first.pop()
    while True:
        work()
        del work  # or what it references would stay alive while this thread is idle
        if len(_idle) >= _MOST_IDLE:
            return
        _idle.append(None)
        os.read(_get_wakeup_pipe()[0], 1)
        work = _queued.popleft()


_queued: deque[Callable[[], None]] = deque()
# One entry for each thread that waits for work, or is about to.
_idle: deque[None] = deque()
_making_pipe = threading.Lock()


def _reset_after_fork() -> None:
    """Start over in a forked process, which has none of the threads, and whose pipe is its parent's."""
    _queued.clear()
    _idle.clear()
    if _get_wakeup_pipe.cache_info().currsize:
        for end in _get_wakeup_pipe():
            os.close(end)
        _get_wakeup_pipe.cache_clear()
    _making_pipe.release()


os.register_at_fork(before=_making_pipe.acquire, after_in_parent=_making_pipe.release, after_in_child=_reset_after_fork)
