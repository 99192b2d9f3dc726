"""Reading code: its syntax tree, or the one syntax error that is in the way, with what is likely meant."""

from __future__ import annotations

import ast
import re
import threading
import warnings
from typing import Final

from ferrule.sandbox.checks_finding import Finding, code_line

LONGEST: Final = 200_000
"""Characters of code that are read: parsing more would hold up the program for longer than advice is worth."""

_FLAGS: Final = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_NOTEBOOK: Final = re.compile(r"\s*[!%]")
_UNREADABLE: Final = re.compile("[\0\ud800-\udfff]")
_LONGEST_SHOWN: Final = 200
# The filters of warnings belong to the whole process: two threads must not put them back in the wrong order.
_quiet = threading.Lock()


def read(code: str) -> ast.Module | Finding:
    """The tree of `code`, compiled once so that an error which the parser alone overlooks is told too."""
    unreadable = _unreadable(code)
    if unreadable is not None:
        return unreadable
    try:
        with _quiet, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(code, "<code>", "exec", ast.PyCF_ONLY_AST | _FLAGS, True)
            compile(tree, "<code>", "exec", _FLAGS, True)
    except SyntaxError as error:
        return _syntax_finding(error, code)
    except (RecursionError, MemoryError):
        return _finding(code, 1, 1, "the code is nested too deeply to be read", "split it into smaller expressions")
    assert isinstance(tree, ast.Module)
    return tree


def too_long(code: str) -> tuple[Finding, ...]:
    """The finding that code is too long to be checked."""
    message = f"{len(code):,} characters of code are more than the {LONGEST:,} that are checked"
    return (Finding(1, 1, "length", "", message, "send data as inputs, not in the code", refuses=True),)


def _syntax_finding(error: SyntaxError, code: str) -> Finding:
    line = max(error.lineno or 1, 1)
    message = f"{type(error).__name__}: {error.msg}"
    return _finding(code, line, max(error.offset or 1, 1), message, _likely(code_line(code, line), code))


def _unreadable(code: str) -> Finding | None:
    """The first character that no code can hold: a null byte, or a lone surrogate, which no encoding can carry."""
    found = _UNREADABLE.search(code)
    if found is None:
        return None
    before = code[: found.start()]
    column = found.start() - (before.rfind("\n") + 1) + 1
    message = f"SyntaxError: the character U+{ord(found.group()):04X}, which no code can hold"
    return _finding(code, before.count("\n") + 1, column, message, "write it as an escape, such as \\x00")


def _finding(code: str, line: int, column: int, message: str, instead: str) -> Finding:
    source = code_line(code, line)
    shown = source if len(source) <= _LONGEST_SHOWN and not _UNREADABLE.search(source) else ""
    return Finding(line, column, "syntax", "", message, instead, shown, "python")


def _likely(source: str, code: str) -> str:
    if source.lstrip().startswith("```") or code.lstrip().startswith("```"):
        return "send the code alone, without the ``` lines around it"
    if _NOTEBOOK.match(source):
        return "this is a notebook's command, not Python: leave it out; nothing can be installed or run besides"
    return ""
