"""A server in a thread of its own, for tests that have no event loop or block theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from scripted_http import ScriptedServer


@contextmanager
def serve_in_thread(serve: Callable[[], ScriptedServer]) -> Iterator[str]:
    """The address of a server in a thread of its own, whose event loop is not ours."""
    started, address, ends = threading.Event(), [""], threading.Event()

    async def run() -> None:
        async with serve() as server:
            address[0] = server.url
            started.set()
            await asyncio.to_thread(ends.wait)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    started.wait()
    try:
        yield address[0]
    finally:
        ends.set()
        thread.join()
