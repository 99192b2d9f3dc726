"""The coding agent: file, search and shell tools for one workspace, and the program `ferrule code`.

`tools` offers them to any pipeline. Importing this starts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ferrule.coding.registry import tools

__all__ = ["tools"]


def __getattr__(name: str) -> Any:
    """Import `tools` when it is first used: the program shows its prompt before it needs them."""
    if name == "tools":
        from ferrule.coding import registry

        return registry.tools
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
