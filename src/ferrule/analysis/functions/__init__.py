"""What model-written code can call: curated functions, and what introspection finds in the installed packages.

`repository` is the public interface, `document` what is known of one function. Both phases are in one BM25 index
(`search`), which is cached (`cache`). Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.functions.repository import FunctionRepository

_HOMES = {"FunctionDoc": "document", "FunctionRepository": "repository"}

__all__ = ["FunctionDoc", "FunctionRepository"]

if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as exported

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
