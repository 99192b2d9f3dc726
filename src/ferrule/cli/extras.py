"""What to install where an optional part is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ferrule.errors import SettingsError


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Around an import: raises `SettingsError`, saying which extra brings what could not be imported."""
    try:
        yield
    except ImportError as error:
        missing = (error.name or "a part of it").partition(".")[0]
        raise SettingsError(f"this needs {missing}; install it with: pip install 'ferrule[{extra}]'") from error
