"""One thing that a check found in code."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Literal

Rule = Literal["syntax", "length", "module", "builtin", "attribute", "path", "extension", "network", "process", "input"]
"""What a finding is about. The last three are what the sandbox can't give, the five before them the seed's lists."""

Listed = Literal["python", "seed", "ours"]
"""Whose word it is: the interpreter's, the fourth seed's lists, or ours beside them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    `line` and `column` count from 1, the column in characters. `name` is the module, function, attribute or string
    that it is about. `message` says what is wrong, `instead` what to do. `source` is the line of code. `refuses` is
    true where the profile is one under which this keeps the code from running.
    """

    line: int
    column: int
    rule: Rule
    name: str
    message: str
    instead: str
    source: str = ""
    listed: Listed = "ours"
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


def place(finding: Finding) -> tuple[int, int]:
    """What findings are sorted by."""
    return finding.line, finding.column


def located(
    node: ast.AST,
    code: str,
    *,
    rule: Rule,
    name: str,
    message: str,
    instead: str,
    listed: Listed = "ours",
    refuses: bool = False,
) -> Finding:
    """A finding at the place of a node; of an attribute at its name, which may be lines below what it is of."""
    if isinstance(node, ast.Attribute) and node.end_lineno and node.end_col_offset:
        line, offset = node.end_lineno, node.end_col_offset - len(node.attr.encode())
    else:
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    source = code_line(code, line)
    # The parser counts bytes of UTF-8, people count characters.
    column = len(source.encode()[:offset].decode(errors="replace")) + 1
    return Finding(line, column, rule, name, message, instead, source, listed, refuses)


def code_line(code: str, line: int) -> str:
    """A line of code by its number from 1, as the parser counts; empty where there is none."""
    lines = _LINE_END.split(code)
    return lines[line - 1] if line <= len(lines) else ""


# Not `splitlines`: to the parser a form feed or a line separator inside of a string ends no line.
_LINE_END = re.compile(r"\r\n|\r|\n")
