"""The rows of a recording, one JSON object a line: what they hold, and how they are read back.

    {"type": "analysis", "version": 1, "question": …, "model": …, "settings": {…}, "data": […], "packages": {…}}
    {"type": "model", "name": "openai:gpt-5", "capabilities": {…}}
    {"type": "shared", "id": "…", "value": …}
    {"type": "answer", "task": "t1", "stage": "code", "attempt": 0, "number": 0, "request": {…}, "answer": {…}}
    {"type": "run", "task": "t1", "number": 0, "code": "…", "results": {…}, "outcome": {…}}
    {"type": "result", "task": "t1", "stage": "count_orders", "attempt": 0, "number": 0, "result": {…}}
    {"type": "end", "stopped": null, "times": {…}}

A row is known by its task, stage and attempt, never by its place in the file. What several requests have in common,
such as instructions, stands once in a `shared` row. An answer with a `text` is one that a person wrote.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ferrule._util.invalid_fields import describe_invalid_fields
from ferrule.errors import SettingsError

VERSION = 1
_SHOWN = 300
"""Characters shown of what is wrong with a row."""


class Row(BaseModel):
    """What all rows share."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordedFile(Row):
    """A data file that an analysis was given."""

    name: str | None
    """The name of its table, if one was given."""
    path: str
    """Relative to the folder of the recording where it lies in there."""
    digest: str
    """The SHA-256 of its content."""


class AnalysisRow(Row):
    """The first row: what was asked, of which data, and how."""

    type: Literal["analysis"] = "analysis"
    version: int
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


class ModelRow(Row):
    """A model that answered, with what it supports, so that a replay asks in the same way."""

    type: Literal["model"] = "model"
    name: str
    capabilities: dict[str, Any] = {}


class SharedRow(Row):
    """A message, a list of tools or the settings of one or more requests."""

    type: Literal["shared"] = "shared"
    id: str
    value: Any


class RecordedRequest(Row):
    """What a model was asked, by the ids of shared rows."""

    id: str
    """The same for equal requests."""
    messages: list[str]
    tools: str
    settings: str


class RecordedFailure(Row):
    """An error that a model, a run or a tool ended with."""

    kind: str
    """The class of the exception."""
    message: str
    status: int | None = None
    """The HTTP status of a provider's error."""


class Place(NamedTuple):
    """Which request or call of an analysis it is: one of those of a stage and attempt, counted from 0."""

    task: str
    stage: str
    attempt: int
    number: int

    def __str__(self) -> str:
        """As people read it: `t1/code/0`, and the number of one that repeats another."""
        again = f", request {self.number + 1}" if self.number else ""
        return f"{self.task}/{self.stage}/{self.attempt}{again}"


class PlacedRow(Row):
    """What the rows of a stage share."""

    task: str
    stage: str
    """A stage that asks a model, or the name of a tool."""
    attempt: int = 0
    number: int = 0
    """Counted from 0 within the stage and attempt: an answer that doesn't fit is sent back, a tool called again."""

    @property
    def place(self) -> Place:
        """What it is known by."""
        return Place(self.task, self.stage, self.attempt, self.number)


class AnswerRow(PlacedRow):
    """A message of a model, or why there is none."""

    type: Literal["answer"] = "answer"
    model: str = ""
    request: RecordedRequest | None = None
    text: str | None = None
    """An answer written by a person; other answers are whole messages."""
    answer: dict[str, Any] | None = None
    usage: dict[str, Any] = {}
    stop: str = "turn"
    failure: RecordedFailure | None = None


class RunRow(Row):
    """A run of code in the sandbox."""

    type: Literal["run"] = "run"
    task: str
    number: int = 0
    """Counted from 0 within the task."""
    code: str
    """The hash of the program."""
    results: dict[str, str] = {}
    """The content hash of each earlier result that it could use."""
    outcome: Any = None
    failure: RecordedFailure | None = None


class ResultRow(PlacedRow):
    """The result of a call of an added tool, or of one that reaches the network."""

    type: Literal["result"] = "result"
    result: dict[str, Any] | None = None
    """The message that a model is given."""
    data: Any = None
    """The same for programs."""
    failure: RecordedFailure | None = None
    """What ended the question while the call was running."""


class ValueRow(Row):
    """Data that an analysis was made with: its tables, the functions that were found, the tools on offer."""

    type: Literal["value"] = "value"
    name: str
    value: Any


class EndRow(Row):
    """The last row of an analysis that ended, also at a limit or by Ctrl-C."""

    type: Literal["end"] = "end"
    stopped: str | None = None
    times: dict[str, tuple[float, float]] = {}
    """When each task began and ended, in seconds after the start; in the order in which they ended."""
    seconds: float = 0.0
    calls: int | None = None
    """Requests to models, with those that were stopped before they were answered."""
    usage: dict[str, int] | None = None
    """The tokens, where tasks were cancelled, whose requests a replay doesn't make again."""
    cost: float | None = None
    """US dollars, as with `usage`."""
    cancelled: dict[str, str] = {}
    """Why they have no result, by id, of tasks that ran or waited when the analysis was stopped."""


AnyRow: TypeAlias = Annotated[
    AnalysisRow | ModelRow | SharedRow | AnswerRow | RunRow | ResultRow | ValueRow | EndRow,
    Field(discriminator="type"),
]
_ROWS: TypeAdapter[AnyRow] = TypeAdapter(AnyRow)


def read_rows(path: Path) -> tuple[list[AnyRow], bool]:
    """The rows of a recording, and whether its last one is incomplete, and so left out: who wrote it was killed.

    Raises `SettingsError`, naming the line, for what is no recording, and `OSError`.
    """
    rows: list[AnyRow] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            if rows and number == len(lines):
                return rows, True
            kind = "a damaged row" if rows else "not a recording of an analysis, or a damaged one"
            raise SettingsError(f"{where}: {kind}: it is not JSON") from error
        rows.append(_read_row(data, where, is_first=not rows))
    if not rows:
        raise SettingsError(f"{path}: the recording is empty")
    return rows, False


def _read_row(data: Any, where: str, *, is_first: bool) -> AnyRow:
    if is_first and (not isinstance(data, dict) or data.get("type") != "analysis"):
        raise SettingsError(f"{where}: not a recording of an analysis, which begins with a row of the type 'analysis'")
    if is_first and data.get("version") != VERSION:
        raise SettingsError(
            f"{where}: the recording has the version {data.get('version')!r}, and this ferrule reads {VERSION}; "
            "record the analysis again"
        )
    try:
        return _ROWS.validate_python(data)
    except ValidationError as error:
        raise SettingsError(f"{where}: a damaged row: {describe_invalid_fields(error)[:_SHOWN]}") from error
