"""Parses code into its syntax tree, or returns the syntax error, with a suggested fix if the cause is likely."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Final

from ferrule._util.syntax_tree import parse_python
from ferrule.sandbox.checks.findings import Finding, cut_source_line, cut_text, split_lines

LONGEST: Final = 200_000
"""Maximum characters of checked code: parsing more would take longer than advice is worth."""

_FLAGS: Final = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_NOTEBOOK: Final = re.compile(r"\s*[!%]")
_UNREADABLE: Final = re.compile("[\0\ud800-\udfff]")
_FILE: Final = "<checked code>"
"""The file name given to `compile`, unique so that our warning filter matches only checked code."""


def parse_code(code: str) -> ast.Module | Finding:
    """Parse `code`, and compile it once to find the errors that the parser alone misses."""
    unreadable = _find_unreadable(code)
    if unreadable is not None:
        return unreadable
    try:
        _ignore_warnings()
        tree = parse_python(code, _FILE, flags=_FLAGS)
        compile(tree, _FILE, "exec", _FLAGS, True)
    except SyntaxError as error:
        return _make_syntax_finding(error, code)
    except (RecursionError, MemoryError):
        return _make_finding(
            "", 1, 1, "the code is nested too deeply, or is too large, to be read", "split it into smaller expressions"
        )
    return tree


def _ignore_warnings() -> None:
    """Suppress the parser's warnings about checked code.

    `catch_warnings` isn't thread-safe, so a permanent filter for this file name is installed.
    """
    if not warnings.filters or warnings.filters[0][3] != _FILE_PATTERN:
        warnings.filterwarnings("ignore", module=_FILE_PATTERN.pattern)


_FILE_PATTERN: Final = re.compile(re.escape(_FILE))


def report_too_long(code: str) -> tuple[Finding, ...]:
    """Return the finding for code that is too long to be checked."""
    message = f"{len(code):,} characters of code are more than the {LONGEST:,} that are checked"
    return (Finding(1, 1, "length", "", message, "send data as inputs, not in the code", refuses=True),)


def _make_syntax_finding(error: SyntaxError, code: str) -> Finding:
    line = max(error.lineno or 1, 1)
    message = f"{type(error).__name__}: {error.msg}"
    lines = split_lines(code)
    source = lines[line - 1] if line <= len(lines) else ""
    return _make_finding(source, line, max(error.offset or 1, 1), cut_text(message), _suggest_fix(source, code))


def _find_unreadable(code: str) -> Finding | None:
    """Find the first invalid character: a null byte, or a lone surrogate, which can't be encoded."""
    found = _UNREADABLE.search(code)
    if found is None:
        return None
    before = split_lines(code[: found.start()])
    message = f"SyntaxError: the character U+{ord(found.group()):04X}, which no code can hold"
    return _make_finding("", len(before), len(before[-1]) + 1, message, "write it as an escape, such as \\x00")


def _make_finding(source: str, line: int, column: int, message: str, instead: str) -> Finding:
    return Finding(line, column, "syntax", "", message, instead, cut_source_line(source), "python")


def _suggest_fix(source: str, code: str) -> str:
    if source.lstrip().startswith("```") or code.lstrip().startswith("```"):
        return "send the code alone, without the ``` lines around it"
    if _NOTEBOOK.match(source):
        return "this is a notebook's command, not Python: leave it out; nothing can be installed or run besides"
    return ""
