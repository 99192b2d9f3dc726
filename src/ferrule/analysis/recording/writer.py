"""Writes a recording: each row when it is known, and at the end all of them in an order that doesn't depend on time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ferrule._util.output_files import check_parent_folder
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
        self.blobs = BlobStore(find_blob_folder(path))
        self.has_scrubbed = False
        self._secrets = SecretFinder({})
        self._rows: list[AnyRow] = []
        self._shared: set[str] = set()
        self._file = open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb", buffering=0)  # noqa: PTH123, SIM115 - a descriptor, open to the end
        self._release = hide_own_file(path, "the recording of the analysis")

    @property
    def has_rows(self) -> bool:
        """Whether anything was written."""
        return bool(self._rows)

    def add(self, row: AnyRow) -> None:
        """Write a row."""
        data = row.model_dump(mode="json", exclude_defaults=True) | {"type": row.type}
        scrubbed = self._secrets.scrub(data)
        self.has_scrubbed = self.has_scrubbed or scrubbed != data
        self._rows.append(row.model_validate(scrubbed))
        self._file.write(_dump(scrubbed))

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
        if not self._rows:
            self.path.unlink(missing_ok=True)
            return
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
            file.writelines(
                _dump(row.model_dump(mode="json", exclude_defaults=True) | {"type": row.type})
                for row in sort_rows(self._rows)
            )
        partial.replace(self.path)


def sort_rows(rows: Iterable[AnyRow]) -> list[AnyRow]:
    """The rows in the order of a finished recording. Those of a task keep theirs: its stages follow each other."""
    return sorted(rows, key=_rank)


def _rank(row: AnyRow) -> tuple[int, str, list[int], int]:
    if isinstance(row, SharedRow):
        return 2, row.id, [], 0
    if isinstance(row, AnswerRow | RunRow | ResultRow):
        # t2 comes before t10, and the stages of the whole analysis before those of tasks.
        return 4, _NUMBERS.sub("", row.task), [int(one) for one in _NUMBERS.findall(row.task)], 0
    if isinstance(row, EndRow):
        return 5, "", [], 0
    return (_ORDER.index(type(row)) if type(row) in _ORDER else 3), "", [], 0


def _dump(data: dict[str, Any]) -> bytes:
    first = {"type": data["type"]}
    return dump_row(first | data)
