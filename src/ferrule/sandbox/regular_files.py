"""Opens files that a hostile program may have created."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["open_regular_file"]

_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def open_regular_file(path: str) -> Iterator[int | None]:
    """Open a regular file and yield its descriptor, or None if the path is anything else. Raises OSError.

    Never blocks, as a pipe without a writer would.
    """
    descriptor = os.open(path, _OPEN)
    try:
        yield descriptor if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    finally:
        os.close(descriptor)
