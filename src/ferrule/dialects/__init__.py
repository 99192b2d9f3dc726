"""How tool calls are written for, and read from, each family of models. Pure text: no ids, no I/O.

Names are looked up here and a dialect is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from ferrule.errors import DialectError, PluginError

if TYPE_CHECKING:
    from ferrule.dialects.family import Family
    from ferrule.dialects.protocol import Dialect
    from ferrule.dialects.recognise import Recognised

_MAKERS = {
    "hermes": ("ferrule.dialects.hermes", "Hermes"),
    "nanochat": ("ferrule.dialects.nanochat", "Nanochat"),
    "qwen25": ("ferrule.dialects.hermes", "qwen25"),
}


def dialect_names() -> tuple[str, ...]:
    """The names that `get_dialect` knows, sorted: those here, and the families whose turns are known."""
    return tuple(sorted({*_MAKERS, *_framed()}))


def get_dialect(name: str) -> Dialect:
    """A new dialect of that name, with its defaults. Raises `DialectError`, naming those there are, and
    `PluginError`."""
    if name in _MAKERS:
        module, maker = _MAKERS[name]
        return cast("Dialect", getattr(import_module(module), maker)())
    family = _framed().get(name)
    if family is None:
        return _of_plugin(name)
    from ferrule.dialects.framing import FramedDialect

    return FramedDialect(family, name)


def _of_plugin(name: str) -> Dialect:
    """The dialect that an installed package has under `ferrule.dialects`: a `Family`, or what makes a dialect."""
    from ferrule.plugins import plugin_named

    plugin = plugin_named("dialects", name)
    if plugin is None:
        raise DialectError(f"there is no dialect {name!r}; known are {', '.join(dialect_names())}")
    loaded = plugin.load()
    from ferrule.dialects.family import Family

    if isinstance(loaded, Family):
        if loaded.turns is None:
            raise DialectError(f"{plugin} says nothing of turns, so whole conversations can't be written in it")
        from ferrule.dialects.framing import FramedDialect

        return FramedDialect(loaded, loaded.name)
    if not callable(loaded):
        raise PluginError(f"{plugin} is neither a Family nor a callable that makes a dialect")
    return cast("Dialect", loaded())


def for_template(template: str) -> Recognised | None:
    """The family of a chat template, and how sure that is: see `recognise.for_template`."""
    from ferrule.dialects import recognise

    return recognise.for_template(template)


def _framed() -> dict[str, Family]:
    """The families whose turns are known, by the names of those."""
    from ferrule.dialects.catalogue import families

    found: dict[str, Family] = {}
    for family in families().values():
        found |= {name: family for name, _ in family.other_turns}
        if family.turns is not None:
            found[family.name] = family
    return found
