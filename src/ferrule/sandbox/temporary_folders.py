"""A sandbox's own temporary folder, and the removal of those left by killed programs."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["TemporaryFolder", "open_folders", "remove_tree"]

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SECONDS: Final = 60.0  # a newer one may not be locked yet
_PAUSE: Final = 0.02


class TemporaryFolder:
    """A folder that only this user can enter, locked while this process uses it; abandoned ones are removed first.

    `keeps_abandoned`: they are left for `open_folders`. Raises OSError if it can't be created.
    """

    def __init__(self, prefix: str, *, keeps_abandoned: bool = False) -> None:
        if not keeps_abandoned:
            _remove_abandoned(prefix)
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=prefix))
        self._owner = os.getpid()
        self._lock = os.open(self.path, _OPEN)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self, seconds: float = 0.0) -> None:
        """Remove the folder with its contents; does nothing in a forked child. Can be called again.

        A killed process may write until the kernel has ended it, so what it leaves is removed for up to `seconds`.
        Raises OSError for what can't be removed.
        """
        if os.getpid() != self._owner or self._lock < 0:
            return
        lock, self._lock = self._lock, -1
        end = time.monotonic() + seconds
        try:
            while not _try_to_remove(Path(self.path), is_last=time.monotonic() >= end):
                time.sleep(_PAUSE)
        finally:
            os.close(lock)


def _try_to_remove(path: Path, *, is_last: bool) -> bool:
    """Remove a folder, and return whether that succeeded. Raises OSError if it doesn't, at the last attempt."""
    try:
        remove_tree(path)
    except OSError:
        if is_last:
            raise
        return False
    return True


def open_folders(prefix: str) -> Iterator[tuple[Path, bool]]:
    """Yield this user's folders with that prefix, and whether a program that uses one still runs.

    One whose program has ended is locked while it is the current one. It may also be so new that it isn't locked yet.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        try:
            found = os.open(path, _OPEN)
        except OSError:
            continue
        try:
            status = os.fstat(found)
            if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == 0o700:
                is_locked = False
                try:
                    fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    is_locked = True
                yield path, is_locked
        finally:
            os.close(found)


def _remove_abandoned(prefix: str) -> None:
    """Remove this user's folders with that prefix whose programs ended without removing them."""
    for path, is_locked in open_folders(prefix):
        with suppress(OSError):
            if not is_locked and time.time() - path.stat().st_mtime > _SECONDS:
                remove_tree(path)


def remove_tree(path: Path) -> None:
    """Remove a folder with its contents; a missing folder is not an error.

    Nested folders are moved to the top before they are emptied, so depth costs neither stack nor descriptors, and each
    is opened without following links. Nothing may still write to the folder. Raises OSError for what can't be removed.
    """
    try:
        top = _open_folder(path, None)
    except FileNotFoundError:
        return
    try:
        mark = os.urandom(8).hex()  # a name not used in the folder
        count = 0
        while folders := _empty_folder(top):
            for name in folders:
                inner = _open_folder(name, top)
                try:
                    for deeper in _empty_folder(inner):
                        os.chmod(deeper, 0o700, dir_fd=inner)  # moving a folder writes to it
                        os.rename(deeper, f"{mark}-{count}", src_dir_fd=inner, dst_dir_fd=top)
                        count += 1
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    path.rmdir()


def _empty_folder(folder: int) -> list[str]:
    """Remove everything but the folders in it, and return their names."""
    folders = []
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            folders.append(name)
        else:
            os.unlink(name, dir_fd=folder)
    return folders


def _open_folder(name: str | Path, within: int | None) -> int:
    try:
        folder = os.open(name, _OPEN, dir_fd=within)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=within)  # known to be a folder
        folder = os.open(name, _OPEN, dir_fd=within)
    os.fchmod(folder, 0o700)
    return folder
