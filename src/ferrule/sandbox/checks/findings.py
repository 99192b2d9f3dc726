"""What a check found in code: hits, and the findings that are made from the first of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

Rule = Literal["syntax", "length", "module", "builtin", "attribute", "path", "extension", "network", "process", "input"]
"""What a finding is about. The last three are missing in the sandbox; the five before them are the `strict` lists."""

MOST: Final = 100
"""Findings listed for one piece of code."""
_LONGEST_SHOWN: Final = 200

Listed = Literal["python", "original", "added"]
"""The source of a finding: the interpreter, the original lists of the `strict` profile, or the additions to them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    `line` and `column` count from 1, the column in characters. `name` is the module, function, attribute or string
    that it is about. `message` says what is wrong, `instead` what to do. `source` is the line of code, empty if it has
    more than 200 characters. `refuses` is true if the profile keeps the code from running because of it.
    """

    line: int
    column: int
    rule: Rule
    name: str
    message: str
    instead: str
    source: str = ""
    listed: Listed = "added"
    refuses: bool = False

    @property
    def caret(self) -> str:
        """The line of code, and below it a caret at the column; empty without a line."""
        if not self.source:
            return ""
        before = "".join(one if one == "\t" else " " for one in self.source[: self.column - 1])
        return f"{self.source}\n{before}^"

    def __str__(self) -> str:
        """Format it for a model or a person; with a caret for syntax errors only, since others name what they mean."""
        text = f"line {self.line}, column {self.column}: {self.message}"
        if self.instead:
            text += f"; {self.instead}"
        if self.rule != "syntax" or not self.caret:
            return text
        return f"{text}\n    " + self.caret.replace("\n", "\n    ")


@dataclass(frozen=True, slots=True, order=True)
class CheckHit:
    """A finding before its column is computed: the line from 1, and the parser's offset in it, in bytes of UTF-8."""

    line: int
    offset: int
    rule: Rule = field(compare=False)
    name: str = field(compare=False)
    message: str = field(compare=False)
    instead: str = field(compare=False)
    listed: Listed = field(default="added", compare=False)
    refuses: bool = field(default=False, compare=False)


def locate(node: ast.AST) -> tuple[int, int]:
    """Return a node's line and offset; for an attribute those of its name, which may be lines below its object."""
    if isinstance(node, ast.Attribute) and node.end_lineno and node.end_col_offset:
        return node.end_lineno, node.end_col_offset - len(node.attr.encode())
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0)


def list_findings(hits: Iterable[CheckHit], code: str) -> tuple[Finding, ...]:
    """Turn the first `MOST` hits into findings, sorted by line, and add one that says how many were omitted.

    The code is split into lines once, so the cost is linear in its length.
    """
    ordered = sorted(hits)
    if not ordered:
        return ()
    lines = split_lines(code)
    listed, left = ordered[:MOST], ordered[MOST:]
    findings = [_make_finding(hit, lines[hit.line - 1] if hit.line <= len(lines) else "") for hit in listed]
    if left:
        more = f"{len(left):,} more findings are not listed"
        refuses = any(hit.refuses for hit in left)
        findings.append(Finding(left[0].line, 1, "length", "", more, "fix these first", refuses=refuses))
    return tuple(findings)


def _make_finding(hit: CheckHit, line: str) -> Finding:
    # The parser counts bytes of UTF-8, people count characters.
    before = hit.offset if line.isascii() else len(line.encode()[: hit.offset].decode(errors="replace"))
    details = (hit.rule, hit.name, hit.message, hit.instead)
    return Finding(hit.line, before + 1, *details, cut_source_line(line), hit.listed, hit.refuses)


def cut_source_line(line: str) -> str:
    """Return a line of code for a finding, or an empty text if it is long."""
    return line if len(line) <= _LONGEST_SHOWN else ""


def cut_text(text: str) -> str:
    """Shorten text that a message quotes from the code."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def split_lines(code: str) -> list[str]:
    """Split code into lines, as the parser counts them."""
    return _LINE_END.split(code)


# Not `splitlines`: for the parser a form feed or a line separator within a string doesn't end a line.
_LINE_END = re.compile(r"\r\n|\r|\n")
