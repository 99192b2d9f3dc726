"""Opening files that a hostile program may have put there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["open_regular_file"]

_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@contextmanager
def open_regular_file(path: str) -> Iterator[int | None]:
    """A descriptor of a regular file, None where the path is anything else. Raises OSError where it can't be opened.

    Never blocks: a pipe would wait for a writer, and a device have no end.
    """
    descriptor = os.open(path, _OPEN)
    try:
        yield descriptor if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    finally:
        os.close(descriptor)
