"""What a server that was started by a command writes to stderr: its last lines, for messages, and a log of all.

It never reaches the terminal as it is, where escape sequences could imitate what ferrule itself shows or asks.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ferrule._util.terminal_text import escape_line

_LINES_KEPT: Final = 20
_LINES_SHOWN: Final = 3
_LONGEST_LINE: Final = 300
_CHUNK: Final = 65_536
_log = logging.getLogger("ferrule.mcp")


class ServerOutput:
    """Reads a server's stderr; each line is logged at the level INFO of the logger `ferrule.mcp`, escaped and cut."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._partial = b""
        self._source: int | None = None

    @asynccontextmanager
    async def open_pipe(self) -> AsyncIterator[int]:
        """Yield the descriptor for the server to write to; what it writes is read until the block ends."""
        source, target = os.pipe()
        os.set_blocking(source, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(source, self._read)
        self._source = source
        try:
            yield target
        finally:
            self._read()
            self._source = None
            loop.remove_reader(source)
            os.close(source)
            os.close(target)

    def describe(self) -> str:
        """The last lines as a part of a sentence; empty if there are none."""
        self._read()  # what a server wrote before it ended may not have been read yet
        lines = [*self._lines, *([_shorten(self._partial)] if self._partial.strip() else [])]
        if not lines:
            return ""
        shown = lines[-_LINES_SHOWN:]
        return f"its last {'lines' if len(shown) > 1 else 'line'} on stderr: {' / '.join(shown)}"

    def _read(self) -> None:
        if self._source is None:
            return
        # One chunk for each call of the loop would leave the last lines unread when a message needs them.
        for _ in range(_LINES_KEPT):
            try:
                chunk = os.read(self._source, _CHUNK)
            except BlockingIOError:
                return
            *lines, rest = (self._partial + chunk).split(b"\n")
            self._partial = rest[:_CHUNK]
            for line in filter(bytes.strip, lines):
                self._lines.append(_shorten(line))
                _log.info("the MCP server %s wrote: %s", self._name, self._lines[-1])


def _shorten(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return escape_line(text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…")
