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

from ferrule.sandbox.linux.trees import remove_tree

__all__ = ["OwnFolder"]

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SECONDS: Final = 60.0  # a younger one may be about to be locked


class OwnFolder:
    """Made for this user alone, and locked for as long as this process has it; what is left without a lock is removed.

    Raises OSError where none can be made.
    """

    def __init__(self, prefix: str) -> None:
        _sweep(prefix)
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


def _sweep(prefix: str) -> None:
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
