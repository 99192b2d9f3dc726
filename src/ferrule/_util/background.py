"""The process's background event loop, on which every synchronous function runs, and all of a sandbox's own work.

So a sandbox can be used from several loops, from one that is busy or about to close, or from none; its timeouts and
limits never wait for the program's own work.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from functools import lru_cache
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


@lru_cache(maxsize=1)
def _get_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    # A daemon, so that a process ends when its own work is done.
    threading.Thread(target=_run_forever, args=[loop], name="ferrule-background", daemon=True).start()
    return loop


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop, also after an exit or interruption in a task.

    Asyncio stores either in the task, for whoever awaits it, and raises it from `run_forever` as well, since its own
    caller waits there. Here the caller waits in another thread: it gets the exception as the result of its work.
    """
    while True:
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            continue
        return


# Threads don't survive a fork: a child that waits for its parent's loop would wait forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_get_loop.cache_clear)


def submit_to_background(work: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Start a coroutine on the background loop, for resources that several event loops of a process share."""
    return asyncio.run_coroutine_threadsafe(work, _get_loop())


class BackgroundWork(Future[Result]):
    """A coroutine on the background loop; another thread waits for its `result()`.

    The work goes on if that thread is interrupted, until `stop`.
    """

    def __init__(self, work: Coroutine[Any, Any, Result]) -> None:
        super().__init__()
        self._work = work
        self._task: asyncio.Task[Result] | None = None

    def start(self) -> None:
        """Start the work."""
        _get_loop().call_soon_threadsafe(self._start)

    def stop(self) -> None:
        """Cancel the work unless it has ended, and wait until it has; an interruption ends the waiting."""
        _get_loop().call_soon_threadsafe(self._stop)
        wait([self])

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._end)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:  # interrupted before it was started
            self._work.close()
            self.set_exception(asyncio.CancelledError())

    def _end(self, task: asyncio.Task[Result]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self.set_result(task.result())
        else:
            self.set_exception(error)


def run_synchronously(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on the background loop and wait for it.

    An interruption cancels it, and is raised once it has ended; a second one doesn't wait for that. Raises
    `RuntimeError` inside a running event loop, which waiting would block: use `await` there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        work.close()
        raise RuntimeError("a synchronous function was called inside an event loop; use the async one and await it")
    running = BackgroundWork(work)
    try:
        running.start()
        return running.result()
    except BaseException:
        running.stop()
        raise


@contextmanager
def enter_synchronously(manager: AbstractAsyncContextManager[Result]) -> Iterator[Result]:
    """An async context manager as a synchronous one, on the background loop."""

    async def enter() -> Result:
        return await manager.__aenter__()

    async def leave(error: BaseException | None) -> bool | None:
        return await manager.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)

    value = run_synchronously(enter())
    try:
        yield value
    except BaseException as error:
        if not run_synchronously(leave(error)):
            raise
    else:
        run_synchronously(leave(None))


async def run_on_background_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work` on the background loop. Cancelling this cancels `work` there and waits for its cleanup."""
    tasks: list[asyncio.Future[Result]] = []

    async def begin() -> Result:
        tasks.append(asyncio.ensure_future(work))
        return await tasks[0]

    async def cancel() -> None:
        tasks[0].cancel()

    waiting = asyncio.wrap_future(submit_to_background(begin()))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        submit_to_background(cancel())
        with suppress(asyncio.CancelledError, Exception):
            await waiting
        raise


async def run_in_thread(work: Callable[..., Result], *arguments: Any, threads: Executor | None = None) -> Result:
    """Run blocking work in a thread (None: one of the loop's pool).

    Runs it in place if the interpreter is shutting down and can't start threads.
    """
    try:
        done = asyncio.get_running_loop().run_in_executor(threads, work, *arguments)
    except RuntimeError:
        return work(*arguments)
    return await done


class Closing(Protocol):
    """A resource that can be closed."""

    def aclose(self) -> Coroutine[Any, Any, None]:
        """Release it. May be called again."""


Resource = TypeVar("Resource", bound=Closing)


def close_at_exit(resource: Resource) -> Resource:
    """Close a resource when the program ends; returns it."""
    atexit.register(_close, resource)
    return resource


def _close(resource: Closing) -> None:
    run_synchronously(resource.aclose())


def make_once(make: Callable[[], Resource]) -> Callable[[], Resource]:
    """Return a function that creates a resource at its first call, to be closed when the program ends.

    From then on it returns the same one.
    """
    lock = threading.Lock()
    made: list[Resource] = []

    def get() -> Resource:
        with lock:
            if not made:
                made.append(close_at_exit(make()))
            return made[0]

    return get
