"""What a check found in code: the places that it came upon, and the findings that are made of the first of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

Rule = Literal["syntax", "length", "module", "builtin", "attribute", "path", "extension", "network", "process", "input"]
"""What a finding is about. The last three are what the sandbox lacks, the five before them the `strict` lists."""

MOST: Final = 100
"""Findings that are listed of one piece of code."""
_LONGEST_SHOWN: Final = 200

Listed = Literal["python", "original", "added"]
"""Where a finding is from: the interpreter, the original lists of the `strict` profile, or what was added to them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    `line` and `column` count from 1, the column in characters. `name` is the module, function, attribute or string
    that it is about. `message` says what is wrong, `instead` what to do. `source` is the line of code. `refuses` is
    true where the profile is one under which this keeps the code from running. A line of more than 200 characters is
    not shown: `source` is empty then.
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
        """The line of code, and below it a caret at the column; empty where there is no such line."""
        if not self.source:
            return ""
        before = "".join(one if one == "\t" else " " for one in self.source[: self.column - 1])
        return f"{self.source}\n{before}^"

    def __str__(self) -> str:
        """All of it, for a model or a person; the caret for syntax errors only, since elsewhere the name tells."""
        said = f"line {self.line}, column {self.column}: {self.message}"
        if self.instead:
            said += f"; {self.instead}"
        if self.rule != "syntax" or not self.caret:
            return said
        return f"{said}\n    " + self.caret.replace("\n", "\n    ")


@dataclass(frozen=True, slots=True, order=True)
class CheckHit:
    """A finding before its place is worked out: the line from 1, and in it the bytes of UTF-8, as the parser counts."""

    line: int
    offset: int
    rule: Rule = field(compare=False)
    name: str = field(compare=False)
    message: str = field(compare=False)
    instead: str = field(compare=False)
    listed: Listed = field(default="added", compare=False)
    refuses: bool = field(default=False, compare=False)


def locate(node: ast.AST) -> tuple[int, int]:
    """Line and offset of a node; of an attribute those of its name, which may be lines below what it is of."""
    if isinstance(node, ast.Attribute) and node.end_lineno and node.end_col_offset:
        return node.end_lineno, node.end_col_offset - len(node.attr.encode())
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0)


def list_findings(hits: Iterable[CheckHit], code: str) -> tuple[Finding, ...]:
    """The first `MOST` hits as findings, in the order of the lines, and one more that says how many were left out.

    A line is looked up in lines that were split once: what is found costs what the code is long, and no more.
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
        findings.append(Finding(left[0].line, 1, "length", "", more, "mend these first", refuses=refuses))
    return tuple(findings)


def _make_finding(hit: CheckHit, line: str) -> Finding:
    # The parser counts bytes of UTF-8, people count characters.
    before = hit.offset if line.isascii() else len(line.encode()[: hit.offset].decode(errors="replace"))
    said = (hit.rule, hit.name, hit.message, hit.instead)
    return Finding(hit.line, before + 1, *said, cut_source_line(line), hit.listed, hit.refuses)


def cut_source_line(line: str) -> str:
    """A line of code as a finding shows it: not at all where it is long."""
    return line if len(line) <= _LONGEST_SHOWN else ""


def cut_text(text: str) -> str:
    """Text from the code as a message quotes it: its beginning, where it is long."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def split_lines(code: str) -> list[str]:
    """The lines of code, as the parser counts them."""
    return _LINE_END.split(code)


# Not `splitlines`: to the parser a form feed or a line separator inside of a string ends no line.
_LINE_END = re.compile(r"\r\n|\r|\n")
