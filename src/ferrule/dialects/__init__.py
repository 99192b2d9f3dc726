"""How tool calls are written for, and read from, each family of models. Pure text: no ids, no I/O.

Names are looked up here and a dialect is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from ferrule.errors import DialectError

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
    """A new dialect of that name, with its defaults. Raises `DialectError`, naming those there are."""
    if name in _MAKERS:
        module, maker = _MAKERS[name]
        return cast("Dialect", getattr(import_module(module), maker)())
    family = _framed().get(name)
    if family is None:
        raise DialectError(f"there is no dialect {name!r}; known are {', '.join(dialect_names())}")
    from ferrule.dialects.framing import FramedDialect

    return FramedDialect(family, name)


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
