"""Finds families, their notations and dialects by name; a family's file is imported when it is first needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    """All families by name: those of every file in `families/`, in the order of the file names."""
    modules = sorted(module.name for module in iter_modules(declared.__path__))
    return {family.name: family for module in modules for family in _load_module(module)}


def _load_module(module: str) -> tuple[Family, ...]:
    return cast("tuple[Family, ...]", import_module(f"{declared.__name__}.{module}").FAMILIES)


def get_notation(name: str) -> TextNotation:
    """The notation of the family with that name or alias, or the one that a plugin provides under it.

    Raises `DialectError` and `PluginError`.
    """
    from ferrule.dialects.notation import TextNotation

    for family in _search_families(name):
        if name == family.name or name in family.aliases:
            return TextNotation(family)
    plugin = find_plugin("dialects", name)
    if plugin is None:
        raise DialectError(f"unknown notation {name!r}; {_suggest(name, _list_notations())}")
    loaded = plugin.load()
    if isinstance(loaded, Family):
        return TextNotation(loaded)
    raise DialectError(f"{plugin} is a dialect, framing included, and not a notation; a `Family` can be both")


def list_dialects() -> tuple[str, ...]:
    """The names that `get_dialect` accepts, sorted: families with declared turns, and their `other_turns`."""
    return tuple(sorted(name for family in load_families().values() for name in _list_dialects(family)))


def get_dialect(name: str) -> Dialect:
    """A new dialect with that name. Raises `DialectError`, listing the known names, and `PluginError`."""
    for family in _search_families(name):
        if name in _list_dialects(family):
            return _make_dialect(family, name)
    plugin = find_plugin("dialects", name)
    if plugin is None:
        raise DialectError(f"unknown dialect {name!r}; {_suggest(name, list_dialects())}")
    loaded = plugin.load()
    if isinstance(loaded, Family):
        if not _list_dialects(loaded):
            raise DialectError(f"{plugin} declares no turns, so whole conversations can't be written in it")
        return _make_dialect(loaded, loaded.name)
    if not callable(loaded):
        raise PluginError(f"{plugin} is neither a Family nor a callable that returns a dialect")
    return cast("Dialect", loaded())


@cache
def list_image_placeholders() -> frozenset[str]:
    """The control tokens that represent an image in any family."""
    turns = [
        one for family in load_families().values() for _, one in ((family.name, family.turns), *family.other_turns)
    ]
    return frozenset(one.image.placeholder for one in turns if one and one.image and one.image.placeholder)


def _search_families(name: str) -> Iterator[Family]:
    """All families, starting with those of the file with that name, so that the others are often not loaded."""
    if name.isidentifier() and find_spec(f"{declared.__name__}.{name}") is not None:
        yield from _load_module(name)
    yield from load_families().values()


def _suggest(name: str, known: Sequence[str]) -> str:
    import difflib  # only needed after a mistake, and slow to import

    # Only a likely name takes the place of the whole list.
    near = list(_find_by_model(name, known)) or difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    return f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(known)}"


def _find_by_model(name: str, known: Sequence[str]) -> Iterator[str]:
    """The names of the families whose models include `name`: that of Qwen 3 is hermes."""
    wanted = _fold_name(name)
    for family in load_families().values():
        if family.name in known and wanted in map(_fold_name, re.split(r", | and ", family.models)):
            yield family.name


def _fold_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _list_notations() -> list[str]:
    return sorted(name for family in load_families().values() for name in (family.name, *family.aliases))


def _list_dialects(family: Family) -> tuple[str, ...]:
    """The names of the dialects that a family declares."""
    is_framed = family.turns is not None or family.make_dialect is not None
    return (*((family.name,) if is_framed else ()), *(name for name, _ in family.other_turns))


def _make_dialect(family: Family, name: str) -> Dialect:
    if family.make_dialect is not None:
        return family.make_dialect()
    from ferrule.dialects.framing.dialect import FramedDialect

    return FramedDialect(family, name)
