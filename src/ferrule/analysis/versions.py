"""The versions of what an analysis computes with: a recording keeps them, and a notebook compares them."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Final

_PACKAGES: Final = (
    "ferrule",
    "numpy",
    "pandas",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "matplotlib",
    "pyarrow",
    "duckdb",
)


def list_versions() -> dict[str, str]:
    """The versions of Python, ferrule, and the installed packages that model-written code computes with."""
    found = {"python": python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
