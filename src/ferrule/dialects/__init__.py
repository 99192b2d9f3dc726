"""How tool calls are written for, and read from, each family of models. Pure text: no ids, no I/O.

The public names, each loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule._util.lazy_exports import make_getattr

if TYPE_CHECKING:
    from ferrule.dialects.catalogue import get_dialect, get_notation, list_dialects
    from ferrule.dialects.reader.message import MessageParts
    from ferrule.dialects.template.detection import detect_family

_HOMES = {
    "MessageParts": "reader.message",
    "detect_family": "template.detection",
    "list_dialects": "catalogue",
    "get_dialect": "catalogue",
    "get_notation": "catalogue",
}

__all__ = ["MessageParts", "detect_family", "get_dialect", "get_notation", "list_dialects"]


if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as exported
    __getattr__ = make_getattr(__name__, _HOMES)
