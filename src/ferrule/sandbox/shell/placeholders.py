"""Empty folders at protected paths that don't exist, so that a running command can't create anything there.

Git doesn't count an empty `.git` as a repository and looks further up; a mount keeps the command from filling it. Git
ignores empty folders, so one can take the place of a file as well; only files of a repository are files here too, since
git fails on a folder. Creating and removing them takes longer than a short command, so they are kept a while for the
next one. A program that is killed leaves them, and the next one removes them: each notes those that it has created in a
temporary folder that is locked as long as it lives.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ferrule.sandbox.git.repositories import PLACEHOLDER_FILES
from ferrule.sandbox.temporary_folders import TemporaryFolder, open_folders, remove_tree

__all__ = [
    "LINGER_SECONDS", "count", "create", "disown", "is_placeholder", "keep", "list_paths", "release",
    "remove_abandoned", "remove_unused",
]  # fmt: skip

LINGER_SECONDS: Final = 1.0
"""How long they are kept after the last command."""
_PREFIX: Final = "ferrule-placeholders-"
_LIST: Final = "created.json"

# Several sandboxes of this process may share a workspace, on loops of different threads.
_lock = threading.Lock()
_users: dict[str, int] = {}
_created: set[str] = set()
"""Those that didn't exist before, as opposed to what somebody else has created meanwhile."""
_notes: TemporaryFolder | None = None


def is_placeholder(path: str) -> bool:
    """Whether a path is one of our placeholders, which other commands treat as missing."""
    return path in _users


def list_paths() -> frozenset[str]:
    """All placeholders, over all workspaces."""
    with _lock:
        return frozenset(_users)


def count() -> int:
    """The number of placeholders, over all workspaces."""
    return len(_users)


def keep(paths: Sequence[str]) -> bool:
    """Keep them until `release`, if all of them exist already; returns whether they do."""
    with _lock:
        exist = all(path in _users and os.path.lexists(path) for path in paths)
        if exist:
            _add_users(paths)
        return exist


def create(paths: Sequence[str]) -> None:
    """Create each missing folder and keep it until `release`. Parents come first."""
    with _lock:
        missing = {path for path in paths if path not in _users and not os.path.lexists(path)}
        if missing:
            _created.update(missing)
            _save_notes()
        for path in paths:
            _make(Path(path))
        _add_users(paths)


def _add_users(paths: Iterable[str]) -> None:
    for path in paths:
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
        _forget(unused)


def remove_abandoned() -> None:
    """Remove those of programs that were killed, but none beside which a running program has some."""
    abandoned: list[tuple[Path, list[str]]] = []
    in_use: set[str] = set()
    with _lock:
        for folder, is_locked in open_folders(_PREFIX):
            try:
                paths = [str(path) for path in json.loads((folder / _LIST).read_bytes())]
            except (OSError, ValueError):  # it is new, or gone
                continue
            if is_locked:
                in_use.update(os.path.dirname(path) for path in paths)  # noqa: PTH120 - a text
            else:
                abandoned.append((folder, paths))
        for folder, paths in abandoned:
            if not in_use & {os.path.dirname(path) for path in paths}:  # noqa: PTH120
                for path in sorted(paths, reverse=True):
                    _remove(Path(path))
                with suppress(OSError):
                    remove_tree(folder)


def disown(paths: Sequence[str]) -> None:
    """Stop treating folders as placeholders that a command was allowed to fill, and has filled."""
    with _lock:
        for path in paths:
            with suppress(OSError):
                if path in _users and any(Path(path).iterdir()):
                    del _users[path]
                    _forget([path])


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


def _forget(paths: Iterable[str]) -> None:
    if not _created.isdisjoint(paths):
        _created.difference_update(paths)
        _save_notes()


def _save_notes() -> None:
    """Note what is created, for the case that this program is killed. Without room for that, it isn't noted."""
    global _notes  # noqa: PLW0603 - as the other data here: one for the process
    with suppress(OSError):
        if _notes is None:
            _notes = TemporaryFolder(_PREFIX, keeps_abandoned=True)
            atexit.register(_notes.remove)
        path = Path(_notes.path, _LIST)
        path.with_suffix(".new").write_text(json.dumps(sorted(_created)), encoding="ascii")
        path.with_suffix(".new").replace(path)


def _start_anew() -> None:
    """A forked process has none of its own yet."""
    global _notes  # noqa: PLW0603
    _notes = None
    _created.clear()
    _users.clear()


os.register_at_fork(after_in_child=_start_anew)
