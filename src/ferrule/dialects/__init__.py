"""How tool calls are written for, and read from, each family of models. Pure text: no ids, no I/O.

The public names, each loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.dialects.catalogue import get_dialect, get_notation, list_dialects
    from ferrule.dialects.template.detection import detect_family

_HOMES = {
    "detect_family": "template.detection",
    "list_dialects": "catalogue",
    "get_dialect": "catalogue",
    "get_notation": "catalogue",
}

__all__ = ["detect_family", "get_dialect", "get_notation", "list_dialects"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
