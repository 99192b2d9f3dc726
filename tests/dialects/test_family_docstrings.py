"""The docstring of a family's file names the modules of `notations/` that parse its calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ferrule.dialects import families, notations


def find_parsers(syntax: Any) -> Iterator[str]:
    """The modules of a syntax, and of those inside it that begin calls themselves."""
    if type(syntax).__module__.startswith(notations.__name__) and hasattr(syntax, "openers"):
        yield type(syntax).__module__.rpartition(".")[2]
    for field in fields(syntax) if is_dataclass(syntax) else ():
        yield from find_parsers(getattr(syntax, field.name))


def test_a_docstring_names_what_parses_the_calls() -> None:
    wrong = {}
    for name in sorted(module.name for module in iter_modules(families.__path__)):
        module = import_module(f"{families.__name__}.{name}")
        parsers = {parser for family in module.FAMILIES for parser in find_parsers(family.syntax)}
        named = set(re.findall(r"`notations/(\w+)\.py`", module.__doc__ or ""))
        if named != parsers:
            wrong[name] = f"names {sorted(named)}, but its calls are read by {sorted(parsers)}"
    assert wrong == {}
