"""The profile `advise`: finds what is certain to fail or pointless in the sandbox. Honest programs pass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from ferrule.sandbox.checks.findings import CheckHit, cut_text, locate
from ferrule.sandbox.checks.name_lists import (
    ADDRESS_READER,
    UNUSABLE_CALLS,
    UNUSABLE_MEMBERS,
    UNUSABLE_MODULES,
    WORKING_MODULES,
    UnusableName,
)
from ferrule.sandbox.checks.name_resolution import NameResolution, join_name

_MAX_PARTS: Final = max(name.count(".") for name in UNUSABLE_MODULES) + 1
"""Parts of a module's name that are compared with the list."""


def find_advice(tree: ast.Module, code: str) -> Iterator[CheckHit]:
    """Find unusable names, each reported once, where it first occurs."""
    # Walking the tree takes as long as parsing, and most code has none of these words.
    if not _collect_trigger_words().search(code):
        return
    names = NameResolution.analyze(tree)
    first: dict[str, CheckHit] = {}
    for node in names.nodes:
        for name, unusable in _find_unusable(node, names):
            message = f"{cut_text(name)} {unusable.why}"
            found = CheckHit(*locate(node), unusable.rule, name, message, unusable.instead)
            first[name] = min(first.get(name, found), found)
    yield from first.values()


def _find_unusable(node: ast.AST, names: NameResolution) -> Iterator[tuple[str, UnusableName]]:
    """Find the unusable names in a node."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _check_module(alias.name)
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        whole = list(_check_module(module))
        yield from whole
        for alias in [] if whole else node.names:
            full = join_name(module, alias.name)
            yield from _check_module(full)
            yield from _check_member(full)
    elif isinstance(node, ast.Attribute):
        yield from _check_member(names.full_name(node))
    elif isinstance(node, ast.Call):
        yield from _check_call(node, names)


def _check_module(name: str) -> Iterator[tuple[str, UnusableName]]:
    parts = name.split(".", _MAX_PARTS)
    if any(name == one or name.startswith(f"{one}.") for one in WORKING_MODULES):
        return
    for length in range(1, min(len(parts), _MAX_PARTS) + 1):
        found = UNUSABLE_MODULES.get(".".join(parts[:length]))
        if found is not None:
            yield name, found
            return


def _check_member(name: str) -> Iterator[tuple[str, UnusableName]]:
    if name in UNUSABLE_MEMBERS:
        yield name, UNUSABLE_MEMBERS[name]


def _check_call(node: ast.Call, names: NameResolution) -> Iterator[tuple[str, UnusableName]]:
    function = node.func
    if isinstance(function, ast.Name) and function.id not in names.bound and function.id in UNUSABLE_CALLS:
        yield f"{function.id}()", UNUSABLE_CALLS[function.id]
    first = node.args[0] if node.args else None
    is_reader = isinstance(function, ast.Attribute) and function.attr.startswith("read_")
    if is_reader and isinstance(first, ast.Constant) and _is_address(first.value):
        yield f"{names.full_name(function)} of an address", ADDRESS_READER


def _is_address(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://", "ftp://", "s3://"))


@lru_cache(maxsize=1)
def _collect_trigger_words() -> re.Pattern[str]:
    """Build a pattern that matches any code with something to find."""
    members = (name.rpartition(".")[2] for name in UNUSABLE_MEMBERS)
    modules = (name.rpartition(".")[2] for name in UNUSABLE_MODULES)
    return re.compile(rf"\b(?:read_|(?:{'|'.join(sorted({*members, *modules, *UNUSABLE_CALLS}))})\b)")
