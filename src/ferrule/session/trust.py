"""What the user trusted, by kind, path and content hash: a file that has changed since isn't trusted.

digest = hash_content(data)  # of the bytes that are used, not of the file once more
if not is_trusted("project", path, digest): ...  # show what it would do, ask, then trust("project", path, digest)
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ferrule.session.user_records import change_records, read_records

TrustKind = Literal["project", "tools"]
"""`project` is a `ferrule.toml`, `tools` a file or folder of tools."""

_FILE = "trust.json"
_REFUSED = "refused.json"


@dataclass(frozen=True, slots=True)
class TrustedContent:
    """Something that the user trusted; `time` is when, in seconds since 1970."""

    kind: str
    path: str
    digest: str
    time: float


def hash_content(*contents: bytes) -> str:
    """The hash by which contents are trusted, of one file or of several in order."""
    digest = hashlib.sha256()
    for content in contents:
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()


def is_trusted(kind: TrustKind, path: Path, digest: str) -> bool:
    """Whether the user trusted exactly this content at this path.

    Raises `SettingsError` if what was trusted can't be read, and `OSError`.
    """
    return any(one.digest == digest for one in _find(read_records(_FILE), kind, path))


def was_trusted(kind: TrustKind, path: Path) -> bool:
    """Whether the user trusted something at this path, perhaps with another content. Raises as `is_trusted` does."""
    return bool(_find(read_records(_FILE), kind, path))


def trust(kind: TrustKind, path: Path, digest: str) -> None:
    """Trust this content at this path, and no earlier one. Raises `SettingsError` and `OSError`."""
    _record(_FILE, kind, path, digest)


def refuse(kind: TrustKind, path: Path, digest: str) -> None:
    """Remember that the user doesn't trust this content, so that it isn't asked again. Raises as `trust` does."""
    _record(_REFUSED, kind, path, digest)


def is_refused(kind: TrustKind, path: Path, digest: str) -> bool:
    """Whether the user said not to trust exactly this content. Raises as `is_trusted` does."""
    return any(one.digest == digest for one in _find(read_records(_REFUSED), kind, path))


def forget(kind: TrustKind, path: Path) -> bool:
    """No longer trust what is at this path; False if it wasn't trusted. Raises `SettingsError` and `OSError`."""
    key, found = _make_key(kind, path), []

    def change(records: dict[str, Any]) -> None:
        found.append(records.pop(key, None))

    change_records(_FILE, change)
    return found != [None]


def list_trusted() -> tuple[TrustedContent, ...]:
    """All that the user trusted, by path. Raises `SettingsError` and `OSError`."""
    return tuple(sorted(_parse(read_records(_FILE).items()), key=lambda one: (one.path, one.kind)))


def _record(file: str, kind: TrustKind, path: Path, digest: str) -> None:
    key = _make_key(kind, path)

    def change(records: dict[str, Any]) -> None:
        records[key] = {"digest": digest, "time": time.time()}

    change_records(file, change)


def _find(records: dict[str, Any], kind: TrustKind, path: Path) -> list[TrustedContent]:
    key = _make_key(kind, path)
    return list(_parse([(key, records[key])])) if key in records else []


def _parse(items: Iterable[tuple[str, Any]]) -> Iterable[TrustedContent]:
    for key, value in items:
        kind, _, path = key.partition(" ")
        # An entry that can't be understood trusts nothing.
        if isinstance(value, dict) and isinstance(value.get("digest"), str) and isinstance(value.get("time"), float):
            yield TrustedContent(kind, path, value["digest"], value["time"])


def _make_key(kind: TrustKind, path: Path) -> str:
    # The real path: a link to it, or another folder that leads there, is the same file.
    return f"{kind} {os.path.realpath(path)}"
