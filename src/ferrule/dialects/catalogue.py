"""Finds families, their notations and dialects by name; a family's own file is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, cast

from ferrule.dialects import families as declared
from ferrule.dialects.family import Family
from ferrule.dialects.protocol import Dialect
from ferrule.errors import DialectError, PluginError
from ferrule.tools.plugins import find_plugin

if TYPE_CHECKING:
    from ferrule.dialects.notation import TextNotation


@cache
def load_families() -> dict[str, Family]:
    """All families by name: those of every file in `families/`, in the order of the files' names."""
    modules = sorted(module.name for module in iter_modules(declared.__path__))
    return {family.name: family for module in modules for family in _load_module(module)}


def _load_module(module: str) -> tuple[Family, ...]:
    return cast("tuple[Family, ...]", import_module(f"{declared.__name__}.{module}").FAMILIES)


def get_notation(name: str) -> TextNotation:
    """The notation of the family of that name, or of one that is also called so, or of a plugin.

    Raises `DialectError` and `PluginError`.
    """
    from ferrule.dialects.notation import TextNotation

    for family in _search_families(name):
        if name == family.name or name in family.aliases:
            return TextNotation(family)
    plugin = find_plugin("dialects", name)
    if plugin is None:
        raise DialectError(f"unknown notation {name!r}; known are {', '.join(sorted(load_families()))}")
    loaded = plugin.load()
    if isinstance(loaded, Family):
        return TextNotation(loaded)
    raise DialectError(f"{plugin} is a whole dialect and no notation alone; a `Family` is both")


def list_dialects() -> tuple[str, ...]:
    """The names that `get_dialect` knows, sorted: families whose turns are declared, and their other turns."""
    return tuple(sorted(name for family in load_families().values() for name in _list_dialects(family)))


def get_dialect(name: str) -> Dialect:
    """A new dialect of that name. Raises `DialectError`, naming those there are, and `PluginError`."""
    for family in _search_families(name):
        if name in _list_dialects(family):
            return _make_dialect(family, name)
    plugin = find_plugin("dialects", name)
    if plugin is None:
        raise DialectError(f"unknown dialect {name!r}; known are {', '.join(list_dialects())}")
    loaded = plugin.load()
    if isinstance(loaded, Family):
        if not _list_dialects(loaded):
            raise DialectError(f"{plugin} declares no turns, so whole conversations can't be written in it")
        return _make_dialect(loaded, loaded.name)
    if not callable(loaded):
        raise PluginError(f"{plugin} is neither a Family nor a callable that makes a dialect")
    return cast("Dialect", loaded())


def _search_families(name: str) -> Iterator[Family]:
    """All families, those of the file of that name first: the others needn't be loaded then."""
    if name.isidentifier() and find_spec(f"{declared.__name__}.{name}") is not None:
        yield from _load_module(name)
    yield from load_families().values()


def _list_dialects(family: Family) -> tuple[str, ...]:
    """The names of the dialects that a family declares."""
    is_framed = family.turns is not None or family.make_dialect is not None
    return (*((family.name,) if is_framed else ()), *(name for name, _ in family.other_turns))


def _make_dialect(family: Family, name: str) -> Dialect:
    if family.make_dialect is not None:
        return family.make_dialect()
    from ferrule.dialects.framing.dialect import FramedDialect

    return FramedDialect(family, name)
