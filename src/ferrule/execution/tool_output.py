"""Keeps what tools print out of a command's own output: inside a tool, Python's standard output is standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO, cast

is_in_tool: ContextVar[bool] = ContextVar("is_in_tool", default=False)
"""Whether the code that runs is a tool's; a thread of the tool has a copy."""


class _RoutedOutput:
    """Standard output, except for tools."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return (sys.stderr if is_in_tool.get() else self._stream).write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def route_tool_output() -> Iterator[None]:
    """Send what tools print in this context to standard error. What their subprocesses write is not covered."""
    before = sys.stdout
    sys.stdout = cast("TextIO", _RoutedOutput(before))
    try:
        yield
    finally:
        sys.stdout = before
