"""Finds a family's notation by its name."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ferrule.dialects import families as declared
from ferrule.dialects.family import Family, TextNotation
from ferrule.errors import DialectError
from ferrule.plugins import plugin_named


@cache
def families() -> dict[str, Family]:
    """All families by name: those of every file in `families/`, in the order of the files' names."""
    found: dict[str, Family] = {}
    for module in sorted(module.name for module in iter_modules(declared.__path__)):
        for family in import_module(f"{declared.__name__}.{module}").FAMILIES:
            found[family.name] = family
    return found


def get_notation(name: str) -> TextNotation:
    """The notation of the family of that name, or of one that is also called so, or of a plugin.

    Raises `DialectError` and `PluginError`.
    """
    known = families()
    for family in known.values():
        if name == family.name or name in family.aliases:
            return TextNotation(family)
    plugin = plugin_named("dialects", name)
    if plugin is not None:
        loaded = plugin.load()
        if isinstance(loaded, Family):
            return TextNotation(loaded)
        raise DialectError(f"{plugin} is a whole dialect and no notation alone; a `Family` is both")
    raise DialectError(f"there is no notation {name!r}; known are {', '.join(sorted(known))}")
