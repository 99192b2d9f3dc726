"""Parses Python in any thread.

Python 3.11 counts the depth of a syntax tree under construction in one number for all threads: two that parse at once
make it wrong, and one of them gets `SystemError: AST constructor recursion depth mismatch` for code that is right
(CPython issue 106905).
"""

from __future__ import annotations

import ast
import threading
from contextlib import suppress
from typing import Final, Literal, overload

_ATTEMPTS: Final = 20
_lock: Final = threading.Lock()


@overload
def parse_python(
    source: str | bytes, file_name: str = ..., mode: Literal["exec"] = ..., flags: int = ...
) -> ast.Module: ...
@overload
def parse_python(source: str | bytes, file_name: str = ..., *, mode: Literal["eval"]) -> ast.Expression: ...
def parse_python(
    source: str | bytes, file_name: str = "<unknown>", mode: Literal["exec", "eval"] = "exec", flags: int = 0
) -> ast.AST:
    """The syntax tree of `source`; `flags` are those of `compile`.

    Raises what `ast.parse` raises, for errors in the source alone.
    """
    for _ in range(_ATTEMPTS):
        # The lock keeps our own threads apart, the repetition everybody else's: the number is set anew for each tree.
        with suppress(SystemError), _lock:
            return _parse(source, file_name, mode, flags)
    return _parse(source, file_name, mode, flags)


def _parse(source: str | bytes, file_name: str, mode: str, flags: int) -> ast.AST:
    tree: ast.AST = compile(source, file_name, mode, ast.PyCF_ONLY_AST | flags, dont_inherit=True)
    return tree
