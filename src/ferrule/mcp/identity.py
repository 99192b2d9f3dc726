"""Who we say that we are, to servers and to clients."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

NAME = "ferrule"


def own_version() -> str:
    """The version that is installed; 0 where ferrule is run from its sources."""
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "0"
