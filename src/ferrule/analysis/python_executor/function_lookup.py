"""The functions that a methodology names: found in the repository, or said not to exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ferrule.analysis.functions.document import FunctionDoc
    from ferrule.analysis.python_executor.stages import Methodology

_MOST_NAMED: Final = 12
_FOUND_BY_WORDS: Final = 3


class FunctionSource(Protocol):
    """Where functions are found: `ferrule.analysis.functions`' `FunctionRepository`."""

    def search(self, query: str, limit: int = 5) -> list[FunctionDoc]:
        """The functions whose descriptions are nearest to a query, best first."""
        ...

    async def look_up(self, path: str) -> FunctionDoc | None:
        """The function of a path, or None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class FoundFunctions:
    """The functions that code is written with, and the paths that lead to none."""

    functions: tuple[FunctionDoc, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """What is said of the missing ones; empty if there are none."""
        return f"not installed or not existing: {', '.join(self.missing)}" if self.missing else ""


async def look_up_functions(source: FunctionSource, methodology: Methodology) -> FoundFunctions:
    """Look up the recommended paths, then a few functions by the methods' names."""
    found: dict[str, FunctionDoc] = {}
    missing = []
    for path in _list_paths(methodology.recommended_function_paths):
        document = await source.look_up(path)
        if document is None:
            missing.append(path)
        else:
            found[document.path] = document
    for method in methodology.methods[:_MOST_NAMED]:
        if len(found) >= _MOST_NAMED:
            break
        for document in source.search(method, _FOUND_BY_WORDS):
            found.setdefault(document.path, document)
    return FoundFunctions(tuple(found.values())[:_MOST_NAMED], tuple(missing))


def _list_paths(recommended: Sequence[str]) -> list[str]:
    """Paths as models write them, without parentheses, backticks and duplicates."""
    cleaned = (path.partition("(")[0].strip(" `'\".") for path in recommended)
    return list(dict.fromkeys(path for path in cleaned if path))[:_MOST_NAMED]
