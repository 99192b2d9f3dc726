"""Text for a terminal: notices and JSON, escaped so that they can't control it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ferrule._util.terminal_text import escape_json, escape_line


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
