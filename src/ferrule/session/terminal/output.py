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
    """Prints the records of a logger, from its level on, as notices."""

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
    with _handle_records("ferrule.execution", ToolTracebackHandler(), logging.DEBUG):
        yield


@contextmanager
def print_warnings(name: str) -> Iterator[None]:
    """Print the warnings of a logger as notices inside the block; with `FERRULE_DEBUG` all that is informative."""
    if os.environ.get("FERRULE_DEBUG"):
        handled = _handle_records(name, NoticeHandler(logging.INFO), logging.INFO)
    else:
        handled = _handle_records(name, NoticeHandler(logging.WARNING))
    with handled:
        yield


@contextmanager
def _handle_records(name: str, handler: logging.Handler, level: int | None = None) -> Iterator[None]:
    """Give a logger a handler inside the block, and if one is given a level."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.addHandler(handler)
    if level is not None:
        logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
