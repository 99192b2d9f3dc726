"""What is read from standard input, by one reader at a time: a question, the lines of a chat, answers to approvals."""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Iterator

from ferrule.errors import SettingsError

_PROMPT = "› "
_PATIENCE = 0.05


def is_interactive() -> bool:
    """Whether a person types."""
    return sys.stdin.isatty()


def read_text() -> str:
    """All of standard input. Raises `SettingsError` where it isn't UTF-8."""
    return _decoded(sys.stdin.buffer.read()).strip()


def prompted_lines() -> Iterator[str]:
    """Lines until the end of the input; a person is shown a prompt, and Ctrl-C there begins the line anew."""
    if not is_interactive():
        for line in iter(sys.stdin.buffer.readline, b""):
            yield _decoded(line).rstrip("\r\n")
        return
    while True:
        try:
            yield _typed_line()
        except KeyboardInterrupt:
            print(file=sys.stderr)
        except EOFError:
            print(file=sys.stderr)
            return


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(f"standard input is not UTF-8 text: {error.reason} at byte {error.start}") from error


def _typed_line() -> str:
    if sys.stdout.isatty():
        import readline  # noqa: F401 - importing it is what gives `input` its line editing

        return input(_PROMPT)
    # `input` would write its prompt into what is being piped.
    print(_PROMPT, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


class Answers:
    """Lines typed in answer to an approver's questions; a question can be withdrawn.

    The approver reads in a thread of its own. Blocked in a plain read it could not be stopped, and would take the
    line that is meant for the next prompt.
    """

    def __init__(self) -> None:
        self._withdrawn = threading.Event()

    def begin(self) -> None:
        """Questions may be asked from now on."""
        self._withdrawn = threading.Event()

    def withdraw(self) -> None:
        """Whoever waits for a line gets the end of the input."""
        self._withdrawn.set()

    def readline(self) -> str:
        """The next line that is typed; empty once the question was withdrawn, or the input has ended."""
        withdrawn = self._withdrawn
        while not withdrawn.is_set():
            if select.select([sys.stdin], [], [], _PATIENCE)[0] and not withdrawn.is_set():
                return sys.stdin.readline()
        return ""
