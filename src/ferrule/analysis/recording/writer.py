"""Writes the recording of an analysis: each row when it is known, and at the end all of them in a fixed order.

One that no file was named for lies in the user's data folder, by the time and the question.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

from ferrule._util.output_files import check_parent_folder
from ferrule._util.user_folders import find_data_folder
from ferrule.analysis.recording.source import ANALYSIS, END, find_blob_folder
from ferrule.blobs import BlobStore
from ferrule.capabilities import Capabilities
from ferrule.errors import SettingsError
from ferrule.models.recording.file import RecordingFile, WrittenRow
from ferrule.models.recording.rows import ExchangeRow, ModelRow, ValueRow
from ferrule.models.recording.secrets import SecretFinder
from ferrule.sandbox.own_files import hide_own_file

_WORDS = 6
_ENDING = ".jsonl"


def find_recording_folder() -> Path:
    """The folder of the user's recordings, existing or not. Raises `RuntimeError` where there is no home."""
    return find_data_folder() / "analyses"


def make_recording_path(question: str) -> Path:
    """The path of a new recording, whose folder is made. Raises `OSError` and `RuntimeError`."""
    folder = find_recording_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = "-".join(re.findall(r"[a-z0-9]+", question.casefold())[:_WORDS]) or "analysis"
    # The process's id: two analyses may begin in one second.
    return folder / f"{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}-{words[:60]}{_ENDING}"


def find_last_recording() -> Path:
    """The newest recording of the user. Raises `SettingsError` if there is none."""
    try:
        folder = find_recording_folder()
    except RuntimeError as error:
        raise SettingsError(f"there is no folder of recordings: {error}; set HOME, or name a recording") from error
    found = sorted(folder.glob(f"*{_ENDING}"), key=lambda path: path.stat().st_mtime) if folder.is_dir() else []
    if not found:
        raise SettingsError(f"no analysis is recorded in {folder} yet; name a recording")
    return found[-1]


_NUMBERS = re.compile(r"\d+")


class RecordingWriter:
    """A new recording. Raises `SettingsError` for a file that exists, and `OSError`.

    Nobody else can read the file, and tools of the analysis can't either. Known secrets, and whatever has the form of a
    key, are replaced in everything that is written; `has_scrubbed` says whether there were any.
    """

    def __init__(self, path: Path) -> None:
        check_parent_folder(path)
        if path.exists():
            raise SettingsError(f"{path} exists already; name another file to record the analysis in, or delete it")
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        self.path = path
        self.blobs = BlobStore(find_blob_folder(path), is_private=True)
        self._file = RecordingFile(path, scrub=SecretFinder({}).scrub)
        self._rows: list[WrittenRow] = []
        self._is_closed = False
        self._release = hide_own_file(path, "the recording of the analysis")

    @property
    def has_scrubbed(self) -> bool:
        """Whether a secret was replaced."""
        return self._file.has_scrubbed

    @property
    def has_rows(self) -> bool:
        """Whether anything was written."""
        return bool(self._rows)

    def add(self, row: ExchangeRow | ValueRow) -> None:
        """Write a row."""
        self._rows.append(self._file.add(row))

    def add_model(self, name: str, capabilities: Capabilities) -> None:
        """Write what a model supports, once."""
        if (written := self._file.add_model(name, name, capabilities)) is not None:
            self._rows.append(written)

    def share(self, value: Any) -> str:
        """The name of a value that several rows have; the next row brings it along."""
        return self._file.share(value)

    def close(self) -> None:
        """Put the rows in order: those of each task together, whichever ran first. A file without rows is removed."""
        if self._is_closed:
            return
        self._is_closed = True
        self._release()
        if self._rows:
            self._file.arrange(sorted(self._rows, key=lambda one: _rank(one.row)))
        else:
            self.path.unlink(missing_ok=True)


def _rank(row: ExchangeRow | ValueRow | ModelRow) -> tuple[int, str, list[int]]:
    """The place of a row in a finished recording. Those of a task keep their order: its stages follow each other."""
    if isinstance(row, ModelRow):
        return 1, "", []
    if row.stage:
        # t2 comes before t10, and the stages of the whole analysis before those of tasks.
        task = row.stage.partition("/")[0]
        return 3, _NUMBERS.sub("", task), [int(one) for one in _NUMBERS.findall(task)]
    name = row.name if isinstance(row, ValueRow) else ""
    return {ANALYSIS: 0, END: 4}.get(name, 2), "", []
