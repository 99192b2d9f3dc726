"""Reads standard input: a whole text, or lines, with a prompt on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from ferrule.errors import SettingsError
from ferrule.session.approvals import is_interactive

if TYPE_CHECKING:
    from ferrule.cli.typed_history import TypedHistory

_PROMPT = "› "


def read_text() -> str:
    """Read all of stdin. Raises `SettingsError` if it isn't UTF-8."""
    return _decode(sys.stdin.buffer.read()).strip()


def read_lines() -> Iterator[str]:
    """Yield lines until the end of the input; at a terminal there is a prompt, and Ctrl-C starts the line over."""
    if not is_interactive():
        for line in iter(sys.stdin.buffer.readline, b""):
            yield _decode(line).rstrip("\r\n")
        return
    while True:
        try:
            yield _read_typed_line()
        except KeyboardInterrupt:
            print(file=sys.stderr)
        except EOFError:
            print(file=sys.stderr)
            return


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(f"standard input is not UTF-8 text: {error.reason} at byte {error.start}") from error


@cache
def _open_history() -> TypedHistory:
    import readline  # the import also gives `input` line editing

    from ferrule.cli.typed_history import TypedHistory

    return TypedHistory(readline)


def _read_typed_line() -> str:
    if sys.stdout.isatty():
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
