"""The user's own folders, by the XDG specification, and files there that only the user may read."""

from __future__ import annotations

import os
from pathlib import Path


def find_config_folder() -> Path:
    """The folder of ferrule's settings and keys: `$XDG_CONFIG_HOME/ferrule`, by default in `~/.config`."""
    return _find_folder("XDG_CONFIG_HOME", ".config")


def find_data_folder() -> Path:
    """The folder of what ferrule saves: `$XDG_DATA_HOME/ferrule`, by default in `~/.local/share`."""
    return _find_folder("XDG_DATA_HOME", ".local", "share")


def find_state_folder() -> Path:
    """The folder of what ferrule remembers between runs: `$XDG_STATE_HOME/ferrule`, by default in `~/.local/state`."""
    return _find_folder("XDG_STATE_HOME", ".local", "state")


def find_cache_folder() -> Path:
    """The folder of what ferrule can make again: `$XDG_CACHE_HOME/ferrule`, by default in `~/.cache`."""
    return _find_folder("XDG_CACHE_HOME", ".cache")


def name_after_folder(folder: str | os.PathLike[str]) -> str:
    """A name, the same for each path of a folder, for what is kept about it elsewhere."""
    # Slow to import, and few commands keep anything.
    import hashlib

    return hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]


def write_private_file(path: Path, data: bytes) -> None:
    """Write a new file with the mode 600 and rename it: others can't read it at any time, and none is lost.

    Raises `OSError`.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    beside.unlink(missing_ok=True)
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(data)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _find_folder(variable: str, *default: str) -> Path:
    given = Path(os.environ.get(variable) or "")
    # The specification says to ignore relative paths.
    return (given if given.is_absolute() else Path.home().joinpath(*default)) / "ferrule"
