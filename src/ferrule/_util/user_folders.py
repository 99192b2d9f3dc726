"""The user's own folders, by the XDG specification."""

from __future__ import annotations

import os
from pathlib import Path


def find_config_folder() -> Path:
    """The folder of ferrule's settings and keys: `$XDG_CONFIG_HOME/ferrule`, by default in `~/.config`."""
    return _find_folder("XDG_CONFIG_HOME", ".config")


def find_data_folder() -> Path:
    """The folder of what ferrule saves: `$XDG_DATA_HOME/ferrule`, by default in `~/.local/share`."""
    return _find_folder("XDG_DATA_HOME", ".local", "share")


def _find_folder(variable: str, *default: str) -> Path:
    given = Path(os.environ.get(variable) or "")
    # The specification says to ignore relative paths.
    return (given if given.is_absolute() else Path.home().joinpath(*default)) / "ferrule"
