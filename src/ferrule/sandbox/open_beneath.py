"""Opens real paths below a folder without following any link, so that a link swapped in meanwhile leads nowhere.

Every folder on the way is opened by its name in the one before, with `O_NOFOLLOW`; afterwards the kernel is asked where
the descriptor really is. `openat2` has `RESOLVE_NO_SYMLINKS` for the first part, but not on every system, and isn't
faster for the few folders of a path.
"""

# Descriptors and names in them, for which pathlib has no counterpart.
# ruff: noqa: PTH115, PTH120

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

__all__ = [
    "FILE_FLAGS",
    "FOLDER_FLAGS",
    "NotRegularFile",
    "OpenFolder",
    "PathMoved",
    "describe_kind",
    "open_folder_beneath",
]

FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""How a folder, and a regular file, is opened for reading without following a link or waiting for a pipe."""
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


class PathMoved(Exception):  # noqa: N818 - an event
    """What a path names was moved or replaced while it was being opened: resolve it again."""


class NotRegularFile(Exception):  # noqa: N818 - a state
    """What a path names is a folder, pipe, socket or device; the text says which."""


@dataclass(slots=True)
class OpenFolder:
    """An open folder and the name of an entry in it, which may not exist. A context manager; closes the folder."""

    descriptor: int
    name: str
    """The last name of the path; `.` for the allowed folder itself."""
    path: str
    """The real path that was opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    def stat(self) -> os.stat_result | None:
        """The status of the entry, of a link itself; None if there is none."""
        try:
            return os.stat(self.name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_file(self) -> int:
        """Open the entry for reading. Raises `PathMoved`, `NotRegularFile`, and OSError."""
        status = os.stat(self.name, dir_fd=self.descriptor, follow_symlinks=False)
        # Opening a device can have effects, so its kind is looked at first.
        _check_regular(status)
        try:
            descriptor = os.open(self.name, FILE_FLAGS, dir_fd=self.descriptor)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise PathMoved from error
            raise
        try:
            _check_regular(os.fstat(descriptor))
            check_location(descriptor, self.path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def open_folder_beneath(root: str, real: str, *, create: bool = False) -> OpenFolder:
    """Open the folder of a real path in `root` (or `root` itself for its own path).

    `create` makes missing folders. Raises `PathMoved` if a link or another folder has taken the place of one, and
    OSError.
    """
    names = os.path.relpath(real, root).split("/")
    folder = os.open(root, FOLDER_FLAGS)
    try:
        for name in names[:-1]:
            folder = _enter(folder, name, create=create)
        check_location(folder, root if names == ["."] else os.path.dirname(real))
    except BaseException:
        os.close(folder)
        raise
    return OpenFolder(folder, names[-1], real)


def check_location(descriptor: int, expected: str) -> None:
    """Raise `PathMoved` unless an open file is where it was expected, as far as the system tells."""
    with suppress(OSError):
        found = os.readlink(f"/proc/self/fd/{descriptor}")
        if found != expected and found.startswith("/"):
            raise PathMoved(found)


def describe_kind(mode: int) -> str:
    """What kind of file a mode is of, with its article: "a pipe"."""
    return _KINDS.get(stat.S_IFMT(mode), "a file")


def _enter(folder: int, name: str, *, create: bool) -> int:
    """Open a folder in a folder, which is closed."""
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    try:
        inner = os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        is_link = error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(folder, name)
        if is_link:
            raise PathMoved from error
        raise
    os.close(folder)
    return inner


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return True  # gone again


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise PathMoved
    if not stat.S_ISREG(status.st_mode):
        raise NotRegularFile(describe_kind(status.st_mode))
