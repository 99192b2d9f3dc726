"""Moves work from any event loop to the background loop, which does all of a sandbox's own work.

So a sandbox can be used from several loops, from one that is busy or about to close, or from none; its timeouts and
limits never wait for the program's own work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, TypeVar

from ferrule._util.background import submit_to_background

Result = TypeVar("Result")


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
