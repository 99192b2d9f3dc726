"""The profile `advise`: what is certain to fail in the sandbox, or pointless there. Honest programs pass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from ferrule.sandbox.checks_finding import Finding, located, place
from ferrule.sandbox.checks_lists import (
    ADDRESS_READER,
    HOPELESS_CALLS,
    HOPELESS_MEMBERS,
    HOPELESS_MODULES,
    WORKING_MODULES,
    Hopeless,
)
from ferrule.sandbox.checks_names import Names


def advice(tree: ast.Module, code: str) -> Iterator[Finding]:
    """The findings, of which each name has one: at its first place."""
    # Walking the tree takes as long as parsing; most code holds none of the words.
    if not _words().search(code):
        return
    names = Names.of(tree)
    first: dict[str, Finding] = {}
    for node in names.nodes:
        for name, hopeless in _hopeless(node, names):
            message = f"{name} {hopeless.why}"
            found = located(node, code, rule=hopeless.rule, name=name, message=message, instead=hopeless.instead)
            first[name] = min(first.get(name, found), found, key=place)
    yield from first.values()


def _hopeless(node: ast.AST, names: Names) -> Iterator[tuple[str, Hopeless]]:
    """What in a node can't work."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _module(alias.name)
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        whole = list(_module(module))
        yield from whole
        for alias in [] if whole else node.names:
            full = f"{module}.{alias.name}"
            yield from _module(full)
            yield from _member(full)
    elif isinstance(node, ast.Attribute):
        yield from _member(names.full_name(node))
    elif isinstance(node, ast.Call):
        yield from _call(node, names)


def _module(name: str) -> Iterator[tuple[str, Hopeless]]:
    parts = name.split(".")
    if any(name == one or name.startswith(f"{one}.") for one in WORKING_MODULES):
        return
    for length in range(1, len(parts) + 1):
        found = HOPELESS_MODULES.get(".".join(parts[:length]))
        if found is not None:
            yield name, found
            return


def _member(name: str) -> Iterator[tuple[str, Hopeless]]:
    if name in HOPELESS_MEMBERS:
        yield name, HOPELESS_MEMBERS[name]


def _call(node: ast.Call, names: Names) -> Iterator[tuple[str, Hopeless]]:
    function = node.func
    if isinstance(function, ast.Name) and function.id not in names.bound and function.id in HOPELESS_CALLS:
        yield f"{function.id}()", HOPELESS_CALLS[function.id]
    first = node.args[0] if node.args else None
    is_reader = isinstance(function, ast.Attribute) and function.attr.startswith("read_")
    if is_reader and isinstance(first, ast.Constant) and _is_address(first.value):
        yield f"{names.full_name(function)} of an address", ADDRESS_READER


def _is_address(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://", "ftp://", "s3://"))


@lru_cache(maxsize=1)
def _words() -> re.Pattern[str]:
    """Words of which code holds one wherever there is something to find."""
    members = (name.rpartition(".")[2] for name in HOPELESS_MEMBERS)
    modules = (name.rpartition(".")[2] for name in HOPELESS_MODULES)
    return re.compile(rf"\b(?:read_|(?:{'|'.join(sorted({*members, *modules, *HOPELESS_CALLS}))})\b)")
