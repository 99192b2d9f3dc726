"""Names of a package that are imported from its modules when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def make_getattr(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Make the `__getattr__` of a package: `homes` has the module of each name, below the package.

    What was found is kept in the package, which then isn't asked again.
    """

    def get_exported(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get_exported
