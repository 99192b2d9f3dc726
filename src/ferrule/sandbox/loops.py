"""From any event loop onto the background one, where all of a sandbox's own work is done.

A sandbox can so be used from several loops, from one that is busy or about to close, and without one; its clocks and
limits never wait for the program's own work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from ferrule.background import on_background

Result = TypeVar("Result")


async def in_background(work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work` on the background loop. Cancelling this cancels it there, and waits until it has cleaned up."""
    tasks: list[asyncio.Future[Result]] = []

    async def begin() -> Result:
        tasks.append(asyncio.ensure_future(work))
        return await tasks[0]

    async def cancel() -> None:
        tasks[0].cancel()

    waiting = asyncio.wrap_future(on_background(begin()))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        on_background(cancel())
        with suppress(asyncio.CancelledError, Exception):
            await waiting
        raise


async def beside(work: Callable[..., Result], *arguments: Any) -> Result:
    """Do something that takes its time in a thread; here, where the program is ending and threads aren't to be had."""
    try:
        done = asyncio.get_running_loop().run_in_executor(None, work, *arguments)
    except RuntimeError:
        return work(*arguments)
    return await done
