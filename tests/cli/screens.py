"""A command on a terminal whose screen is read as text: what a person would see, after all escape sequences.

The command is a process of its own, forked from one that has what it imports loaded: `command_client.py`.
"""

from __future__ import annotations

import os
import pty
import select
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pyte
from command_client import command_server
from terminals import environment

CTRL_C, CTRL_D, ESCAPE, ENTER, UP = "\x03", "\x04", "\x1b", "\r", "\x1b[A"


class Screen:
    """A command on a terminal of its own, whose screen, with what has scrolled away, is text."""

    def __init__(self, *arguments: str | Path, folder: Path, columns: int = 80, rows: int = 24, **changes: str) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=2000, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        self.resize(columns, rows)
        self.process = command_server(on_a_terminal=True).start(
            [*map(str, arguments)],
            (slave, slave, slave),
            {**environment(changes), "TERM": "xterm-256color", **changes},
            folder,
        )
        os.close(slave)

    @property
    def text(self) -> str:
        """Everything that was shown and is still in the terminal."""
        above = ["".join(line[at].data for at in range(self._screen.columns)) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in (*above, *self._screen.display))

    def type(self, *texts: str) -> None:
        """Type; a line ends with `ENTER`."""
        for text in texts:
            time.sleep(0.05)  # nobody types faster, and what comes at once is taken for pasted
            os.write(self._master, text.encode())

    def wait_for(self, *texts: str, count: int = 1, timeout: float = 300) -> str:
        """Wait until the screen shows each text, `count` times; returns it."""
        return self.wait_until(lambda shown: all(shown.count(text) >= count for text in texts), texts, timeout)

    def wait_until(self, is_shown: Callable[[str], bool], what: object = "it", timeout: float = 300) -> str:
        """Wait until the screen is as it should be."""
        deadline = time.monotonic() + timeout
        while not is_shown(self.text):
            if time.monotonic() > deadline or not self._read():
                raise AssertionError(f"{what!r} isn't shown:\n{self.text}")
        return self.text

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal."""
        self._screen.resize(rows, columns)
        termios.tcsetwinsize(self._master, (rows, columns))

    def wait_for_end(self) -> int:
        """Wait until the program has ended; its exit status, that of a signal negative."""
        deadline = time.monotonic() + 300
        while self._read():
            assert time.monotonic() < deadline, self.text
        return self.process.wait(300)

    def _read(self) -> bool:
        """Read what was written; returns whether there may be more."""
        if not select.select([self._master], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux's way to say that nobody holds the other end
            return False
        self._stream.feed(data)
        return bool(data)

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._master)  # which hangs up
        self.process.kill()
        self.process.wait()
