"""What becomes of a command that fails: one clear line on stderr and an exit status, never a traceback for bad input.

A traceback is for faults of ferrule itself, and for people who set FERRULE_DEBUG.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ferrule.errors import FerruleError

BAD_INPUT, INTERRUPTED = 2, 130


def guarded(command: Callable[[], None]) -> int:
    """Run a command and give its exit status. Raises what is no fault of the input."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # An argument that isn't UTF-8, or a terminal that can't show a character, is no reason to fail.
        cast("Any", stream).reconfigure(errors="backslashreplace")
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
        said = words_of(error)
        if said is None or os.environ.get("FERRULE_DEBUG"):
            raise
        complain(said)
        status = BAD_INPUT
    return _flushed(status)


def _open_closed_streams() -> None:
    """Where a process is started without one of its streams (`>&-`), Python has None in its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def complain(text: str) -> None:
    """Tell people what is wrong, in one line on stderr."""
    print(f"ferrule: {'; '.join(text.splitlines())}", file=sys.stderr)


def words_of(error: Exception) -> str | None:
    """What is wrong with the input, from an error that blames it; None for any other error."""
    if isinstance(error, FerruleError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text: {error.reason} at byte {error.start}"
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{os.fsdecode(error.filename)}: {reason}" if error.filename is not None else reason
    # pydantic is not imported for this: an error of its can only come from where it was.
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(error, pydantic.ValidationError):
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in cast("Any", error).errors())
    return None


def _flushed(status: int) -> int:
    """The exit status once all is written out: what can't be written is an error like any other."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            # Without this Python would try once more while it ends, and complain in words of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if isinstance(error, BrokenPipeError):
                continue
            complain(words_of(error) or str(error))
            status = BAD_INPUT
    return status
