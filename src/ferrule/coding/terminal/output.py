"""What is printed while the prompt is shown: whole lines go above it, a line without an end is shown in front of it."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from prompt_toolkit.application import Application


class OutputAbovePrompt(io.TextIOBase):
    """Takes the place of stdout and stderr. Any thread may write; lines are printed in the event loop's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text = ""
        self._app: Application[int] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._before = sys.stdout
        self._is_held = False
        self._is_reserved = False
        self._waiting = ""
        self.front: TextIO = cast("TextIO", _Front(self))
        """The same output, for questions, which don't wait while they have it reserved."""

    @property
    def unfinished(self) -> str:
        """The last line, if it has no end yet: a question that somebody asks."""
        return self._text.rpartition("\n")[2]

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the terminal."""
        return self._before.encoding or "utf-8"

    def isatty(self) -> bool:
        """It ends on one."""
        return True

    def fileno(self) -> int:
        """That of the terminal."""
        return self._before.fileno()

    def write(self, text: str, /) -> int:
        """Print the lines that are complete, or let them wait for a question."""
        with self._lock:
            if self._is_reserved:
                self._waiting += text
                return len(text)
        return self.write_now(text)

    def write_now(self, text: str) -> int:
        """Print the lines that are complete."""
        with self._lock:
            self._text += text
        loop = self._loop
        if loop is not None and not loop.is_closed():
            if threading.current_thread() is threading.main_thread():
                self._print_lines()
            else:
                loop.call_soon_threadsafe(self._print_lines)
        return len(text)

    def flush(self) -> None:
        """Show an unfinished line, too."""
        if self._app is not None:
            self._app.invalidate()

    @contextmanager
    def install(self, app: Application[int]) -> Iterator[None]:
        """Print above the prompt of this application until the end of the block. Only in the main thread."""
        before = sys.stdout, sys.stderr
        self._app, self._loop = app, asyncio.get_running_loop()
        sys.stdout = sys.stderr = self
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            self._text, self._waiting = self._text + self._waiting, ""
            self._print_lines()
            if self._text:
                self._before.write(f"{self._text}\n")
            self._text, self._loop = "", None
            self._before.flush()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep what is written until the end of the block, in which another program has the terminal."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self._print_lines()

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Let everything but `front` wait until the end of the block, in which questions are asked."""
        with self._lock:
            self._is_reserved = True
        try:
            yield
        finally:
            with self._lock:
                self._is_reserved, text, self._waiting = False, self._waiting, ""
            if text:
                self.write_now(text)

    def _print_lines(self) -> None:
        app = self._app
        if app is None or self._is_held:
            return
        with self._lock:
            lines, end, rest = self._text.rpartition("\n")
            self._text = rest
        if not end:
            app.invalidate()
            return
        # Without a change of the terminal's mode, as prompt_toolkit's `run_in_terminal` makes one: what is typed
        # meanwhile would be echoed.
        app.renderer.erase()
        self._before.write(lines + end)
        self._before.flush()
        app.renderer.reset()
        app.invalidate()


class _Front(io.TextIOBase):
    """Prints above the prompt also while that is reserved."""

    def __init__(self, output: OutputAbovePrompt) -> None:
        self._output = output

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._output.encoding

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._output.fileno()

    def write(self, text: str, /) -> int:
        return self._output.write_now(text)

    def flush(self) -> None:
        self._output.flush()
