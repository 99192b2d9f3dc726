"""Writes a recording: each row when it is known, and at the end all of them in an order that doesn't depend on time."""

from __future__ import annotations

import os
import re
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from ferrule._util.output_files import check_parent_folder
from ferrule._util.user_folders import write_private_file
from ferrule.analysis.recording.rows import (
    AnalysisRow,
    AnswerRow,
    AnyRow,
    EndRow,
    ModelRow,
    ResultRow,
    RunRow,
    SharedRow,
)
from ferrule.blobs import BlobStore
from ferrule.errors import SettingsError
from ferrule.models.recording.request import compute_digest, dump_row
from ferrule.models.recording.secrets import SecretFinder
from ferrule.sandbox.own_files import hide_own_file

_ORDER: tuple[type[Any], ...] = (AnalysisRow, ModelRow)
_Rank: TypeAlias = tuple[int, str, list[int]]
_NUMBERS = re.compile(r"\d+")


def find_blob_folder(path: Path) -> Path:
    """The folder of the figures and frames of a recording, beside it."""
    return path.with_suffix(".blobs")


class RecordingWriter:
    """A new recording. Raises `SettingsError` for a file that exists, and `OSError`.

    Nobody else can read the file, and tools of the analysis can't either. Known secrets, and whatever has the form of a
    key, are replaced in everything that is written; `has_scrubbed` says whether there were any.
    """

    def __init__(self, path: Path) -> None:
        check_parent_folder(path)
        if path.exists():
            raise SettingsError(f"{path} exists already; name another file to record the analysis in, or delete it")
        self.path = path
        self.blobs = BlobStore(find_blob_folder(path), is_private=True)
        self.has_scrubbed = False
        self._secrets = SecretFinder({})
        self._lines: list[tuple[_Rank, bytes]] = []
        self._shared: set[str] = set()
        self._file = open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb", buffering=0)  # noqa: PTH123, SIM115 - a descriptor, open to the end
        self._release = hide_own_file(path, "the recording of the analysis")

    @property
    def has_rows(self) -> bool:
        """Whether anything was written."""
        return bool(self._lines)

    def add(self, row: AnyRow) -> None:
        """Write a row."""
        data = {"type": row.type} | row.model_dump(mode="json", exclude_defaults=True)
        scrubbed = self._secrets.scrub(data)
        self.has_scrubbed = self.has_scrubbed or scrubbed != data
        line = dump_row(scrubbed)
        self._lines.append((_rank(row), line))
        self._file.write(line)

    def share(self, value: Any) -> str:
        """Write a value that several rows name, unless it is written already; returns its name."""
        name = compute_digest(value)
        if name not in self._shared:
            self._shared.add(name)
            self.add(SharedRow(id=name, value=value))
        return name

    def close(self) -> None:
        """Put the rows in order: those of each task together, whichever ran first. A file without rows is removed."""
        if self._file.closed:
            return
        self._file.close()
        self._release()
        if not self._lines:
            self.path.unlink(missing_ok=True)
            return
        write_private_file(self.path, b"".join(line for _, line in sorted(self._lines, key=itemgetter(0))))


def _rank(row: AnyRow) -> _Rank:
    """The place of a row in a finished recording. Those of a task keep their order: its stages follow each other."""
    if isinstance(row, SharedRow):
        return 2, row.id, []
    if isinstance(row, AnswerRow | RunRow | ResultRow):
        # t2 comes before t10, and the stages of the whole analysis before those of tasks.
        return 4, _NUMBERS.sub("", row.task), [int(one) for one in _NUMBERS.findall(row.task)]
    if isinstance(row, EndRow):
        return 5, "", []
    return (_ORDER.index(type(row)) if type(row) in _ORDER else 3), "", []
