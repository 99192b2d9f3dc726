"""Resolves names in code by its text alone: which it binds itself, and which refer to modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

# Type parameters exist from Python 3.12 on.
_TYPE_PARAMETERS = tuple(getattr(ast, name) for name in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(ast, name))
_DEFINITIONS: Final[tuple[Any, ...]] = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *_TYPE_PARAMETERS)

_MAX_ATTRIBUTES: Final = 6
_MAX_NAME: Final = 100
"""Limits of a dotted name: its attributes, and the characters of each. No listed name has as many."""


@dataclass(slots=True)
class NameResolution:
    """The names of one piece of code, without distinguishing scopes: enough for advice.

    `nodes` is the whole tree, `bound` has the names that the code binds, `imported` the full name of each imported
    name, `text_buffers` the names that only ever refer to an `io.StringIO`.
    """

    nodes: list[ast.AST]
    bound: set[str] = field(default_factory=set)
    imported: dict[str, str] = field(default_factory=dict)
    text_buffers: set[str] = field(default_factory=set)

    @classmethod
    def analyze(cls, tree: ast.Module) -> NameResolution:
        """Collect the names of a tree."""
        names = cls(list(ast.walk(tree)))
        for node in names.nodes:
            names._collect_names(node)
        names._collect_text_buffers()
        return names

    def full_name(self, node: ast.expr) -> str:
        """Resolve an expression to a dotted name, through imports; empty if it isn't one, or is too long."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            # Called for each attribute of a chain, so without a limit a long chain would take quadratic time.
            if len(parts) == _MAX_ATTRIBUTES:
                return ""
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.imported.get(node.id, node.id), *reversed(parts)])

    def is_text_buffer(self, node: ast.expr) -> bool:
        """Check whether an expression is an `io.StringIO`."""
        if isinstance(node, ast.Name):
            return node.id in self.text_buffers
        return isinstance(node, ast.Call) and self.full_name(node.func) == "io.StringIO"

    def _collect_names(self, node: ast.AST) -> None:
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

    def _collect_text_buffers(self) -> None:
        others: set[str] = set()
        for node in self.nodes:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.Assign) and self.is_text_buffer(node.value):
                self.text_buffers.update(one.id for one in targets if isinstance(one, ast.Name))
            else:
                others.update(one.id for one in targets if isinstance(one, ast.Name))
        self.text_buffers -= others


def join_name(module: str, name: str) -> str:
    """Join the full name of what is imported from a module."""
    return f"{_shorten(module)}.{_shorten(name)}"


def _shorten(name: str) -> str:
    """Replace a name that is longer than any on a list: the code may use it any number of times."""
    return name if len(name) <= _MAX_NAME else "…"


def _list_imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """List the names that an import binds, each with its full name."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, join_name(node.module or "", alias.name)
        elif alias.asname:
            yield alias.asname, _shorten(alias.name)
        else:
            first = alias.name.partition(".")[0]
            yield first, first
