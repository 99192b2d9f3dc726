"""Strings that look like paths or names of files, as the fourth seed's rule on string literals says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, Final

from ferrule.sandbox.checks_finding import Finding, Listed, Rule, located
from ferrule.sandbox.checks_names import Names

_PATHS: Final = (
    ("an absolute path", re.compile(r"/(?:[\w.@~$-].*)?")),
    ("a path on a drive", re.compile(r"[A-Za-z]:[\\/].*|\\\\\w.*")),
    ("a relative path", re.compile(r"\.{1,2}[\\/].*")),
    ("a home folder", re.compile(r"~(?:[\w.-]*[\\/].*)?")),
)
_SEED_EXTENSIONS: Final = "csv xlsx json pdf"
_OUR_EXTENSIONS: Final = (
    "7z bat bmp bz2 cfg db dll doc docx env exe feather gif gz h5 hdf5 htm html ini jpeg jpg key log npy npz ods orc"
    " parquet pem pickle pkl png ppt pptx ps1 py rtf sav sh so sqlite sqlite3 svg tar tex toml tsv txt xls xml xz yaml"
    " yml zip"
)
_EXTENSIONS: Final[dict[str, Listed]] = {
    **dict.fromkeys(_OUR_EXTENSIONS.split(), "ours"),
    **dict.fromkeys(_SEED_EXTENSIONS.split(), "seed"),
}
_EXTENSION: Final = re.compile(r"\.([A-Za-z0-9]{1,8})(?![\w.]*\w)")
_VALUE: Final = "…"
# f-strings, and the t-strings of Python 3.14, which have parts of the same names.
_FORMATTED: Final[tuple[Any, ...]] = (ast.JoinedStr, getattr(ast, "TemplateStr", ast.JoinedStr))
_LONGEST_SHOWN: Final = 60
_INSTEAD: Final = "no file but the run's inputs is there: use those, or text in an io.StringIO"


def text_findings(tree: ast.Module, names: Names, code: str) -> Iterator[Finding]:
    """The strings of the code that look like files; what it documents, and the text of an `io.StringIO`, are none."""
    for node, text in _strings(tree, names):
        for kind, pattern in _PATHS:
            if pattern.fullmatch(text.strip()):
                message = f"{_shown(text)} looks like {kind}"
                yield _finding(node, code, "path", text, message, "seed")
                break
        else:
            yield from _extension(node, text, code)


def _extension(node: ast.AST, text: str, code: str) -> Iterator[Finding]:
    for found in _EXTENSION.finditer(text):
        extension = found.group(1).lower()
        if extension in _EXTENSIONS:
            message = f"{_shown(text)} looks like the name of a file (.{extension})"
            yield _finding(node, code, "extension", text, message, _EXTENSIONS[extension])
            return


def _strings(tree: ast.Module, names: Names) -> Iterator[tuple[ast.AST, str]]:
    """Every string that the code works with; a formatted one whole, with its values as `…`."""
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


def _finding(node: ast.AST, code: str, rule: Rule, text: str, message: str, listed: Listed) -> Finding:
    return located(node, code, rule=rule, name=text, message=message, instead=_INSTEAD, listed=listed, refuses=True)


def _shown(text: str) -> str:
    shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return ascii(shown) if not shown.isprintable() else repr(shown)
