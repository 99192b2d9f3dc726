"""Text for a terminal: notices, and calls and results on one line, escaped so that they can't control the terminal."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ferrule.conversation import Image, MalformedCall, Text, ToolCall, ToolResult
from ferrule.execution.terminal_text import escape_json, escape_line, escape_text

_LONGEST = 200


def print_notice(text: str) -> None:
    """Print a warning or an error on stderr, on one line that begins with `ferrule: `."""
    print(f"ferrule: {'; '.join(map(escape_line, text.splitlines()))}", file=sys.stderr)


def print_json(value: object) -> None:
    """Print a value as indented JSON on stdout."""
    print(escape_json(value, 2))


class NoticeHandler(logging.Handler):
    """Prints the warnings of a logger as notices."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        print_notice(record.getMessage())


@contextmanager
def print_warnings(name: str) -> Iterator[None]:
    """Print the warnings of a logger as notices inside the block."""
    logger, handler = logging.getLogger(name), NoticeHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def summarize_arguments(call: ToolCall | MalformedCall) -> str:
    """Write the arguments of a call on one line: the plain text of a single string, else `name=value` pairs."""
    if isinstance(call, MalformedCall):
        return _shorten(call.raw)
    try:
        arguments = call.decode()
    except (ValueError, RecursionError):
        return _shorten(call.arguments)
    if not isinstance(arguments, dict):
        return _shorten(call.arguments)
    values = list(arguments.values())
    if len(values) == 1 and isinstance(values[0], str):
        return _shorten(values[0])
    return _shorten(", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()))


def summarize_result(result: ToolResult | str) -> str:
    """Write a result, or the progress text of a running call, on one line."""
    if isinstance(result, str):
        return _shorten(result)
    return "  ".join(_shorten(part.text) if isinstance(part, Text) else describe_image(part) for part in result.content)


def describe_image(image: Image) -> str:
    """Write an image's media type, size and hash."""
    return f"[{escape_line(image.media_type)}, {len(image.data):,} bytes, {image.hash}]"


def _shorten(text: str) -> str:
    text = text.strip()
    if len(text) <= _LONGEST:
        return _escape_line_ends(text)
    half = _LONGEST // 2
    left_out = f"{len(text) - 2 * half:,} characters"
    return f"{_escape_line_ends(text[:half])} … {left_out} … {_escape_line_ends(text[-half:])}"


def _escape_line_ends(text: str) -> str:
    return escape_text(text).replace("\n", "\\n").replace("\t", "\\t")
