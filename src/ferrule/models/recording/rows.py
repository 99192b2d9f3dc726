"""The rows of a recording, one JSON object a line, and how they are read.

    {"type": "recording", "version": 2}
    {"type": "model", "model": "openai:gpt-5", "capabilities": {…}}
    {"type": "shared", "id": "071e…", "value": {"role": "user", "parts": […]}}
    {"type": "exchange", "id": "5a0c…", "model": "openai:gpt-5", "messages": ["071e…"], "answer": {…}, "stop": "calls"}
    {"type": "value", "name": "run", "stage": "t1/run/0", "value": {…}}

A message, a list of tools or settings stand once, in a `shared` row, and an exchange names them; the answer of another
exchange is named by its id. What was asked at a stage, such as those of an analysis, is found by that, and anything
else by the request.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ferrule import errors
from ferrule._util.invalid_fields import describe_invalid_fields
from ferrule.conversation import StopReason
from ferrule.errors import FerruleError, ProviderError, SettingsError

VERSION = 2
DEEPEST = 250
"""How many levels deep a row may be nested."""
_SHOWN = 300
"""Characters shown of what is wrong with a row."""


class Row(BaseModel):
    """What all rows share."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class HeaderRow(Row):
    """The first row of a file."""

    type: Literal["recording"] = "recording"
    version: int


class ModelRow(Row):
    """A model that answered, with what it supports, so that conversations are adapted in the same way in a replay."""

    type: Literal["model"] = "model"
    model: str
    """The name that it was asked for."""
    name: str | None = None
    """Its own name, if that is another one."""
    capabilities: dict[str, Any] = {}


class SharedRow(Row):
    """Data that other rows name."""

    type: Literal["shared"] = "shared"
    id: str
    value: Any


class Failure(Row):
    """An error that a model, a run or a tool ended with."""

    kind: str
    """The class of the exception."""
    message: str
    status: int | None = None
    """The HTTP status of a provider's error."""

    @classmethod
    def describe(cls, error: BaseException) -> Failure:
        """An error as it is recorded."""
        status = error.status if isinstance(error, ProviderError) else None
        return cls(kind=type(error).__name__, message=str(error), status=status)

    def restore(self) -> Exception:
        """The error that was recorded, of the same class as far as ferrule has it."""
        if self.kind == TimeoutError.__name__:
            return TimeoutError(self.message)
        kind = getattr(errors, self.kind, None)
        if not isinstance(kind, type) or not issubclass(kind, FerruleError):
            return FerruleError(self.message)
        return kind(self.message, self.status) if issubclass(kind, ProviderError) else kind(self.message)


class ExchangeRow(Row):
    """A request to a model, and its answer or why there is none."""

    type: Literal["exchange"] = "exchange"
    id: str
    model: str
    stage: str = ""
    messages: list[str] = []
    tools: str = ""
    settings: str = ""
    events: list[dict[str, Any]] = []
    """What came before the whole answer."""
    answer: dict[str, Any] | None = None
    usage: dict[str, int] = {}
    stop: StopReason = "turn"
    detail: str = ""
    prompt_ids: list[int] = []
    prompt_images: list[tuple[str, int, int]] = []
    confidences: list[float] = []
    withheld: list[dict[str, str]] = []
    failure: Failure | None = None


class ValueRow(Row):
    """Anything else that is recorded, by its name and stage."""

    type: Literal["value"] = "value"
    name: str
    stage: str = ""
    value: Any = None
    shared: list[str] | None = None
    """In place of a value: the members of a list, which other lists have as well."""
    failure: Failure | None = None


AnyRow: TypeAlias = Annotated[HeaderRow | ModelRow | SharedRow | ExchangeRow | ValueRow, Field(discriminator="type")]
_ROWS: TypeAdapter[AnyRow] = TypeAdapter(AnyRow)


def read_rows(path: Path) -> tuple[list[tuple[int, AnyRow]], bool]:
    """The rows with their lines, and whether the last is incomplete, and so left out: who wrote it was killed.

    Raises `SettingsError`, naming the line, for what is no recording.
    """
    # A pipe or a device might never end.
    if not path.is_file():
        raise SettingsError(f"{path} is not a file; name a recording")
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise SettingsError(f"the recording {path} can't be read: {error.strerror}") from error
    rows: list[tuple[int, AnyRow]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            if rows and number == len(lines):
                return rows, True
            why = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
            raise refuse(path, number, f"it is {why}", is_first=not rows) from error
        rows.append((number, _read_row(path, number, data, is_first=not rows)))
    return rows, False


def _read_row(path: Path, line: int, data: Any, *, is_first: bool) -> AnyRow:
    if _is_nested_deeper(data, DEEPEST):
        raise refuse(path, line, f"it is nested more than {DEEPEST} levels deep", is_first=is_first)
    if is_first:
        _check_version(path, data)
    try:
        row = _ROWS.validate_python(data)
    except ValidationError as error:
        raise refuse(path, line, error, is_first=is_first) from error
    if isinstance(row, HeaderRow) and not is_first:
        raise refuse(path, line, "only the first row has the type 'recording'")
    return row


def _check_version(path: Path, data: Any) -> None:
    version = data.get("version") if isinstance(data, dict) else None
    if version is None or (version == VERSION and data.get("type") != "recording"):
        raise refuse(path, 1, "it doesn't begin with a row of the type 'recording'", is_first=True)
    if version != VERSION:
        raise SettingsError(
            f"{path}: the recording has the version {version!r}, and this ferrule reads {VERSION}; "
            + ("update ferrule" if isinstance(version, int) and version > VERSION else "delete it and record again")
        )


def _is_nested_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        inner: list[Any] = []
        for one in level:
            inner += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if not inner:
            return False
        level = inner
    return True


def refuse(path: Path, line: int, why: object, *, is_first: bool = False) -> SettingsError:
    """The error for a row that can't be read, with the reason or the exception."""
    if isinstance(why, ValidationError):
        why = describe_invalid_fields(why)
    elif isinstance(why, KeyError):
        why = f"{why} is missing"
    elif isinstance(why, TypeError | AttributeError | ArithmeticError):
        why = f"what it holds has another form ({why})"
    what = "not a recording, or a damaged one" if is_first else "a damaged row"
    advice = "name another file, or delete this one" if is_first else "delete the file"
    return SettingsError(
        f"{path}, line {line}: {what}: {' '.join(str(why).split())[:_SHOWN]}; {advice} and record again"
    )
