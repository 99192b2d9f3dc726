"""Finds a family's notation by its name."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ferrule.dialects.family import Family, TextNotation
from ferrule.errors import DialectError

_GROUPS = (
    "json_objects", "json_arrays", "json_blocks", "function_xml", "key_values", "invokes", "pythonic", "typed",
    "in_words", "expressions",
)  # fmt: skip


@cache
def families() -> dict[str, Family]:
    """All families by name, in the order of their groups."""
    found: dict[str, Family] = {}
    for group in _GROUPS:
        for family in import_module(f"ferrule.dialects.families.{group}").FAMILIES:
            found[family.name] = family
    return found


def get_notation(name: str) -> TextNotation:
    """The notation of the family of that name, or of one that is also called so. Raises `DialectError`."""
    known = families()
    for family in known.values():
        if name == family.name or name in family.aliases:
            return TextNotation(family)
    raise DialectError(f"there is no notation {name!r}; known are {', '.join(sorted(known))}")
