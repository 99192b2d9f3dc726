"""Reads standard input: a whole text, or lines, with a prompt on a terminal and the lines typed in earlier chats."""

from __future__ import annotations

import locale
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ferrule._util.user_folders import find_state_folder
from ferrule.errors import SettingsError
from ferrule.session.approvals import is_interactive

_PROMPT = "› "
_PATIENCE = 5.0
"""How many seconds a pipe that nobody asked for may take to bring its first byte: not all of them have a writer."""
_LARGEST = 20 * 1024 * 1024
# In a locale without UTF-8, readline takes bytes above 127 for Meta keys: 0xAA, a part of many characters, would insert
# the names of all files. Completion is for nothing here: a question isn't a file name.
_READLINE_SETTINGS = ("convert-meta off", "input-meta on", "output-meta on", "disable-completion on")
_ENCODED_LOCALE = "C.UTF-8"
_MOST_KEPT_LINES = 1_000


def read_text() -> str:
    """Read all of stdin. Raises `SettingsError` if it isn't UTF-8."""
    return _decode(sys.stdin.buffer.read()).strip()


def read_code(file: str) -> str:
    """Read code from a file, or from stdin for `-`. Raises `OSError` and `UnicodeDecodeError`."""
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data.decode("utf-8")


def read_piped_text() -> str:
    """Read the text that was piped or redirected in beside a question; empty where stdin is anything else.

    A pipe may have no writer that ever writes or closes it, as in CI and in scripts: one that brings nothing for five
    seconds is left alone with a notice. Raises `SettingsError` for what isn't UTF-8, or is longer than 20 MB.
    """
    from ferrule.session.terminal.output import print_notice

    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # closed
        return ""
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        return ""
    if not select.select([sys.stdin], [], [], _PATIENCE)[0]:
        print_notice(
            f"nothing came on standard input for {_PATIENCE:.0f} seconds, so it is not read; `-a -` waits for it, and "
            "`< /dev/null` says that there is none"
        )
        return ""
    data = sys.stdin.buffer.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise SettingsError(f"standard input is longer than {_LARGEST >> 20} MB")
    return _decode(data).strip()


def read_lines() -> Iterator[str]:
    """Yield lines until the end of the input; at a terminal there is a prompt, and Ctrl-C starts the line over."""
    from ferrule.cli.errors import print_error

    if not is_interactive():
        for line in iter(sys.stdin.buffer.readline, b""):
            yield _decode(line).rstrip("\r\n")
        return
    while True:
        try:
            line = _read_typed_line()
            if not is_utf_8(line):
                print_error("that line is not UTF-8 text; type it again, or set a UTF-8 locale (LC_ALL=C.UTF-8)")
                continue
            yield line
        except KeyboardInterrupt:
            print(file=sys.stderr)
        except EOFError:
            print(file=sys.stderr)
            return


def confirm(question: str) -> bool:
    """Ask at the terminal until the answer is clear; an empty one, or the end of the input, is a no."""
    while True:
        print(f"{question} [y]es, [n]o: ", end="", flush=True)
        line = sys.stdin.readline()
        answer = line.strip().casefold()
        if not line:
            print()
        if answer in ("y", "yes", "n", "no", ""):
            return answer.startswith("y")


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(f"standard input is not UTF-8 text: {error.reason} at byte {error.start}") from error


@cache
def _open_history() -> TypedHistory:
    import readline  # the import also gives `input` line editing

    for setting in _READLINE_SETTINGS:
        readline.parse_and_bind(f"set {setting}")
    return TypedHistory(readline)


def is_utf_8(text: str) -> bool:
    """Whether a text has no bytes that couldn't be decoded, which Python keeps as surrogates."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


@contextmanager
def _read_characters() -> Iterator[None]:
    """Let readline read characters, not bytes, where Python decodes UTF-8 and the locale (`C`) doesn't.

    Python gives readline the locale of the environment for each line, so it is set there, and only for that line.
    """
    before = os.environ.get("LC_ALL")
    is_plain = locale.setlocale(locale.LC_CTYPE) in ("C", "POSIX") and sys.stdin.encoding.lower() == "utf-8"
    if is_plain:
        os.environ["LC_ALL"] = _ENCODED_LOCALE
    try:
        yield
    finally:
        if is_plain and before is None:
            del os.environ["LC_ALL"]
        elif is_plain and before is not None:
            os.environ["LC_ALL"] = before


def _read_typed_line() -> str:
    if sys.stdout.isatty():
        with _read_characters():
            history = _open_history()
            line = input(_PROMPT)
        if line.strip():
            history.keep_last()
        return line
    # `input` would write its prompt to stdout, which is piped.
    print(_PROMPT, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def find_history_path() -> Path:
    """The path of the readline file with the lines typed in chats, in the user's state folder."""
    return find_state_folder() / "chat_history"


class TypedHistory:
    """Loads the lines of earlier chats, which the arrow keys bring back, and keeps each new one.

    Only the owner can read the file. A chat works the same where it can't be used.
    """

    def __init__(self, readline: Any) -> None:
        self._readline = readline
        self._path: Path | None = None
        # Not every build of readline can append.
        if not hasattr(readline, "append_history_file"):
            return
        try:
            path = find_history_path()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            readline.set_history_length(_MOST_KEPT_LINES)
            readline.read_history_file(path)
        except (OSError, RuntimeError):  # no rights, or no home
            return
        self._path = path

    def keep_last(self) -> None:
        """Add the line typed last to the file."""
        if self._path is None:
            return
        try:
            self._readline.append_history_file(1, self._path)
        except OSError:
            self._path = None
