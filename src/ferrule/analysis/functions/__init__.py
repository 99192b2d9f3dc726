"""What model-written code can call: curated functions, and what introspection finds in the installed packages.

`repository` is the public interface, `document` what is known of one function. Both phases are in one BM25 index
(`search`), which is cached (`cache`). Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._util.lazy_exports import make_getattr

if TYPE_CHECKING:
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.functions.repository import FunctionRepository

_HOMES = {"FunctionDoc": "document", "FunctionRepository": "repository"}

__all__ = ["FunctionDoc", "FunctionRepository"]

if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as exported
    __getattr__ = make_getattr(__name__, _HOMES)
