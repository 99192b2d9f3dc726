"""The files of a recorded analysis: where they are, and whether they are still what they were."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.analysis.recording.source import RecordedAnalysis, RecordedFile
from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.analysis.data.sources import DataSource


def describe_sources(sources: Iterable[DataSource], recording: Path) -> list[RecordedFile]:
    """Data files as they are recorded. Raises `OSError`."""
    return [
        RecordedFile(name=source.name, path=write_path(source.path, recording), digest=_hash_file(source.path))
        for source in sources
    ]


def write_path(path: Path, recording: Path) -> str:
    """The place of a file in the folder of a recording or below it, from there: both can be moved together.

    That of any other file is absolute.
    """
    whole, folder = Path(os.path.abspath(path)), Path(os.path.abspath(recording)).parent  # noqa: PTH100 - links stay
    return str(whole.relative_to(folder)) if whole.is_relative_to(folder) else str(whole)


def find_files(files: Iterable[RecordedFile], recording: Path) -> list[str]:
    """The recorded files, as the arguments of `--data`. Raises `SettingsError` for one that isn't there."""
    found = []
    for file in files:
        path = recording.parent / file.path
        if not path.is_file():
            raise SettingsError(f"{path}, which {recording} was made with, isn't there; give its data by --data")
        found.append(f"{file.name}={path}" if file.name else str(path))
    return found


def list_data_files(recording: Path) -> list[Path]:
    """Where the files of a recording are, or were; none for what is no recording, which its reader explains."""
    try:
        files = RecordedAnalysis.read(recording).header.data
    except (OSError, SettingsError):
        return []
    return [recording.parent / file.path for file in files]


def find_changes(recorded: Iterable[RecordedFile], now: Iterable[RecordedFile]) -> list[str]:
    """A sentence for each file whose content isn't the recorded one, and for those that are new or missing."""
    old = {_find_name(file): file.digest for file in recorded}
    new = {_find_name(file): file.digest for file in now}
    changed = [f"{name} has changed since it was recorded" for name in old if name in new and old[name] != new[name]]
    missing = [f"{name}, which was recorded, is not among the data" for name in old if name not in new]
    return changed + missing + [f"{name} was not among the recorded data" for name in new if name not in old]


def _find_name(file: RecordedFile) -> str:
    return file.name or Path(file.path).name


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
