"""The real command, run as a stranger runs it: through pipes, and on a terminal of its own."""

from __future__ import annotations

import codecs
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from command_client import command_server

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = (sys.executable, "-m", "ferrule")
# The lines that are typed in tests don't belong to those of the person who runs them.
_STATE = {"XDG_STATE_HOME": str(Path(tempfile.gettempdir(), f"ferrule-state-of-tests-{os.getuid()}"))}
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")

# What makes the terminal the new session's own, so that Ctrl-C typed there is a signal.
_LAUNCHER = "import fcntl, os, sys, termios; fcntl.ioctl(1, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, with the package on the path and nothing that says how to colour."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "TERM": "xterm", **_STATE, **(changes or {})}


def ferrule(
    *arguments: str | Path, typed: str | bytes = "", folder: Path | None = None, **changes: str
) -> subprocess.CompletedProcess[str]:
    """Run a command with `typed` on its standard input; what it wrote is decoded as UTF-8.

    It is a process of its own, forked from one that has other people's packages loaded: `command_client.py`.
    """
    assert not any(name.startswith("PYTHON") for name in changes), "Python reads these when it starts"
    done = command_server().run(
        [*map(str, arguments)],
        typed.encode() if isinstance(typed, str) else typed,
        environment(changes),
        folder or Path.cwd(),
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """One clear line on stderr that has these words, nothing on stdout, exit status 2."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ferrule: ")
    for word in words:
        assert word in lines[0]


def interrupted(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Send what Ctrl-C sends; the exit status and what was written to stderr."""
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors.decode()


class Terminal:
    """A command on a terminal: what it shows, and somebody who types. With `piped`, that is its standard input."""

    def __init__(self, *arguments: str | Path, piped: str | None = None, **changes: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCHER, *COMMAND, *map(str, arguments)],
            stdin=slave if piped is None else subprocess.PIPE,
            stdout=slave,
            stderr=slave,
            env=environment({"COLUMNS": "100", **changes}),
            start_new_session=True,
        )
        os.close(slave)
        if self.process.stdin is not None:
            self.process.stdin.write((piped or "").encode())
            self.process.stdin.close()
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read_to = 0

    def type(self, text: str) -> None:
        """Type; a line ends with a carriage return."""
        os.write(self._master, text.encode())

    def expect(self, text: str, timeout: float = 30) -> str:
        """Wait until `text` is shown, colours left out, after what was expected before; returns what came before it."""
        deadline = time.monotonic() + timeout
        while True:
            plain = _ESCAPES.sub("", self.shown)
            found = plain.find(text, self._read_to)
            if found >= 0:
                before = plain[self._read_to : found]
                self._read_to = found + len(text)
                return before
            if not self._more(deadline):
                raise AssertionError(f"{text!r} did not come; shown: {plain[self._read_to :]!r}")

    def ended(self, timeout: float = 30) -> int:
        """Wait for the end of the command; its exit status."""
        deadline = time.monotonic() + timeout
        while self._more(deadline):
            pass
        return self.process.wait(timeout=max(0.1, deadline - time.monotonic()))

    def _more(self, deadline: float) -> bool:
        while time.monotonic() < deadline:
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    data = os.read(self._master, 65536)
                except OSError:  # Linux's way to say that nobody holds the other end
                    return False
                self.shown += self._decoder.decode(data)
                return bool(data)
            if self.process.poll() is not None and not select.select([self._master], [], [], 0)[0]:
                return False
        raise AssertionError(f"nothing came in time; shown: {self.shown!r}")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)
