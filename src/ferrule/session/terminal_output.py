"""Text for a terminal: notices and JSON, escaped so that they can't control it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ferrule._util.terminal_text import escape_json, escape_line, escape_text
from ferrule.errors import FerruleError


def print_notice(text: str) -> None:
    """Print a warning or an error on stderr, on one line that begins with `ferrule: `."""
    line = "; ".join(escape_line(one.strip()) for one in text.splitlines()).replace(":; ", ": ")
    print(f"ferrule: {line}", file=sys.stderr)


def print_json(value: object) -> None:
    """Print a value as indented JSON on stdout."""
    print(escape_json(value, 2))


class NoticeHandler(logging.Handler):
    """Prints the warnings of a logger as notices; from another `level` on if one is given."""

    def __init__(self, level: int = logging.WARNING) -> None:
        super().__init__(level)

    def emit(self, record: logging.LogRecord) -> None:
        print_notice(record.getMessage())


class ToolTracebackHandler(logging.Handler):
    """Prints the tracebacks of tools that raised, which `ferrule.execution` logs, but not of what they tell a model."""

    def emit(self, record: logging.LogRecord) -> None:
        from ferrule.execution.error_results import format_tool_traceback

        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, FerruleError):
            print(f"{record.getMessage()}\n{escape_text(format_tool_traceback(error))}", end="", file=sys.stderr)


@contextmanager
def print_tool_tracebacks() -> Iterator[None]:
    """Print the traceback of each tool that raises inside the block."""
    logger, handler = logging.getLogger("ferrule.execution"), ToolTracebackHandler()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@contextmanager
def print_warnings(name: str) -> Iterator[None]:
    """Print the warnings of a logger as notices inside the block; with `FERRULE_DEBUG` all that is informative."""
    logger, before = logging.getLogger(name), logging.getLogger(name).level
    is_verbose = bool(os.environ.get("FERRULE_DEBUG"))
    handler = NoticeHandler(logging.INFO if is_verbose else logging.WARNING)
    logger.addHandler(handler)
    if is_verbose:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
