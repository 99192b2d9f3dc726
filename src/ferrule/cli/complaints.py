"""Warnings of the package, told as a command tells things: in a line on stderr."""

from __future__ import annotations

import logging

from ferrule.cli.guard import complain


class Complaints(logging.Handler):
    """Tells what a logger warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())
