"""Files of the host that contained code reads where they lie, each pinned to what its path was when it was checked."""

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
        """A descriptor (O_PATH) of the file, once it is known to be the same and can be read by this process.

        Whatever the path has become since it was checked (a link, another file), it is not that. Raises OSError.
        """
        # Never O_RDONLY before it is known to be a file: a pipe would wait for a writer.
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
        """Raise OSError where the path is no longer the file that it was."""
        self._check(Path(self.path).lstat())

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) != (self.device, self.inode):
            raise OSError(errno.ESTALE, "it was replaced after its path was checked", self.path)


def link_files(files: Iterable[MountedFile], folder: Path) -> None:
    """Give each file its name in a run's folder. Raises OSError."""
    for file in files:
        link = folder / file.name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file.path)
