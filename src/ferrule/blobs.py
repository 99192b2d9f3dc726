"""Bytes stored by content hash: the complete version of a truncated result, an image replaced by a note.

The name is only the hash, so the same content has the same name tomorrow and in training data.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from threading import Lock, get_ident

_NAME_LENGTH = 16
_LOCK = Lock()
"""For what every store holds in memory: one lock, so that a store is cheap to make and can be pickled."""


def hash_blob(data: bytes) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()[:_NAME_LENGTH]


class BlobStore:
    """Blobs by name, in memory up to `limit` bytes (the oldest are dropped first), or in a folder, which keeps all.

    A folder's files are written to a temporary name first, so that a reader never sees an incomplete one. A store may
    be used by several threads, and a folder by several processes: pickled, a store in memory is copied, one in a folder
    is shared. A private folder is one that nobody else can open.
    """

    __slots__ = ("_folder", "_held", "_is_private", "_limit", "_size")

    def __init__(
        self, folder: Path | str | None = None, limit: int = 64 * 1024 * 1024, *, is_private: bool = False
    ) -> None:
        self._folder = None if folder is None else Path(folder)
        self._is_private = is_private
        self._limit = limit
        self._held: dict[str, bytes] = {}
        self._size = 0

    def put(self, data: bytes) -> str:
        """Store `data`; returns its name."""
        name = hash_blob(data)
        if self._folder is not None:
            self._folder.mkdir(0o700 if self._is_private else 0o777, parents=True, exist_ok=True)
            path = self._folder / name
            if not path.exists():
                partial = path.with_suffix(f".{os.getpid()}-{get_ident()}.partial")
                partial.write_bytes(data)
                partial.replace(path)
            return name
        with _LOCK:
            if name not in self._held:
                self._held[name] = data
                self._size += len(data)
                while self._size > self._limit and len(self._held) > 1:
                    self._size -= len(self._held.pop(next(iter(self._held))))
        return name

    def get(self, name: str) -> bytes | None:
        """The bytes with that name, or None if they were never stored or have been dropped."""
        if self._folder is None:
            return self._held.get(name)
        if not name.isalnum():
            return None
        path = self._folder / name
        return path.read_bytes() if path.is_file() else None
