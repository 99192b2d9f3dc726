"""What names mean in a piece of code, as far as its text tells: which it binds itself, which stand for modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

# Parameters of types came with Python 3.12.
_TYPE_PARAMETERS = tuple(getattr(ast, name) for name in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(ast, name))
_DEFINITIONS: Final[tuple[Any, ...]] = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *_TYPE_PARAMETERS)

_MOST_PARTS: Final = 6
_LONGEST_NAME: Final = 100
"""Attributes in a row, and characters of a name, that are followed: no listed name has as many."""


@dataclass(slots=True)
class NameResolution:
    """The names of one piece of code, all scopes as one: advice needs no more.

    `nodes` is its whole tree, `bound` holds the names that it gives a meaning itself, `imported` the full name of
    what an imported name stands for, `text_buffers` the names that only ever hold an `io.StringIO`.
    """

    nodes: list[ast.AST]
    bound: set[str] = field(default_factory=set)
    imported: dict[str, str] = field(default_factory=dict)
    text_buffers: set[str] = field(default_factory=set)

    @classmethod
    def analyze(cls, tree: ast.Module) -> NameResolution:
        """Those of a tree."""
        names = cls(list(ast.walk(tree)))
        for node in names.nodes:
            names._learn(node)
        names._learn_text_buffers()
        return names

    def full_name(self, node: ast.expr) -> str:
        """The dotted name of what an expression stands for, through imports; empty where it isn't one, or is long."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            # Each attribute of a chain asks: its length must not count as often.
            if len(parts) == _MOST_PARTS:
                return ""
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.imported.get(node.id, node.id), *reversed(parts)])

    def is_text_buffer(self, node: ast.expr) -> bool:
        """Whether an expression is an `io.StringIO`."""
        if isinstance(node, ast.Name):
            return node.id in self.text_buffers
        return isinstance(node, ast.Call) and self.full_name(node.func) == "io.StringIO"

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)
        elif isinstance(node, _DEFINITIONS):
            self.bound.add(node.name)
        elif isinstance(node, ast.arg):
            self.bound.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for local, full in _list_imports(node):
                self.bound.add(local)
                self.imported[local] = full
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            self.bound.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            self.bound.add(node.rest)

    def _learn_text_buffers(self) -> None:
        others: set[str] = set()
        for node in self.nodes:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.Assign) and self.is_text_buffer(node.value):
                self.text_buffers.update(one.id for one in targets if isinstance(one, ast.Name))
            else:
                others.update(one.id for one in targets if isinstance(one, ast.Name))
        self.text_buffers -= others


def join_name(module: str, name: str) -> str:
    """The full name of what is imported from a module."""
    return f"{_shorten(module)}.{_shorten(name)}"


def _shorten(name: str) -> str:
    """A name, or a sign in place of one that is longer than any on a list: it may be used any number of times."""
    return name if len(name) <= _LONGEST_NAME else "…"


def _list_imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The names that an import binds, each with what it stands for."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, join_name(node.module or "", alias.name)
        elif alias.asname:
            yield alias.asname, _shorten(alias.name)
        else:
            first = alias.name.partition(".")[0]
            yield first, first
