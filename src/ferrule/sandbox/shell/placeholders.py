"""Empty folders at protected paths that don't exist, so that a running command can't create anything there.

Git doesn't count an empty `.git` as a repository and looks further up; a mount keeps the command from filling it. Git
ignores empty folders, so one can take the place of a file as well; only files of a repository are files here too, since
git fails on a folder. Creating and removing them takes longer than a short command, so they are kept a while for the
next one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ferrule.sandbox.shell.git_repositories import PLACEHOLDER_FILES

__all__ = ["LINGER_SECONDS", "all_exist", "count", "create", "disown", "is_placeholder", "release", "remove_unused"]

LINGER_SECONDS: Final = 1.0
"""How long they are kept after the last command."""

# Several sandboxes of this process may share a workspace, on loops of different threads.
_lock = threading.Lock()
_users: dict[str, int] = {}


def is_placeholder(path: str) -> bool:
    """Whether a path is one of our placeholders, which other commands treat as missing."""
    return path in _users


def count() -> int:
    """The number of placeholders, over all workspaces."""
    return len(_users)


def all_exist(paths: Sequence[str]) -> bool:
    """Whether all the placeholders exist already."""
    return all(path in _users and Path(path).exists() for path in paths)


def create(paths: Sequence[str]) -> None:
    """Create each missing folder and keep it until `release`. Parents come first."""
    with _lock:
        for path in paths:
            _make(Path(path))
            _users[path] = _users.get(path, 0) + 1


def release(paths: Sequence[str]) -> None:
    """Release folders from `create`."""
    with _lock:
        for path in paths:
            if path in _users:
                _users[path] -= 1


def remove_unused() -> None:
    """Remove those not in use any more; one that was filled meanwhile stays, but is no longer ours."""
    with _lock:
        unused = [path for path, users in _users.items() if not users]
        for path in sorted(unused, reverse=True):
            # In this order: a scan in another thread never sees it as existing but not ours.
            _remove(Path(path))
            del _users[path]


def disown(paths: Sequence[str]) -> None:
    """Stop treating folders as placeholders that a command was allowed to fill, and has filled."""
    with _lock:
        for path in paths:
            with suppress(OSError):
                if path in _users and any(Path(path).iterdir()):
                    del _users[path]


def _make(path: Path) -> None:
    content = PLACEHOLDER_FILES.get(path.name)
    with suppress(FileExistsError):
        if content is None:
            path.mkdir(0o755)
        else:
            with path.open("xb") as file:
                file.write(content)


def _remove(path: Path) -> None:
    """Remove a placeholder, unless it was filled or replaced meanwhile."""
    content = PLACEHOLDER_FILES.get(path.name)
    with suppress(OSError):
        if content is None:
            path.rmdir()
        elif not path.is_symlink() and path.stat().st_size == len(content) and path.read_bytes() == content:
            path.unlink()
