"""The profile `seed`: every module, built-in, attribute, path and file name that the fourth seed forbids, and ours.

It refuses honest programs (`list.remove`, `eval("2 + 3")`, `text.split("/")`): that is what the lists say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ferrule.sandbox.checks_finding import Finding, Rule, located
from ferrule.sandbox.checks_lists import ATTRIBUTES, BUILTINS, IN_MEMORY_READERS, MODULES, Forbidden
from ferrule.sandbox.checks_names import Names
from ferrule.sandbox.checks_text import text_findings


def seed_findings(tree: ast.Module, code: str) -> Iterator[Finding]:
    """All of them, each of which refuses."""
    names = Names.of(tree)
    in_memory = {id(node.func) for node in names.nodes if isinstance(node, ast.Call) and _reads_text(node, names)}
    plain_io = _has_only_text_buffers(names)
    for node in names.nodes:
        for rule, name, forbidden in _forbidden(node, names):
            is_allowed = (rule == "module" and name == "io" and plain_io) or id(node) in in_memory
            if not is_allowed:
                yield _finding(node, code, rule, name, forbidden)
    yield from text_findings(tree, names, code)


def _forbidden(node: ast.AST, names: Names) -> Iterator[tuple[Rule, str, Forbidden]]:
    """What in a node is on a list, before the allowances."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _module(alias.name)
    elif isinstance(node, ast.ImportFrom):
        yield from _module(node.module or "")
        for alias in node.names:
            yield from _attribute(alias.name)
    elif isinstance(node, ast.Attribute):
        yield from _attribute(node.attr)
    elif isinstance(node, ast.Name) and node.id not in names.bound and node.id in BUILTINS:
        yield "builtin", node.id, BUILTINS[node.id]


def _module(name: str) -> Iterator[tuple[Rule, str, Forbidden]]:
    first = name.partition(".")[0]
    if first in MODULES:
        yield "module", first, MODULES[first]


def _attribute(name: str) -> Iterator[tuple[Rule, str, Forbidden]]:
    found = ATTRIBUTES.get(name) or IN_MEMORY_READERS.get(name)
    if found is not None:
        yield "attribute", name, found


def _reads_text(call: ast.Call, names: Names) -> bool:
    """Whether a call is of the kind `pd.read_csv(io.StringIO(...))`."""
    is_reader = isinstance(call.func, ast.Attribute) and call.func.attr in IN_MEMORY_READERS
    return is_reader and bool(call.args) and names.is_text_buffer(call.args[0])


def _has_only_text_buffers(names: Names) -> bool:
    """Whether `StringIO` is what the code takes from `io`, and all that it takes."""
    aliases = {local for local, full in names.imported.items() if full == "io"}
    uses = [node for node in names.nodes if isinstance(node, ast.Name) and node.id in aliases]
    buffers = [
        node
        for node in names.nodes
        if isinstance(node, ast.Attribute) and node.attr == "StringIO" and names.full_name(node) == "io.StringIO"
    ]
    taken = {full for full in names.imported.values() if full.startswith("io.")}
    only_buffers = taken <= {"io.StringIO"} and {id(node) for node in uses} <= {id(node.value) for node in buffers}
    return only_buffers and bool(taken or buffers)


def _finding(node: ast.AST, code: str, rule: Rule, name: str, forbidden: Forbidden) -> Finding:
    return located(
        node,
        code,
        rule=rule,
        name=name,
        message=f"the {_WORDS[rule]} {name} is not allowed",
        instead=forbidden.instead,
        listed=forbidden.listed,
        refuses=True,
    )


_WORDS: dict[Rule, str] = {"module": "module", "builtin": "built-in", "attribute": "attribute"}
