"""API keys in a file of the user's own, for providers whose environment variable isn't set; and keys from a function.

`ferrule keys` writes the file, which only its owner can read, and which no contained command sees. It is a JSON object
of keys by the name of their environment variable, so that providers which share a variable share a key.

A function given in place of a key is asked before every request, since its keys change.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from ferrule._util.user_folders import find_config_folder, write_private_file
from ferrule.errors import ModelError, SettingsError

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


KeyFunction: TypeAlias = Callable[[], "str | Awaitable[str]"]
"""Returns the key for the next request, sync or async: from a vault, a file, a service that rotates keys."""

_KEPT = 8


class KeySource:
    """Asks a function for keys. `seen` are the last ones: none of them may appear in a message."""

    def __init__(self, ask: KeyFunction, model: str) -> None:
        self._ask = ask
        self._model = model
        self.seen: list[str] = []

    async def fetch(self) -> str:
        """Return the key for the next request. A blocking function runs in a thread.

        Raises `ModelError` for a function that fails, or returns what can't be a key.
        """
        try:
            if inspect.iscoroutinefunction(self._ask):
                given = await self._ask()
            else:
                given = await asyncio.to_thread(self._ask)
                if inspect.isawaitable(given):
                    given = await given
        except Exception as error:
            # Not its text: what fetches a secret may have it in its error.
            raise ModelError(
                f"{self._model}: the function given as api_key raised {type(error).__name__}; nothing was sent"
            ) from error
        if not isinstance(given, str) or not (key := given.strip()) or not key.isascii() or not key.isprintable():
            kind = "a text that can't be a key" if isinstance(given, str) else type(given).__name__
            raise ModelError(f"{self._model}: the function given as api_key must return a key, and returned {kind}")
        if key not in self.seen:
            self.seen = [*self.seen[1 - _KEPT :], key]
        return key
