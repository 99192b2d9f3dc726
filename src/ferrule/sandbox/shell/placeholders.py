"""Empty folders at protected places that don't exist, while commands run, so that none of them can be made there.

An empty `.git` is none to git, which looks further up; a mount on it keeps the command from filling it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["standing", "stands"]

# Several sandboxes of this process may share a workspace, on loops of different threads.
_lock = threading.Lock()
_users: Counter[str] = Counter()


def stands(path: str) -> bool:
    """Whether what is at a path is one of ours: for another command it is as good as not there."""
    return _users[path] > 0


@contextmanager
def standing(paths: Sequence[str]) -> Iterator[None]:
    """Make each folder that isn't there, and remove it after its last user; one that was filled meanwhile stays."""
    with _lock:
        for path in paths:
            with suppress(FileExistsError):
                Path(path).mkdir(0o755)
        _users.update(paths)
    try:
        yield
    finally:
        with _lock:
            _users.subtract(paths)
            for path in paths:
                if _users[path] <= 0:
                    del _users[path]
                    with suppress(OSError):
                        Path(path).rmdir()
