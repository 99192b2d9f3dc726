"""What the model knows of files: the content that it read or wrote last, by hash, never by time.

A file that has changed since is announced once, before the next request, and isn't overwritten until it is read again.
The records are kept with their conversation, so that a resumed one knows the files too.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ferrule._util.spliced_bytes import SplicedBytes
from ferrule._util.user_folders import write_private_file
from ferrule.errors import FileAccessRefused
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.file_versions import is_settled

__all__ = ["ChangedFile", "FileRecord", "FileRecords", "KnownFiles", "hash_content"]

_MAX_NAMED = 20

Signature = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime (ns): if none has changed, the content hasn't."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The content of one file as the model knows it."""

    digest: str
    """Of what the model read, or wrote by a tool."""
    origin: str
    """Of the content that the edits of tools started from: differs from `digest` after a tool has written the file."""
    seen: str | None
    """Of what was there when it was last compared; None if the file was gone. The model knows of the difference."""
    signature: Signature | None

    def matches(self, status: os.stat_result) -> bool:
        """Whether a file of this status has the content `digest` for sure, without looking at it."""
        return self.seen == self.digest and self.signature is not None and self.signature == _make_signature(status)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that was changed or deleted by somebody else after the model read it."""

    path: str
    """The real path."""
    kind: Literal["changed", "deleted"]


class FileRecords:
    """The records of one workspace, by real path. Can be used from any thread."""

    def __init__(self, access: FileAccess) -> None:
        self._access = access
        self._records: dict[str, FileRecord] = {}
        self._written: dict[str, bytes | SplicedBytes] = {}
        """What tools wrote and is not hashed yet."""
        self._lock = threading.Lock()
        self._notices: deque[str] = deque(maxlen=_MAX_NAMED)

    def remember(self, path: str, digest: str, status: os.stat_result | None = None) -> None:
        """Record that the model knows this content of a file.

        `status` is from before the content was read; it makes the first comparison cheap.
        """
        with self._lock:
            self._written.pop(path, None)
            self._records[path] = FileRecord(digest, digest, digest, _make_signature(status))

    def remember_written(self, path: str, content: bytes | SplicedBytes) -> None:
        """Record that a tool of the model wrote this content, which is hashed when it is next compared."""
        with self._lock:
            self._settle(path)
            self._written[path] = content

    def _settle(self, path: str) -> None:
        """Make the record of a file that a tool wrote. An edit starts from the content that somebody else wrote."""
        content = self._written.pop(path, None)
        if content is not None:
            digest, before = hash_content(content), self._records.get(path)
            self._records[path] = FileRecord(digest, before.origin if before is not None else digest, digest, None)

    def forget(self, path: str) -> None:
        """Drop the record of a file that a tool has deleted."""
        with self._lock:
            self._written.pop(path, None)
            self._records.pop(path, None)

    def get(self, path: str) -> FileRecord | None:
        """The record of a real path; None if the model has neither read nor written it."""
        with self._lock:
            self._settle(path)
            return self._records.get(path)

    def list_records(self) -> dict[str, FileRecord]:
        """All records, by real path."""
        with self._lock:
            for path in tuple(self._written):
                self._settle(path)
            return dict(self._records)

    def replace_records(self, records: Mapping[str, FileRecord]) -> None:
        """Know what these records say and nothing else, as for another conversation."""
        with self._lock:
            self._written.clear()
            self._records = dict(records)

    def find_changed(self) -> list[ChangedFile]:
        """The files that changed since they were read or last returned here. Hashes only those with another status."""
        changed: list[ChangedFile] = []
        for path, record in self.list_records().items():
            signature = _read_signature(path)
            if signature is not None and signature == record.signature:
                continue
            seen = self._hash_file(path)
            with self._lock:
                if self._records.get(path) is not record:
                    continue  # a tool has just written it
                self._records[path] = replace(record, seen=seen, signature=signature)
            if seen not in (record.seen, record.digest):
                changed.append(ChangedFile(path, "deleted" if seen is None else "changed"))
        return changed

    def take_announcements(self, known: Collection[str] = ()) -> list[str]:
        """What the model should be told before its next turn; each change once.

        `known` are real paths of whose change it is told otherwise.
        """
        changed = [each for each in self.find_changed() if each.path not in known]
        if not changed:
            return []
        named = [f"- {self._access.describe(each.path)}: {each.kind}" for each in changed[:_MAX_NAMED]]
        if len(changed) > _MAX_NAMED:
            named.append(f"- and {len(changed) - _MAX_NAMED} more")
        count = "1 file that you read was" if len(changed) == 1 else f"{len(changed)} files that you read were"
        self._notices += [
            f"{self._access.describe(each.path)} was {each.kind} since the model read it; the model is told"
            for each in changed
        ]
        head = f"{count} changed by somebody else meanwhile (the user, a command). Read again before you rely on it:"
        return ["\n".join([head, *named])]

    def take_notices(self) -> list[str]:
        """The same for the person, since the last call: the last few of what the model was told."""
        notices = list(self._notices)
        self._notices.clear()
        return notices

    def _hash_file(self, path: str) -> str | None:
        """The hash of a file's content; None if it is gone or may not be read any more."""
        try:
            descriptor = self._access.open_file(path)
        except (OSError, FileAccessRefused):
            return None
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            return hashlib.file_digest(file, "sha256").hexdigest()


def hash_content(data: bytes | SplicedBytes) -> str:
    """The name of a content: its SHA-256 in hexadecimal."""
    found = hashlib.sha256()
    for part in [data] if isinstance(data, bytes) else data.parts:
        found.update(part)
    return found.hexdigest()


def _read_signature(path: str) -> Signature | None:
    try:
        return _make_signature(os.lstat(path))
    except OSError:
        return None


def _make_signature(status: os.stat_result | None) -> Signature | None:
    """None if the file was changed so recently that another change might leave its times as they are."""
    if status is None or not is_settled(status.st_ctime_ns):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


_MOST_CONVERSATIONS = 100


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """The records of conversations about one workspace, one file for each in `folder`.

    What can't be saved or read is not known: then the model has to read a file again before it replaces it.
    """

    folder: Path

    def save(self, conversation: str, files: FileRecords) -> None:
        """Keep the records of a conversation; those of the oldest ones are dropped."""
        known = {path: [record.digest, record.origin, record.seen] for path, record in files.list_records().items()}
        path = self._find_path(conversation)
        with suppress(OSError):
            if not known and not path.exists():
                return
            write_private_file(path, json.dumps(known).encode())
            newest = sorted(self.folder.glob("*.json"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
            for old in newest[_MOST_CONVERSATIONS:]:
                old.unlink(missing_ok=True)

    def load(self, conversation: str, files: FileRecords) -> None:
        """Let `files` know what was kept of a conversation, and nothing else."""
        found: dict[str, FileRecord] = {}
        with suppress(OSError, ValueError, TypeError, RecursionError, AttributeError):
            for path, (digest, origin, seen) in json.loads(self._find_path(conversation).read_bytes()).items():
                found[path] = FileRecord(str(digest), str(origin), None if seen is None else str(seen), None)
        files.replace_records(found)

    def _find_path(self, conversation: str) -> Path:
        return self.folder / f"{conversation}.json"
