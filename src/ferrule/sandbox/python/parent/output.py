"""Captures a child's output in the parent: two pipes, read up to a limit. On the background loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

_PIECE: Final = 64 * 1024
_PIECES_OF_A_PIPE: Final = 16


class ChildOutput:
    """A child's stdout and stderr, up to `limit` bytes in total; beyond that, `overflow` is called."""

    def __init__(self, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.limit = self._left = limit
        self.overflow: Callable[[], None] = _do_nothing
        self._parts: list[list[bytes]] = []
        self._open: dict[int, list[bytes]] = {}
        self.is_over = False

    def open(self) -> int:
        """Add a pipe and return its write end, which the caller closes. Raises `OSError`."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._parts.append([])
        self._open[reading] = self._parts[-1]
        self._loop.add_reader(reading, self._read, reading)
        return writing

    def drain(self) -> None:
        """Read what the pipes hold now, but not without end if a writer keeps adding."""
        for pipe in tuple(self._open):
            for _ in range(_PIECES_OF_A_PIPE):
                if pipe not in self._open or not self._read(pipe):
                    break

    def begin(self) -> None:
        """Discard earlier output and reset the limit, for the next run of a session."""
        self.drain()
        for parts in self._parts:
            parts.clear()
        self._left, self.is_over = self.limit, False

    def take(self) -> list[str]:
        """Remove and return the output: a text for each pipe, in the order of opening."""
        texts = []
        for parts in self._parts:
            data = b"".join(parts)
            parts.clear()
            texts.append(data.decode("utf-8", "replace"))
        return texts

    def close(self) -> None:
        """Stop reading, without further callbacks."""
        self.overflow = _do_nothing
        for pipe in tuple(self._open):
            self._close(pipe)

    def _read(self, pipe: int) -> bool:
        """Read one piece; returns whether there was one."""
        try:
            data = os.read(pipe, _PIECE)
        except BlockingIOError:
            return False
        if not data:
            self._close(pipe)
            return False
        if self.is_over:
            return True
        self._open[pipe].append(data[: self._left])
        self.is_over = len(data) > self._left
        self._left = max(self._left - len(data), 0)
        if self.is_over:
            self.overflow()
        return True

    def _close(self, pipe: int) -> None:
        del self._open[pipe]
        self._loop.remove_reader(pipe)
        os.close(pipe)


def _do_nothing() -> None:
    """The default of `ChildOutput.overflow`."""
