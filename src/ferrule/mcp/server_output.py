"""What a server that was started by a command writes to stderr: its last lines, for messages, and a log of all.

It never reaches the terminal as it is, where escape sequences could imitate what ferrule itself shows or asks.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from ferrule._util.terminal_text import escape_line
from ferrule.execution.secrets import scrub_text

_LINES_KEPT: Final = 20
_LINES_SHOWN: Final = 3
_LONGEST_LINE: Final = 300
_CHUNK: Final = 65_536
_MESSAGE: Final = "the MCP server %s logged (%s): %s"
_log = logging.getLogger("ferrule.mcp")


class ServerOutput:
    """Reads a server's stderr; each line is logged at the level INFO of `ferrule.mcp`, escaped, scrubbed and cut."""

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
        loop.add_reader(source, self._read, 1)
        self._source = source
        try:
            yield target
        finally:
            self._read()
            self._source = None
            loop.remove_reader(source)
            os.close(source)
            os.close(target)

    def log_message(self, level: str, data: Any) -> None:
        """Log a message of the protocol as a line of stderr is, at DEBUG if the server says so, at most at INFO."""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        shown = _shorten(text.encode(errors="replace"))
        _log.log(logging.DEBUG if level == "debug" else logging.INFO, _MESSAGE, self._name, level, shown)

    def describe(self) -> str:
        """The last lines as a part of a sentence; empty if there are none."""
        self._read()  # what a server wrote before it ended may not have been read yet
        lines = [*self._lines, *([_shorten(self._partial)] if self._partial.strip() else [])]
        if not lines:
            return ""
        shown = lines[-_LINES_SHOWN:]
        return f"its last {'lines' if len(shown) > 1 else 'line'} on stderr: {' / '.join(shown)}"

    def _read(self, most: int = _LINES_KEPT) -> None:
        """Read at most so many chunks: one for each call of the loop, and more when a message needs the last lines."""
        if self._source is None:
            return
        for _ in range(most):
            try:
                chunk = os.read(self._source, _CHUNK)
            except BlockingIOError:
                return
            *lines, rest = (self._partial + chunk).split(b"\n")
            self._partial = rest[:_CHUNK]
            # A flood of short lines takes long to write out.
            written = lines if _log.isEnabledFor(logging.INFO) else lines[-_LINES_KEPT:]
            for line in filter(bytes.strip, written):
                self._lines.append(_shorten(line))
                _log.info("the MCP server %s wrote: %s", self._name, self._lines[-1])


def _shorten(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return escape_line(scrub_text(text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"))
