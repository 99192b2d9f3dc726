"""The recording of an analysis that was read: what it began with, its answers, runs and values, and how it ended.

It is a recording of models (`ferrule.models.recording`) whose exchanges have the stage that asked, with these values:

    analysis           what was asked, of which data, and how
    data, tools, …     what the analysis was made with
    run                what a program left, by its task: `t1/run/0`
    result             what a call of an added tool, or of one that reaches the network, was answered
    end                how the analysis ended, also at a limit or by Ctrl-C
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from ferrule.blobs import BlobStore
from ferrule.errors import SettingsError, ToolDefinitionError
from ferrule.events import Usage
from ferrule.models.prices import read_prices
from ferrule.models.recording.exchange import DAMAGE, Exchange
from ferrule.models.recording.file import RecordingFile
from ferrule.models.recording.rows import refuse

ANALYSIS, RUN, RESULT, END = "analysis", "run", "result", "end"
"""The names of values."""


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordedFile(_Data):
    """A data file that an analysis was given."""

    name: str | None
    """The name of its table, if one was given."""
    path: str
    """Relative to the folder of the recording where it lies in there."""
    digest: str
    """The SHA-256 of its content."""


class Beginning(_Data):
    """What was asked, of which data, and how."""

    question: str
    model: str = ""
    """The model that was asked unless another is named for a tool or stage."""
    models: dict[str, str] = {}
    """Other models by tool or stage."""
    settings: dict[str, Any] = {}
    """The settings that differ from the defaults."""
    prices: dict[str, Any] = {}
    """What the models cost, where the cost was limited: it ends where it ended, whatever they cost now."""
    data: list[RecordedFile] = []
    """The files that were given."""
    packages: dict[str, str] = {}
    """The versions that ran: Python's, ferrule's and those of the packages of the sandbox."""
    continues: str | None = None
    """The recording of the analysis that this one continues."""


class RecordedRun(_Data):
    """A run of code in the sandbox."""

    code: str
    """The hash of the program."""
    results: dict[str, str] = {}
    """The content hash of each earlier result that it could use."""
    outcome: Any = None


class Ending(_Data):
    """How an analysis ended."""

    stopped: str | None = None
    times: dict[str, tuple[float, float]] = {}
    """When each task began and ended, in seconds after the start; in the order in which they ended."""
    seconds: float = 0.0
    calls: int | None = None
    """Requests to models, with those that were stopped before they were answered."""
    usage: Usage | None = None
    """The tokens, where tasks were cancelled, whose requests a replay doesn't make again."""
    cost: float | None = None
    """US dollars, as with `usage`."""
    cancelled: dict[str, str] = {}
    """Why they have no result, by id, of tasks that ran or waited when the analysis was stopped."""


Kind = TypeVar("Kind", bound=_Data)


def find_blob_folder(path: Path) -> Path:
    """The folder of the figures and frames of a recording, beside it."""
    return path.with_suffix(".blobs")


@dataclass(frozen=True)
class RecordedAnalysis:
    """What a recording holds."""

    file: RecordingFile
    header: Beginning
    end: Ending | None
    """None if whoever recorded it was killed."""
    answers: dict[str, Exchange]
    """By stage."""
    runs: dict[str, RecordedRun]
    """By task and number, without those that failed."""

    @classmethod
    def read(cls, path: Path) -> RecordedAnalysis:
        """Read a recording. Raises `SettingsError`, naming the line, for a damaged one, and `OSError`."""
        try:
            path.stat()
        except ValueError as error:  # a NUL in a recorded path
            raise SettingsError(f"{str(path)!r} is no path of a recording: {error}") from error
        file = RecordingFile(path)
        if (ANALYSIS, "") not in file.values:
            what = "the recording is empty" if not file.values and not file.models else "it is of no analysis"
            raise SettingsError(f"{path}: {what}; name another, or record the analysis again")
        end = _check(file, Ending, END) if (END, "") in file.values else None
        runs = {
            stage: _check(file, RecordedRun, RUN, stage)
            for (name, stage), row in file.values.items()
            if name == RUN and row.failure is None
        }
        answers = {one.row.stage: one for one in file.exchanges}
        header = _check(file, Beginning, ANALYSIS)
        source = cls(file, header, end, answers, runs)
        try:
            read_prices(header.prices)
        except SettingsError as error:
            raise source.refuse(error) from error
        return source

    def refuse(self, error: Exception) -> SettingsError:
        """The error for what it began with, if that can't be taken."""
        return refuse(self.path, self.file.lines[ANALYSIS, ""], error)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.file.path

    def read_earlier(self) -> RecordedAnalysis | None:
        """The recording of the analysis that this one goes on from. Raises as `read`, and for one that has no first."""
        chain, seen = [self], {self.path.resolve()}
        while (continues := chain[-1].header.continues) is not None:
            chain.append(RecordedAnalysis.read(chain[-1].path.parent / continues))
            if (path := chain[-1].path.resolve()) in seen:
                raise SettingsError(f"{self.path} goes on from itself, by {path}; record the analysis again")
            seen.add(path)
        return chain[1] if len(chain) > 1 else None

    @property
    def blobs(self) -> BlobStore:
        """The figures and frames."""
        return BlobStore(find_blob_folder(self.path))

    def has(self, name: str, stage: str = "") -> bool:
        """Whether there is a value of that name."""
        return (name, stage) in self.file.values

    @contextmanager
    def reading(self, name: str, stage: str = "") -> Iterator[Any]:
        """Read a value, None if there is none. What reading damaged data raises becomes a `SettingsError`."""
        with _reading(self.file, name, stage) as value:
            yield value

    def list_stages(self, name: str) -> list[str]:
        """The stages that have a value of that name."""
        return [stage for one, stage in self.file.values if one == name]

    def explain_end(self, missing: str) -> str:
        """Why the recording has no more answers, and what is missing if nothing else is known."""
        if self.end is not None and self.end.stopped:
            return self.end.stopped
        return f"the recording ends here ({missing})"


@contextmanager
def _reading(file: RecordingFile, name: str, stage: str) -> Iterator[Any]:
    row = file.values.get((name, stage))
    try:
        yield None if row is None else row.value if row.shared is None else file.find_shared(row)
    except (*DAMAGE, ToolDefinitionError) as error:
        raise refuse(file.path, file.lines.get((name, stage), 0), error) from error


def _check(file: RecordingFile, kind: type[Kind], name: str, stage: str = "") -> Kind:
    with _reading(file, name, stage) as value:
        return kind.model_validate(value)
