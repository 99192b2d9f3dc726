"""Standard input and output as the protocol's, and nobody else's."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_CHUNK = 65_536


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Whatever writes to standard output in here, also below Python, writes to standard error."""
    sys.stdout.flush()
    with _replaced(1, os.dup(2)):
        try:
            yield
        finally:
            sys.stdout.flush()


@asynccontextmanager
async def standard_streams() -> AsyncIterator[TransportStreams]:
    """The SDK's streams over stdin and stdout. In here, tools read nothing from the one and write to stderr instead.

    Standard input is read in a thread of our own: the SDK's can't be left while it waits for a line, so that Ctrl-C
    would do nothing until the client speaks.
    """
    from mcp.server.stdio import stdio_server

    with _replaced(0, os.open(os.devnull, os.O_RDONLY)) as private:
        lines = cast("Any", _lines(private))
        async with stdio_server(stdin=lines) as streams:
            try:
                yield streams
            finally:
                sys.stdout.flush()  # what tools printed; after this it would go to the client


@contextmanager
def _replaced(descriptor: int, other: int) -> Iterator[int]:
    """`other`, which is closed, in the place of a descriptor; gives a private copy of what was there."""
    private = os.dup(descriptor)
    os.dup2(other, descriptor)
    os.close(other)
    try:
        yield private
    finally:
        os.dup2(private, descriptor)
        # A private stdin stays open: its thread may still wait on it.
        if descriptor:
            os.close(private)


async def _lines(descriptor: int) -> AsyncIterator[str]:
    """The lines that come, until the end."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue(1)

    def hand_over(line: str | None) -> None:
        asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()

    def read() -> None:
        rest = b""
        try:
            while data := os.read(descriptor, _CHUNK):
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    hand_over(line.decode("utf-8", "replace"))
            hand_over(None)
        except (OSError, RuntimeError):  # it was closed, or the loop was, and nobody listens any more
            return

    threading.Thread(target=read, name="MCP stdin", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line
