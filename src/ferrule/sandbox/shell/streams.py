"""A command's standard input, and its output: in memory if short, else in a file up to a limit; both ends are shown."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ferrule.errors import SandboxInputError

__all__ = ["OutputCapture", "OutputPipe", "Streams", "open_standard_input"]

Streams = tuple[int, int, int]
"""The descriptors of a command's standard input, output and errors, which its starter owns."""

_CHUNK_BYTES = 1024 * 1024
_PIPE_SIZE = 1024 * 1024


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


class OutputPipe:
    """The reading end of a pipe that a command writes to, drained into a capture."""

    def __init__(self, capture: OutputCapture) -> None:
        self.capture = capture
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        # For fewer, longer reads; only on Linux, and within the user's limit for pipes.
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self._reading, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        self._when_over: Callable[[], None] | None = None
        self._is_open = True

    def begin(self, when_over: Callable[[], None]) -> None:
        """Start reading, once the command has its copy of the writing end; `when_over` is called past the limit."""
        os.close(self.writing)
        self.writing = -1
        self._when_over = when_over
        asyncio.get_running_loop().add_reader(self._reading, self._read)

    def _read(self) -> bool:
        """Take one chunk; False if there is none now, or at the end."""
        try:
            more = self.capture.take(self._reading)
        except BlockingIOError:
            return False
        if not more:
            self._stop()
            if self.capture.is_over and self._when_over is not None:
                self._when_over()
        return more

    def _stop(self) -> None:
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._reading)

    def drain(self) -> None:
        """Take what is left in the pipe, without waiting for processes that hold its other end."""
        while self._is_open and self._read():
            pass

    def close(self) -> None:
        """Take what is left and close the descriptors."""
        self.drain()
        self._stop()
        self._when_over = None  # breaks a reference cycle, which would keep the output until garbage collection
        os.close(self._reading)
        if self.writing >= 0:
            os.close(self.writing)
        self.capture.close()


@contextmanager
def open_standard_input(content: str | bytes | None) -> Iterator[int]:
    """Open a descriptor to read `content` from; empty for None."""
    if not isinstance(content, str | bytes | None):
        raise SandboxInputError(f"`input` is text or bytes, not {type(content).__name__}")
    if content is None:
        descriptor = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    else:
        descriptor = _create_unnamed_file()
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _create_unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stdin", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
