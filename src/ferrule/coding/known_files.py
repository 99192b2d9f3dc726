"""Keeps what the model knows of files with its conversation, so that a resumed one knows it too."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ferrule._util.user_folders import write_private_file
from ferrule.coding.files.records import FileRecord, FileRecords

__all__ = ["KnownFiles"]

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
