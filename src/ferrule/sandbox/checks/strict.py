"""The profile `strict`: finds every module, built-in, attribute, path and file name on the lists of forbidden names.

It refuses honest programs too (`list.remove`, `eval("2 + 3")`, `text.split("/")`), as the lists demand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, Final

from ferrule.sandbox.checks.findings import CheckHit, Listed, Rule, locate
from ferrule.sandbox.checks.name_lists import ATTRIBUTES, BUILTINS, IN_MEMORY_READERS, MODULES, ForbiddenName
from ferrule.sandbox.checks.name_resolution import NameResolution


def find_forbidden(tree: ast.Module) -> Iterator[CheckHit]:
    """Find all forbidden names and strings; each hit refuses the code."""
    names = NameResolution.analyze(tree)
    in_memory = {id(node.func) for node in names.nodes if isinstance(node, ast.Call) and _reads_text(node, names)}
    plain_io = _has_only_text_buffers(names)
    for node in names.nodes:
        for rule, name, forbidden in _find_forbidden_names(node, names):
            is_allowed = (rule == "module" and name == "io" and plain_io) or id(node) in in_memory
            if not is_allowed:
                yield _make_hit(node, rule, name, forbidden)
    yield from find_path_strings(tree, names)


def _find_forbidden_names(node: ast.AST, names: NameResolution) -> Iterator[tuple[Rule, str, ForbiddenName]]:
    """Find the names in a node that are on a list, before exceptions are applied."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _check_module(alias.name)
    elif isinstance(node, ast.ImportFrom):
        yield from _check_module(node.module or "")
        for alias in node.names:
            yield from _check_attribute(alias.name)
    elif isinstance(node, ast.Attribute):
        yield from _check_attribute(node.attr)
    elif isinstance(node, ast.Name) and node.id not in names.bound and node.id in BUILTINS:
        yield "builtin", node.id, BUILTINS[node.id]


def _check_module(name: str) -> Iterator[tuple[Rule, str, ForbiddenName]]:
    first = name.partition(".")[0]
    if first in MODULES:
        yield "module", first, MODULES[first]


def _check_attribute(name: str) -> Iterator[tuple[Rule, str, ForbiddenName]]:
    found = ATTRIBUTES.get(name) or IN_MEMORY_READERS.get(name)
    if found is not None:
        yield "attribute", name, found


def _reads_text(call: ast.Call, names: NameResolution) -> bool:
    """Check whether a call has the form `pd.read_csv(io.StringIO(...))`."""
    is_reader = isinstance(call.func, ast.Attribute) and call.func.attr in IN_MEMORY_READERS
    return is_reader and bool(call.args) and names.is_text_buffer(call.args[0])


def _has_only_text_buffers(names: NameResolution) -> bool:
    """Check whether the code uses `StringIO` from `io`, and nothing else of it."""
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


def _make_hit(node: ast.AST, rule: Rule, name: str, forbidden: ForbiddenName) -> CheckHit:
    message = f"the {_WORDS[rule]} {name} is not allowed"
    return CheckHit(*locate(node), rule, name, message, forbidden.instead, forbidden.listed, refuses=True)


_WORDS: dict[Rule, str] = {"module": "module", "builtin": "built-in", "attribute": "attribute"}


_PATHS: Final = (
    ("an absolute path", re.compile(r"/(?:[\w.@~$-].*)?")),
    ("a path on a drive", re.compile(r"[A-Za-z]:[\\/].*|\\\\\w.*")),
    ("a relative path", re.compile(r"\.{1,2}[\\/].*")),
    ("a home folder", re.compile(r"~(?:[\w.-]*[\\/].*)?")),
)
_ORIGINAL_EXTENSIONS: Final = "csv xlsx json pdf"
_ADDED_EXTENSIONS: Final = (
    "7z bat bmp bz2 cfg db dll doc docx env exe feather gif gz h5 hdf5 htm html ini jpeg jpg key log npy npz ods orc"
    " parquet pem pickle pkl png ppt pptx ps1 py rtf sav sh so sqlite sqlite3 svg tar tex toml tsv txt xls xml xz yaml"
    " yml zip"
)
_EXTENSIONS: Final[dict[str, Listed]] = {
    **dict.fromkeys(_ADDED_EXTENSIONS.split(), "added"),
    **dict.fromkeys(_ORIGINAL_EXTENSIONS.split(), "original"),
}
# The lookahead stops after a run of dots: searching on for a letter would make each dot scan the rest of the text.
_EXTENSION: Final = re.compile(r"\.([A-Za-z0-9]{1,8})(?!\.*\w)")
_VALUE: Final = "…"
# f-strings, and the t-strings of Python 3.14, whose nodes have the same fields.
_FORMATTED: Final[tuple[Any, ...]] = (ast.JoinedStr, getattr(ast, "TemplateStr", ast.JoinedStr))
_LONGEST_SHOWN: Final = 60
_INSTEAD: Final = "the run has no files except its inputs: use those, or text in an io.StringIO"


def find_path_strings(tree: ast.Module, names: NameResolution) -> Iterator[CheckHit]:
    """Find strings in the code that look like files, except in docstrings and in the text of an `io.StringIO`."""
    for node, text in _iterate_strings(tree, names):
        for kind, pattern in _PATHS:
            if pattern.fullmatch(text.strip()):
                message = f"{_quote_text(text)} looks like {kind}"
                yield _make_text_hit(node, "path", text, message, "original")
                break
        else:
            yield from _check_extension(node, text)


def _check_extension(node: ast.AST, text: str) -> Iterator[CheckHit]:
    for found in _EXTENSION.finditer(text):
        extension = found.group(1).lower()
        if extension in _EXTENSIONS:
            message = f"{_quote_text(text)} looks like the name of a file (.{extension})"
            yield _make_text_hit(node, "extension", text, message, _EXTENSIONS[extension])
            return


def _iterate_strings(tree: ast.Module, names: NameResolution) -> Iterator[tuple[ast.AST, str]]:
    """Iterate over the strings that the code uses; formatted ones whole, with their values as `…`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str | bytes):
                yield node, node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        elif isinstance(node, _FORMATTED):
            parts = [one.value if isinstance(one, ast.Constant) else _VALUE for one in node.values]
            yield node, "".join(map(str, parts))
            waiting += [one.value for one in node.values if not isinstance(one, ast.Constant)]
        elif not _is_documentation(node) and not (isinstance(node, ast.Call) and names.is_text_buffer(node)):
            waiting += ast.iter_child_nodes(node)


def _is_documentation(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _make_text_hit(node: ast.AST, rule: Rule, text: str, message: str, listed: Listed) -> CheckHit:
    return CheckHit(*locate(node), rule, text, message, _INSTEAD, listed, refuses=True)


def _quote_text(text: str) -> str:
    shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return ascii(shown) if not shown.isprintable() else repr(shown)
