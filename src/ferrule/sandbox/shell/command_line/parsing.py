"""Parses a command line with tree-sitter-bash (of the extra `coding`), within limits of size, nesting and time."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Any

from ferrule.sandbox.shell.command_line.reader import TreeReader
from ferrule.sandbox.shell.command_line.syntax import Sequence, UnreadableError

if TYPE_CHECKING:
    from tree_sitter import Parser

__all__ = ["MAX_BYTES", "parse_sequence"]

MAX_BYTES = 128 * 1024
"""The longest command line that is judged; the kernel passes no longer one to a shell."""

_MAX_BRACKETS = 200
# The grammar takes quadratic time, and can't be stopped, for a pipeline with an error at its end and for `f()f()f()`.
_MAX_SIGNS = 2000
_MAX_SECONDS = 1.0
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# The grammar drops a word that is only a dash (`cat -`); another letter in its place gives the right tree.
_LONE_DASH = re.compile(rb"(?<=[ \t])-(?=[ \t\n;|&<>)]|$)")
_BRACKETS = re.compile(rb"[({\[)}\]]")

_local = threading.local()
"""Has the parser of a thread: one can't be used by several at once."""


def parse_sequence(text: str) -> tuple[bytes, Sequence, int]:
    """Parse a command line.

    Returns its bytes, to which the positions refer, its statements, and how many substitutions are in them.

    Raises `UnreadableError` for what can't be read with certainty.
    """
    if not text.strip():
        raise UnreadableError("it is empty")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise UnreadableError("it can't be written as UTF-8") from error
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"it has {len(data)} bytes, and at most {MAX_BYTES} are judged")
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        raise UnreadableError(f"it has the control character {unprintable[0]!r}")
    _check_nesting(data)
    reader = TreeReader(data)
    return data, reader.read(_parse(data)), reader.substitutions


def _check_nesting(data: bytes) -> None:
    """Refuse what would take long to parse, or nests deeper than it could be read."""
    for sign in (b"|", b"()"):
        if data.count(sign) > _MAX_SIGNS:
            raise UnreadableError(f"it has more than {_MAX_SIGNS} signs {sign.decode()}")
    depth = 0
    for found in _BRACKETS.finditer(data):
        if found[0] in b"({[":
            depth += 1
            if depth > _MAX_BRACKETS:
                raise UnreadableError(f"it is nested more than {_MAX_BRACKETS} levels deep")
        elif depth:
            depth -= 1


def _parse(data: bytes) -> Any:
    """The root of the syntax tree. The grammar takes quadratic time for some texts, hence the limit."""
    parser: Parser | None = getattr(_local, "parser", None)
    if parser is None:
        parser = _local.parser = _load_parser()
    if b" -" in data and b"((" not in data:
        data = _LONE_DASH.sub(b"_", data)
    if len(data) < 1024:
        tree = parser.parse(data)
    else:
        end = time.thread_time() + _MAX_SECONDS
        try:
            tree = parser.parse(
                lambda offset, _: data[offset : offset + 65536],
                progress_callback=lambda _, has_error: has_error or time.thread_time() > end,
            )
        except ValueError as error:
            parser.reset()
            raise UnreadableError("it has a syntax error, or takes too long to parse") from error
    if tree.root_node.has_error:
        raise UnreadableError("it has a syntax error, or a part that only some shells can read")
    return tree.root_node


def _load_parser() -> Parser:
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError as error:
        raise UnreadableError(
            'commands can\'t be judged without tree-sitter-bash: pip install "ferrule[coding]"'
        ) from error
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
