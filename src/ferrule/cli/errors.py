"""How a command fails: one clear line on stderr and an exit status, no traceback for bad input.

A traceback is for faults of ferrule itself, and for people who set FERRULE_DEBUG.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from ferrule.errors import FerruleError, SettingsError

BAD_INPUT, INTERRUPTED = 2, 130


def run_command(command: Callable[[], None]) -> int:
    """Run a command and return its exit status. Raises what is no fault of the input."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # An argument that isn't UTF-8, or a terminal that can't show a character, is no reason to fail.
        cast("Any", stream).reconfigure(errors="backslashreplace")
    message = None
    try:
        command()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = 1
    except Exception as error:
        message = describe_error(error)
        if message is None or os.environ.get("FERRULE_DEBUG"):
            raise
        print_error(message)
        status = BAD_INPUT
    return _flush_streams(status, message)


def print_error(text: str) -> None:
    """Print an error on stderr, on one line."""
    # Imported here, so that a command without errors loads nothing for them.
    from ferrule.session.terminal_output import print_notice

    print_notice(text)


def describe_error(error: Exception) -> str | None:
    """The message of an error that the input caused; None for any other error."""
    if isinstance(error, FerruleError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text: {error.reason} at byte {error.start}"
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{os.fsdecode(error.filename)}: {reason}" if error.filename is not None else reason
    # Looked up and not imported: an error of pydantic's can only come from where it was imported.
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(error, pydantic.ValidationError):
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in cast("Any", error).errors())
    return None


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Around imports: raises `SettingsError` with the extra to install where one of them fails."""
    try:
        yield
    except ImportError as error:
        missing = (error.name or "a part of it").partition(".")[0]
        raise SettingsError(f"this needs {missing}; install it with: pip install 'ferrule[{extra}]'") from error


def _open_closed_streams() -> None:
    """Where a process is started without one of its streams (`>&-`), Python has None in its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def _flush_streams(status: int, message: str | None) -> int:
    """The exit status after flushing: a failing write is an error like any other, printed unless it is `message`."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            # Without this Python would flush once more at exit, and print an error of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if isinstance(error, BrokenPipeError):
                continue
            problem = describe_error(error) or str(error)
            if problem != message:
                print_error(problem)
            status = BAD_INPUT
    return status
