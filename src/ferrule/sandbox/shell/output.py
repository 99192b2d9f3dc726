"""Captures a command's output: in memory if short, else in a file up to a limit, and shows both ends."""

from __future__ import annotations

import errno
import os
from pathlib import Path

__all__ = ["OutputCapture"]

_CHUNK_BYTES = 1024 * 1024


class OutputCapture:
    """Collects output from a pipe: at most `limit` bytes in memory, at most `spill_limit` in a file."""

    def __init__(self, limit: int, spill: Path, spill_limit: int) -> None:
        self.total = 0
        """Bytes taken so far."""
        self.is_over = False
        """Whether the output exceeds even the file's limit."""
        self._limit, self._spill, self._spill_limit = max(2, limit), spill, spill_limit
        self._memory = bytearray()
        self._file = -1
        self._was_read = 0

    @property
    def is_cut(self) -> bool:
        """Whether more was written than is shown."""
        return self.total > self._limit

    @property
    def spilled(self) -> Path | None:
        """The file with all of the output, up to its limit; None if memory holds it."""
        return self._spill if self.is_cut else None

    def take(self, pipe: int) -> bool:
        """Take one chunk from a non-blocking pipe; False at its end or past the limit.

        Raises `BlockingIOError` if there is nothing to read now.
        """
        room = min(_CHUNK_BYTES, self._spill_limit - self.total)
        if room <= 0:
            self.is_over = bool(os.read(pipe, 1))
            return False
        if self._file < 0:
            data = os.read(pipe, min(room, self._limit + 1 - self.total))
            self._memory += data
            taken = len(data)
        else:
            taken = _move_bytes(pipe, self._file, room)
        self.total += taken
        if self.is_cut and self._file < 0:
            self._file = os.open(self._spill, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.write(self._file, self._memory)
            del self._memory[self._limit // 2 :]
        return taken > 0

    def render(self) -> str:
        """The output as text; if long, its start and end with a line between that says how much is missing."""
        return self._render(0)

    def read_new(self) -> str:
        """The output since the last call, cut in the same way."""
        text = self._render(self._was_read)
        self._was_read = self.total
        return text

    def read_tail(self, most: int) -> str:
        """The last whole lines of the output so far, at most `most` bytes; `read_new` isn't changed by it."""
        start = max(0, self.total - most)
        text = self._read_part(start, self.total).decode("utf-8", "replace")
        return text.partition("\n")[2] or text if start else text

    def close(self) -> None:
        """Close the file; no more output comes."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _render(self, start: int) -> str:
        if self.total - start <= self._limit:
            return self._read_part(start, self.total).decode("utf-8", "replace")
        half = self._limit // 2
        head, tail = self._read_part(start, start + half), self._read_part(self.total - half, self.total)
        missing = self.total - start - 2 * half
        return f"{head.decode('utf-8', 'replace')}\n[… {missing} bytes left out …]\n{tail.decode('utf-8', 'replace')}"

    def _read_part(self, start: int, end: int) -> bytes:
        if end <= len(self._memory):
            return bytes(self._memory[start:end])
        file = self._file if self._file >= 0 else os.open(self._spill, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(file, end - start, start)
        finally:
            if file != self._file:
                os.close(file)


def _move_bytes(pipe: int, file: int, most: int) -> int:
    """Move bytes from a pipe to the end of a file, within the kernel if the file system allows."""
    try:
        if hasattr(os, "splice"):
            return os.splice(pipe, file, most)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    data = os.read(pipe, most)
    os.write(file, data)
    return len(data)
