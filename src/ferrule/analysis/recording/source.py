"""A recording that was read: its answers, runs and values, by what they are of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ferrule.analysis.recording.rows import (
    AnalysisRow,
    AnswerRow,
    AnyRow,
    EndRow,
    ModelRow,
    Place,
    ResultRow,
    RunRow,
    SharedRow,
    ValueRow,
    read_rows,
)
from ferrule.analysis.recording.writer import find_blob_folder
from ferrule.blobs import BlobStore
from ferrule.capabilities import Capabilities
from ferrule.errors import SettingsError
from ferrule.models.recording.file import read_capabilities
from ferrule.models.recording.request import Request


@dataclass(frozen=True)
class RecordedAnalysis:
    """What a recording holds."""

    path: Path
    rows: tuple[AnyRow, ...]
    is_cut_off: bool = False
    """Whether its last row is incomplete, and left out."""

    @classmethod
    def read(cls, path: Path) -> RecordedAnalysis:
        """Read a recording. Raises `SettingsError`, naming the line, for a damaged one, and `OSError`."""
        rows, is_cut_off = read_rows(path)
        return cls(path, tuple(rows), is_cut_off)

    @property
    def header(self) -> AnalysisRow:
        """What was asked, of which data, and how."""
        first = self.rows[0]
        assert isinstance(first, AnalysisRow)
        return first

    @cached_property
    def answers(self) -> dict[Place, AnswerRow]:
        """The answers by their places."""
        return {row.place: row for row in self.rows if isinstance(row, AnswerRow)}

    @cached_property
    def runs(self) -> dict[tuple[str, int], RunRow]:
        """The runs by task and number."""
        return {(row.task, row.number): row for row in self.rows if isinstance(row, RunRow)}

    @cached_property
    def results(self) -> dict[Place, ResultRow]:
        """The results of calls by their places."""
        return {row.place: row for row in self.rows if isinstance(row, ResultRow)}

    @cached_property
    def values(self) -> dict[str, Any]:
        """The data that the analysis was made with, by name."""
        return {row.name: row.value for row in self.rows if isinstance(row, ValueRow)}

    @cached_property
    def models(self) -> dict[str, Capabilities]:
        """What each model supports, by name. Raises `SettingsError` for capabilities that this ferrule doesn't know."""
        try:
            return {row.name: read_capabilities(row.capabilities) for row in self.rows if isinstance(row, ModelRow)}
        except (TypeError, ValueError) as error:
            raise SettingsError(
                f"{self.path}: a model's capabilities can't be read: {error}; record it again"
            ) from error

    @property
    def end(self) -> EndRow | None:
        """How the analysis ended; None if whoever recorded it was killed."""
        last = self.rows[-1]
        return last if isinstance(last, EndRow) else None

    def explain_end(self, missing: str) -> str:
        """Why the recording has no more answers, and what is missing if nothing else is known."""
        if self.end is not None and self.end.stopped:
            return self.end.stopped
        return f"the recording ends here ({missing})"

    @cached_property
    def blobs(self) -> BlobStore:
        """The figures and frames."""
        return BlobStore(find_blob_folder(self.path))

    @cached_property
    def _shared(self) -> dict[str, Any]:
        return {row.id: row.value for row in self.rows if isinstance(row, SharedRow)}

    def find_shared(self, name: str) -> Any:
        """The value of a shared row. Raises `SettingsError` if it isn't there."""
        if name not in self._shared:
            raise SettingsError(
                f"{self.path}: a row names the row {name}, which isn't there; record the analysis again"
            )
        return self._shared[name]

    def find_request(self, row: AnswerRow) -> Request | None:
        """What was asked; None for an answer that a person wrote. Raises `SettingsError` for a row that is missing."""
        if row.request is None:
            return None
        asked = row.request
        return Request(
            tuple(map(self.find_shared, asked.messages)),
            tuple(self.find_shared(asked.tools)),
            self.find_shared(asked.settings),
        )
