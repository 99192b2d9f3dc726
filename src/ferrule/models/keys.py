"""API keys in a file of the user's own, for providers whose environment variable isn't set.

`ferrule keys` writes the file, which only its owner can read, and which no contained command sees. It is a JSON object
of keys by the name of their environment variable, so that providers which share a variable share a key.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path

from ferrule._util.user_folders import find_config_folder, write_private_file
from ferrule.errors import SettingsError

logger = logging.getLogger(__name__)


def find_keys_file() -> Path:
    """The path of the file, which needn't exist."""
    return find_config_folder() / "keys.json"


def read_keys() -> dict[str, str]:
    """The keys in the file by variable; none without a file. Raises `SettingsError` for one that can't be read."""
    path = find_keys_file()
    try:
        with path.open("rb") as file:
            mode, data = os.fstat(file.fileno()).st_mode, file.read()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(f"the keys in {path} can't be read: {error.strerror}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        logger.warning("%s can be read by others; change that with: chmod 600 %s", path, path)
    try:
        keys = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not JSON ({error}); mend it, or delete it and save the keys again") from error
    if not isinstance(keys, dict) or not all(isinstance(key, str) for key in keys.values()):
        raise SettingsError(f"{path} must be a JSON object of keys by variable, such as OPENAI_API_KEY")
    return keys


def store_key(variable: str, key: str) -> None:
    """Add or replace a key. Raises `SettingsError` and `OSError`."""
    _write_keys({**read_keys(), variable: key})


def delete_key(variable: str) -> bool:
    """Delete a key; returns whether there was one. Raises `SettingsError` and `OSError`."""
    keys = read_keys()
    if variable not in keys:
        return False
    del keys[variable]
    _write_keys(keys)
    return True


def _write_keys(keys: dict[str, str]) -> None:
    write_private_file(find_keys_file(), f"{json.dumps(keys, indent=2)}\n".encode())
