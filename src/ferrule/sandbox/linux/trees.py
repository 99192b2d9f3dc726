"""Removing a folder that a hostile program filled: of any depth and any mode, and never anything outside it."""

import os
import stat
from pathlib import Path

__all__ = ["remove_tree"]

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: Path) -> None:
    """Removes a folder with all that is in it; one that isn't there is no error.

    Folders are brought up to the top before they are emptied, so depth costs neither stack nor descriptors, and each is
    opened without following links. Nothing may write to the folder any more. Raises OSError for what can't be removed.
    """
    try:
        top = _opened(path, None)
    except FileNotFoundError:
        return
    try:
        mark = os.urandom(8).hex()  # a name that nothing in the folder has
        count = 0
        while folders := _emptied(top):
            for name in folders:
                inner = _opened(name, top)
                try:
                    for deeper in _emptied(inner):
                        os.chmod(deeper, 0o700, dir_fd=inner)  # moving a folder writes to it
                        os.rename(deeper, f"{mark}-{count}", src_dir_fd=inner, dst_dir_fd=top)
                        count += 1
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    path.rmdir()


def _emptied(folder: int) -> list[str]:
    """Removes all but the folders in it, and returns their names."""
    folders = []
    for name in os.listdir(folder):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            folders.append(name)
        else:
            os.unlink(name, dir_fd=folder)
    return folders


def _opened(name: str | Path, within: int | None) -> int:
    try:
        folder = os.open(name, _OPEN, dir_fd=within)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=within)  # a folder, as was just seen
        folder = os.open(name, _OPEN, dir_fd=within)
    os.fchmod(folder, 0o700)
    return folder
