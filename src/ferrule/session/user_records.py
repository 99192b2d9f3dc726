"""A JSON file of records in the user's own data folder, which several processes may read and change at once.

It is never in a workspace, and hidden from contained commands and file tools: see `sandbox/hidden_paths.py`.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ferrule._util.user_folders import find_data_folder, write_private_file
from ferrule.errors import SettingsError


def find_records(name: str) -> Path:
    """The path of a file of records."""
    return find_data_folder() / name


def read_records(name: str) -> dict[str, Any]:
    """Read a file of records; empty if there is none. Raises `SettingsError` for a damaged one, and `OSError`."""
    path = find_records(name)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        records = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: damaged: {error}; delete the file, and answer again what you are asked") from None
    if not isinstance(records, dict):
        raise SettingsError(f"{path}: damaged: not an object; delete the file, and answer again what you are asked")
    return records


def change_records(name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the records of a file, which only the user can read, in place; other processes wait.

    Raises `SettingsError` for a damaged file, which stays as it is, and `OSError`.
    """
    path = find_records(name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A lock of its own: the file itself is replaced, so a lock on it could be on one that is gone.
    lock = os.open(path.with_name(f".{name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        records = read_records(name)
        change(records)
        write_private_file(path, json.dumps(records, indent=1).encode())
    finally:
        os.close(lock)
