"""Empty folders at protected places that don't exist, while commands run, so that none of them can be made there.

An empty `.git` is none to git, which looks further up; a mount on it keeps the command from filling it. Git doesn't see
an empty folder, so one stands in for a file as well. To make and remove them takes longer than a short command does, so
they stay for a while, for the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["LINGER_SECONDS", "all_exist", "count", "create", "is_placeholder", "release", "remove_unused"]

LINGER_SECONDS: Final = 1.0
"""Seconds after the last command."""

# Several sandboxes of this process may share a workspace, on loops of different threads.
_lock = threading.Lock()
_users: dict[str, int] = {}


def is_placeholder(path: str) -> bool:
    """Whether what is at a path is one of ours: for another command it is as good as not there."""
    return path in _users


def count() -> int:
    """How many there are, in any workspace."""
    return len(_users)


def all_exist(paths: Sequence[str]) -> bool:
    """Whether there is nothing to be made."""
    return all(path in _users and Path(path).exists() for path in paths)


def create(paths: Sequence[str]) -> None:
    """Make each folder that isn't there, and keep it until `release`. Each comes after the one that it lies in."""
    with _lock:
        for path in paths:
            with suppress(FileExistsError):
                Path(path).mkdir(0o755)
            _users[path] = _users.get(path, 0) + 1


def release(paths: Sequence[str]) -> None:
    """Give up what was made to stand."""
    with _lock:
        for path in paths:
            _users[path] -= 1


def remove_unused() -> None:
    """Remove those that nobody has any more; one that was filled meanwhile stays, and is ours no longer."""
    with _lock:
        unused = [path for path, users in _users.items() if not users]
        for path in sorted(unused, reverse=True):
            # In this order: for a survey in another thread it is never there and not ours.
            with suppress(OSError):
                Path(path).rmdir()
            del _users[path]
