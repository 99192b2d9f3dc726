"""Bytes stored by content hash: the complete version of a truncated result, an image replaced by a note.

The name is only the hash, so the same content has the same name tomorrow and in training data.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from threading import Lock, get_ident

_NAME_LENGTH = 16
_LOCK = Lock()
"""For what every store holds in memory: one lock, so that a store is cheap to make and can be pickled."""


def hash_blob(data: bytes) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()[:_NAME_LENGTH]


@dataclass(slots=True, eq=False)
class BlobStore:
    """Blobs by name, in memory up to `limit` bytes (the oldest are dropped first), or in a folder, which keeps all.

    A folder's files are written to a temporary name first, so that a reader never sees an incomplete one. A store may
    be used by several threads, and a folder by several processes: pickled, a store in memory is copied, one in a folder
    is shared. A private folder is one that nobody else can open.
    """

    folder: Path | str | None = None
    limit: int = 64 * 1024 * 1024
    _: KW_ONLY
    is_private: bool = False
    _held: dict[str, bytes] = field(default_factory=dict, init=False, repr=False)
    _size: int = field(default=0, init=False, repr=False)

    def put(self, data: bytes) -> str:
        """Store `data`; returns its name."""
        name = hash_blob(data)
        if self.folder is not None:
            folder = Path(self.folder)
            folder.mkdir(0o700 if self.is_private else 0o777, parents=True, exist_ok=True)
            path = folder / name
            if not path.exists():
                partial = path.with_suffix(f".{os.getpid()}-{get_ident()}.partial")
                partial.write_bytes(data)
                partial.replace(path)
            return name
        with _LOCK:
            if name not in self._held:
                self._held[name] = data
                self._size += len(data)
                while self._size > self.limit and len(self._held) > 1:
                    self._size -= len(self._held.pop(next(iter(self._held))))
        return name

    def get(self, name: str) -> bytes | None:
        """The bytes with that name, or None if they were never stored or have been dropped."""
        if self.folder is None:
            return self._held.get(name)
        if not name.isalnum():
            return None
        path = Path(self.folder) / name
        return path.read_bytes() if path.is_file() else None
