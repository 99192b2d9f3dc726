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

# A list of names; one in parentheses belongs to the name before them.
_MODELS = re.compile(r"(?:, | and )(?![^(]*\))")


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
        raise DialectError(_explain_unknown_dialect(name))
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
    if not isinstance(name, str):
        raise DialectError(f"the name of a dialect or notation must be a text, not {name!r}")
    if name.isidentifier() and find_spec(f"{declared.__name__}.{name}") is not None:
        yield from _load_module(name)
    yield from load_families().values()


def _explain_unknown_dialect(name: str) -> str:
    known = list_dialects()
    # Another family's dialect would be a wrong suggestion for a family that declares only its calls.
    notations = [name] if name in load_families() else []
    if not notations and not _describe_by_model(name, known):
        notations = _describe_by_model(name, _list_notations())
    if notations:
        return f"unknown dialect {name!r}; only the calls are known, by get_notation: {' or '.join(notations)}"
    return f"unknown dialect {name!r}; {_suggest(name, known)}"


def _suggest(name: str, known: Sequence[str]) -> str:
    # Only likely names take the place of the whole list.
    likely = _describe_by_model(name, known)
    if not likely:
        import difflib  # only needed after a mistake, and slow to import

        likely = difflib.get_close_matches(name.rpartition("/")[2].lower(), known, n=1, cutoff=0.75)
    return f"did you mean {' or '.join(likely)}?" if likely else f"expected one of {', '.join(known)}"


def _describe_by_model(name: str, known: Sequence[str]) -> list[str]:
    """The families of the models that `name` names, with their other names that are like it, and these models.

    A name is a model's (Qwen 3), the beginning of several (Qwen), or that of a repository (Qwen/Qwen3-8B).
    """
    owner, _, title = name.rpartition("/")
    # Some owners' names begin those of their models: nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B.
    titles = (title, title.lower().removeprefix(owner.lower()))
    # A point distinguishes Qwen 3.8 from Qwen 3 8B, but may be left out.
    searches = ((title, ignored) for title in titles for ignored in (r"[^a-z0-9.]", r"[^a-z0-9]"))
    return next(filter(None, (_find_by_model(title, known, ignored) for title, ignored in searches)), [])


def _find_by_model(name: str, known: Sequence[str], ignored: str) -> list[str]:
    """See `_describe_by_model`; `ignored` are characters of names that don't count."""

    def fold(text: str) -> str:
        return re.sub(ignored, "", text.lower())

    wanted = fold(name)
    found = [
        (family, model, fold(model)) for family in load_families().values() for model in _MODELS.split(family.models)
    ]
    begun = [one for one in found if len(wanted) > 2 and one[2].startswith(wanted)]
    within = [one for one in found if wanted.startswith(one[2])]
    # Of Qwen 3 and Qwen 3 VL, a longer name means the latter.
    longest = max((len(folded) for _, _, folded in within), default=0)
    models = [one for one in begun if one[2] == wanted] or begun or [one for one in within if len(one[2]) == longest]
    described = []
    for family in dict.fromkeys(family.name for family, *_ in models):
        names = [family, *_list_likely_names(load_families()[family], fold(wanted))]
        if names := [one for one in names if one in known]:
            described.append(f"{', '.join(names)} ({', '.join(m for f, m, _ in models if f.name == family)})")
    return described


def _list_likely_names(family: Family, wanted: str) -> list[str]:
    names = (*family.aliases, *(name for name, _ in family.other_turns))
    return [name for name in dict.fromkeys(names) if name.replace("_", "").startswith(wanted)]


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
