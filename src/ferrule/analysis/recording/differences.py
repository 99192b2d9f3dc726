"""What differs between a recording and now: its files, what would be asked, what was computed."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.analysis.data.task_value import VALUE_FILE
from ferrule.analysis.recording.source import RecordedAnalysis, RecordedFile
from ferrule.errors import SettingsError
from ferrule.models.recording.differences import describe_differences
from ferrule.models.recording.request import Request
from ferrule.models.recording.rows import ValueRow

if TYPE_CHECKING:
    from ferrule.analysis.data.sources import DataSource

_TOLERANCE = 1e-9
"""Relative difference of two numbers that count as equal: another processor adds in another order."""
_MOST = 200
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ChangedRequest:
    """A request that isn't the recorded one: a model would be asked anew."""

    place: str
    details: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.place}: {'; '.join(self.details)}"


@dataclass(frozen=True, slots=True)
class RunDifference:
    """A value of a run that isn't the recorded one."""

    place: str
    """The task and the run, and where in the result the value stands."""
    recorded: str
    computed: str

    def __str__(self) -> str:
        return f"{self.place}: recorded {self.recorded}, now {self.computed}"


def describe_change(place: str, recorded: Request, now: Request) -> ChangedRequest:
    """What a request has that the recorded one hasn't."""
    return ChangedRequest(place, tuple(describe_differences(recorded, now)))


def compare_outcomes(row: ValueRow, recorded: ValueRow | None) -> list[RunDifference]:
    """The values that a run left and the recorded one didn't; numbers that differ only by rounding are equal."""
    place = row.stage
    if recorded is None:
        return [RunDifference(place, "no such run", "a run")]
    ends = [row.failure.message if row.failure else "", recorded.failure.message if recorded.failure else ""]
    if ends[0] != ends[1]:
        return [RunDifference(place, ends[1] or "a result", ends[0] or "a result")]
    found = []
    for path, old, new in _compare(recorded.value["outcome"], row.value["outcome"], ""):
        found.append(RunDifference(f"{place}{path}", _show(old), _show(new)))
        if len(found) == _MOST:
            break
    return found


def _compare(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        # The pickle for later tasks differs with versions and the order of sets; the value that is shown is compared.
        for name in (one for one in dict.fromkeys((*old, *new)) if one != VALUE_FILE):
            yield from _compare(old.get(name), new.get(name), f"{path}.{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, (one, two) in enumerate(zip(old, new, strict=True)):
            yield from _compare(one, two, f"{path}[{at}]")
    elif not _are_equal(old, new):
        yield path, old, new


def _are_equal(old: Any, new: Any) -> bool:
    numbers = (int, float)
    if (
        isinstance(old, numbers)
        and isinstance(new, numbers)
        and not isinstance(old, bool)
        and not isinstance(new, bool)
    ):
        return math.isclose(old, new, rel_tol=_TOLERANCE, abs_tol=1e-12) or (math.isnan(old) and math.isnan(new))
    return bool(old == new)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
