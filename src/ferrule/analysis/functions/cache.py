"""Keeps the repository in the user's cache folder: one file, named by the versions of all that it depends on."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ferrule._util.user_folders import write_private_file
from ferrule.analysis.functions.document import FunctionDoc, read_curated_files
from ferrule.analysis.functions.search import FunctionIndex

_PACKAGES: Final = ("numpy", "pandas", "matplotlib", "scipy", "scikit-learn", "statsmodels", "PyStemmer")
_KEPT: Final = 3
"""Caches that are kept, of as many environments."""
_DAMAGE: Final = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error)


class StoredDocuments:
    """Documents as one array of JSON, each decoded when it is read: of thousands, a search shows five."""

    def __init__(self, text: NDArray[Any], ends: NDArray[Any], paths: Sequence[str]) -> None:
        self._text = text
        self._ends = ends
        self.paths = paths

    @classmethod
    def store(cls, documents: Sequence[FunctionDoc]) -> StoredDocuments:
        """Encode documents."""
        encoded = [json.dumps(document.to_json(), ensure_ascii=False).encode() for document in documents]
        text = np.frombuffer(b"".join(encoded), np.uint8)
        return cls(text, np.cumsum([len(one) for one in encoded]), [document.path for document in documents])

    def read(self, number: int) -> FunctionDoc:
        """Decode one document."""
        start = int(self._ends[number - 1]) if number else 0
        return FunctionDoc.from_json(json.loads(self._text[start : int(self._ends[number])].tobytes()))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The documents as arrays, from which `from_arrays` restores them."""
        paths = "\n".join(self.paths).encode()
        return {"text": self._text, "ends": self._ends, "paths": np.frombuffer(paths, np.uint8)}

    @classmethod
    def from_arrays(cls, arrays: Any) -> StoredDocuments:
        """Restore documents. Raises `KeyError` or `ValueError` for arrays of anything else."""
        return cls(arrays["text"], arrays["ends"], arrays["paths"].tobytes().decode().split("\n"))


def find_cache_file(folder: Path) -> Path:
    """The file for the packages, the Python and the ferrule that run now."""
    state = hashlib.blake2b(digest_size=10)
    state.update(json.dumps([sys.version, *map(_find_version, _PACKAGES)]).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        state.update(source.read_bytes())
    state.update(read_curated_files())
    return folder / f"{state.hexdigest()}.npz"


def read_cache(path: Path) -> tuple[StoredDocuments, FunctionIndex] | None:
    """Read the repository; None if there is no such file, or a damaged one."""
    try:
        # Every part has a checksum, which reading verifies.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            members = {name: arrays[name] for name in arrays.files}
        return StoredDocuments.from_arrays(members), FunctionIndex.from_arrays(members)
    except _DAMAGE:
        return None


def write_cache(path: Path, documents: StoredDocuments, index: FunctionIndex) -> None:
    """Write the repository, and remove what is older than the newest few. Nothing is written to a read-only folder."""
    file = io.BytesIO()
    arrays: dict[str, Any] = documents.to_arrays() | index.to_arrays()
    np.savez(file, **arrays)
    # Without a cache, all works the same, only slower.
    with suppress(OSError):
        write_private_file(path, file.getvalue())
        kept = sorted(path.parent.glob("*.npz"), key=lambda one: one.stat().st_mtime, reverse=True)
        for old in kept[_KEPT:]:
            old.unlink(missing_ok=True)


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"
