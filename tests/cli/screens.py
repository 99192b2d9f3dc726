"""A program on a terminal whose screen is read as text: what a person would see, after all escape sequences."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import pexpect
import pyte
from terminals import COMMAND, environment

CTRL_C, CTRL_D, ESCAPE, ENTER, UP = "\x03", "\x04", "\x1b", "\r", "\x1b[A"


class Screen:
    """A command on a terminal of its own, whose screen, with what has scrolled away, is text."""

    def __init__(self, *arguments: str | Path, folder: Path, columns: int = 80, rows: int = 24, **changes: str) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=2000, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self.process = pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], *map(str, arguments)],
            cwd=str(folder),
            env=_environment(changes),
            dimensions=(rows, columns),
            timeout=300,
        )

    @property
    def text(self) -> str:
        """Everything that was shown and is still in the terminal."""
        above = ["".join(line[at].data for at in range(self._screen.columns)) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in (*above, *self._screen.display))

    def type(self, *texts: str) -> None:
        """Type; a line ends with `ENTER`."""
        for text in texts:
            self.process.send(text)

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
        self.process.setwinsize(rows, columns)

    def wait_for_end(self) -> int:
        """Wait until the program has ended; its exit status, that of a signal negative."""
        deadline = time.monotonic() + 300
        while self._read():
            assert time.monotonic() < deadline, self.text
        self.process.close()
        return self.process.exitstatus if self.process.exitstatus is not None else -(self.process.signalstatus or 0)

    def _read(self) -> bool:
        """Read what was written; returns whether there may be more."""
        try:
            self._stream.feed(self.process.read_nonblocking(65536, timeout=0.2))
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        return True

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.close(force=True)


def _environment(changes: Mapping[str, str]) -> Mapping[str, str]:
    return {**environment(changes), "TERM": "xterm-256color", **changes}
