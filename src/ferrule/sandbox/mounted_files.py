"""Host files that contained code reads in place, each pinned to the inode its path had when it was checked."""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["MountedFile", "link_files"]


class MountedFile(NamedTuple):
    """One file: `name` in a run's folder is a link to `path`, which is absolute and real."""

    name: str
    path: str
    device: int
    inode: int

    def open_pinned(self) -> int:
        """An O_PATH descriptor of the file. Raises OSError if it was replaced or this process can't read it."""
        # Not O_RDONLY until it is known to be a file: opening a pipe would block until there is a writer.
        pinned = os.open(self.path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self._check(os.fstat(pinned))
            opened = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            os.close(opened)
        except BaseException:
            os.close(pinned)
            raise
        return pinned

    def check(self) -> None:
        """Raise OSError if the path is no longer the same file."""
        self._check(Path(self.path).lstat())

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) != (self.device, self.inode):
            raise OSError(errno.ESTALE, "the file was replaced after its path was checked", self.path)


def link_files(files: Iterable[MountedFile], folder: Path) -> None:
    """Create a link to each file in a run's folder. Raises OSError."""
    for file in files:
        link = folder / file.name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file.path)
