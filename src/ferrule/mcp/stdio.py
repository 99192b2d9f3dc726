"""Reserves stdin and stdout for the protocol's messages."""

from __future__ import annotations

import asyncio
import io
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
def redirect_stdout() -> Iterator[None]:
    """Redirect everything written to stdout in this context, also by C code, to stderr."""
    sys.stdout.flush()
    with _replace_descriptor(1, os.dup(2)), _flush_lines():
        yield


@asynccontextmanager
async def open_stdio() -> AsyncIterator[TransportStreams]:
    """Open the SDK's streams over stdin and stdout. In this context tools read an empty stdin and write to stderr.

    Stdin is read in a thread of our own: the SDK's reader can't be cancelled while it waits for a line, so Ctrl-C
    would do nothing until the client sends one.
    """
    from mcp.server.stdio import stdio_server

    with _replace_descriptor(0, os.open(os.devnull, os.O_RDONLY)) as private:
        lines = cast("Any", _read_lines(private))
        async with stdio_server(stdin=lines) as streams:
            with _flush_lines():
                yield streams


@contextmanager
def _flush_lines() -> Iterator[None]:
    """Write each line that is printed at once, and at the end of this context what is left.

    Output that goes to no terminal is collected otherwise, and what a tool prints would be seen much later.
    """
    buffered = sys.stdout if isinstance(sys.stdout, io.TextIOWrapper) else None  # a program may have replaced it
    before = buffered is not None and buffered.line_buffering
    if buffered is not None:
        buffered.reconfigure(line_buffering=True)
    try:
        yield
    finally:
        sys.stdout.flush()
        if buffered is not None:
            buffered.reconfigure(line_buffering=before)


@contextmanager
def _replace_descriptor(descriptor: int, other: int) -> Iterator[int]:
    """Replace a descriptor by `other`, which is closed; yields a private copy of the original."""
    private = os.dup(descriptor)
    os.dup2(other, descriptor)
    os.close(other)
    try:
        yield private
    finally:
        os.dup2(private, descriptor)
        # A private stdin stays open, since its thread may still be reading it.
        if descriptor:
            os.close(private)


async def _read_lines(descriptor: int) -> AsyncIterator[str]:
    """Read the lines of a descriptor, until its end."""
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
        except (OSError, RuntimeError):  # the descriptor or the loop was closed
            return

    threading.Thread(target=read, name="MCP stdin", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line
