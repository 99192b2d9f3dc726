"""A sandbox's own folder among the temporary ones, and what programs left there that were killed."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["TemporaryFolder"]

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SECONDS: Final = 60.0  # a younger one may be about to be locked


class TemporaryFolder:
    """Made for this user alone, and locked for as long as this process has it; what is left without a lock is removed.

    Raises OSError where none can be made.
    """

    def __init__(self, prefix: str) -> None:
        _remove_abandoned(prefix)
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=prefix))
        self._owner = os.getpid()
        self._lock = os.open(self.path, _OPEN)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove it with all that is in it; in a fork of its process nothing is done. Can be called again."""
        if os.getpid() == self._owner and self._lock >= 0:
            lock, self._lock = self._lock, -1
            try:
                remove_tree(Path(self.path))
            finally:
                os.close(lock)


def _remove_abandoned(prefix: str) -> None:
    """Remove this user's folders of that prefix whose programs have ended without doing so."""
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            found = os.open(path, _OPEN)
            try:
                is_old = time.time() - os.fstat(found).st_mtime > _SECONDS
                if is_old and os.fstat(found).st_uid == os.geteuid() and stat.S_IMODE(os.fstat(found).st_mode) == 0o700:
                    fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_tree(path)
            finally:
                os.close(found)


def remove_tree(path: Path) -> None:
    """Removes a folder with all that is in it; one that isn't there is no error.

    Folders are brought up to the top before they are emptied, so depth costs neither stack nor descriptors, and each is
    opened without following links. Nothing may write to the folder any more. Raises OSError for what can't be removed.
    """
    try:
        top = _open_folder(path, None)
    except FileNotFoundError:
        return
    try:
        mark = os.urandom(8).hex()  # a name that nothing in the folder has
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
    """Removes all but the folders in it, and returns their names."""
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
        os.chmod(name, 0o700, dir_fd=within)  # a folder, as was just seen
        folder = os.open(name, _OPEN, dir_fd=within)
    os.fchmod(folder, 0o700)
    return folder
