"""The file of a recording: read, appended to, and put in an order that doesn't depend on time."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter

from ferrule.capabilities import Capabilities
from ferrule.models.recording.exchange import DAMAGE, Exchange, read_answer
from ferrule.models.recording.request import describe_message, dump_row
from ferrule.models.recording.rows import (
    VERSION,
    AnyRow,
    ExchangeRow,
    ModelRow,
    SharedRow,
    ValueRow,
    read_rows,
    refuse,
)
from ferrule.models.recording.shared import SharedValues, list_names

_DEFAULTS = Capabilities()
_CAPABILITIES = TypeAdapter(Capabilities)
_REFRESHED: set[Path] = set()
"""The files that this process has begun anew."""


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """A row that is in the file, with the lines of the values that it was the first to name."""

    row: ExchangeRow | ValueRow | ModelRow
    line: bytes
    shared: Sequence[tuple[str, bytes]]


class RecordingFile:
    """What one file holds. Appending is atomic, also between processes. Raises `SettingsError` for any other file.

    `scrub` replaces what must not be written. With `refreshes`, the first row that this process writes there replaces
    all that was in the file: several models, or tests, may refresh one.
    """

    def __init__(self, path: Path, *, refreshes: bool = False, scrub: Callable[[Any], Any] | None = None) -> None:
        self.path = path
        self.models: dict[str, tuple[str, Capabilities]] = {}
        """The name and capabilities of each model, by the name that it was asked for."""
        self.exchanges: list[Exchange] = []
        self.values: dict[tuple[str, str], ValueRow] = {}
        """Other data by name and stage."""
        self.lines: dict[tuple[str, str], int] = {}
        """Where these stand."""
        self.is_cut_off = False
        """Whether the last row is incomplete, and left out."""
        self.has_scrubbed = False
        """Whether anything was replaced in what was written."""
        self._refreshes = refreshes
        self._scrub = scrub
        self._shared = SharedValues()
        if not self._begins_anew and path.exists():
            self._read()

    @property
    def _begins_anew(self) -> bool:
        return self._refreshes and self.path.resolve() not in _REFRESHED

    def _read(self) -> None:
        rows, self.is_cut_off = read_rows(self.path)
        # Rows may stand in any order, since those of one conversation or task are put together.
        for read in (self._read_shared, self._read_row):
            for line, row in rows:
                try:
                    read(line, row)
                except DAMAGE as error:
                    raise refuse(self.path, line, error) from error

    def _read_shared(self, line: int, row: AnyRow) -> None:  # noqa: ARG002 - as `_read_row`
        if isinstance(row, SharedRow):
            self._shared.keep(row.id, row.value)
        elif isinstance(row, ExchangeRow) and row.failure is None:
            self._shared.keep(row.id, describe_message(read_answer(row.answer)))

    def _read_row(self, line: int, row: AnyRow) -> None:
        if isinstance(row, ModelRow):
            self.models[row.model] = row.name or row.model, read_capabilities(row.capabilities)
        elif isinstance(row, ExchangeRow):
            self._take_exchange(row, line)
        elif isinstance(row, ValueRow):
            self.values[row.name, row.stage] = row
            self.lines[row.name, row.stage] = line
            if row.shared is not None:
                self.find_shared(row)

    def _take_exchange(self, row: ExchangeRow, line: int) -> None:
        self.exchanges.append(Exchange(self.path, line, self._shared.find_request(row), row))

    def find_shared(self, row: ValueRow) -> list[Any]:
        """The members of a list. Raises `LookupError`."""
        return [self._shared.find(name) for name in row.shared or ()]

    def share(self, value: Any) -> str:
        """The name of a value that several rows have; the next row brings it along."""
        return self._shared.share(value)

    def add_model(self, key: str, name: str, capabilities: Capabilities) -> WrittenRow | None:
        """Append what a model supports, unless it is in the file."""
        if key in self.models:
            return None
        self.models[key] = name, capabilities
        described = describe_capabilities(capabilities)
        return self.add(ModelRow(model=key, name=None if name == key else name, capabilities=described))

    def add(self, row: ExchangeRow | ValueRow | ModelRow) -> WrittenRow:
        """Append a row, after the values that it is the first to name. Raises `OSError`."""
        new = self._shared.take_new(list_names(row))
        shared = [(one.id, self._dump(one)) for one in new]
        written = WrittenRow(row, self._dump(row), shared)
        self._append([*(line for _, line in shared), written.line])
        return written

    def add_exchange(self, row: ExchangeRow) -> tuple[WrittenRow, Exchange]:
        """Append an exchange, whose answer the next ones may name."""
        written = self.add(row)
        if row.answer is not None:
            self._shared.keep(row.id, describe_message(read_answer(row.answer)))
        self._take_exchange(row, line=0)
        return written, self.exchanges[-1]

    def _dump(self, row: SharedRow | ExchangeRow | ValueRow | ModelRow) -> bytes:
        data = {"type": row.type} | row.model_dump(mode="json", exclude_defaults=True)
        scrubbed = data if self._scrub is None else self._scrub(data)
        self.has_scrubbed = self.has_scrubbed or scrubbed != data
        return dump_row(scrubbed)

    def _append(self, lines: Sequence[bytes]) -> None:
        with self._lock() as path:
            if self._begins_anew:
                _replace(path, [_HEADER, *lines])
                _REFRESHED.add(path)
                return
            with path.open("a+b") as file:
                _complete_last_row(file)
                file.write(b"".join(lines if file.tell() else [_HEADER, *lines]))

    def arrange(self, rows: Sequence[WrittenRow]) -> None:
        """Put these rows in this order, in the places that they have together. Raises `OSError`."""
        shared = {name: line for one in rows for name, line in one.shared}
        ordered: list[bytes] = []
        for one in rows:
            ordered += [shared.pop(name) for name in list_names(one.row) if name in shared]
            ordered.append(one.line)
        with self._lock() as path:
            lines = path.read_bytes().splitlines(keepends=True)
            moved = set(ordered)
            places = [at for at, line in enumerate(lines) if line in moved]
            if len(places) == len(ordered) and [lines[at] for at in places] != ordered:
                for at, line in zip(places, ordered, strict=True):
                    lines[at] = line
                _replace(path, lines)

    @contextmanager
    def _lock(self) -> Iterator[Path]:
        """Keep other processes from writing. The folder is locked, since the file itself may be replaced."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            # A link keeps pointing to the file that is replaced.
            yield self.path.resolve()
        finally:
            os.close(folder)


_HEADER = dump_row({"type": "recording", "version": VERSION})


def _complete_last_row(file: BinaryIO) -> None:
    """Go to the end of a file. Half a row, which a writer that died left there, is removed."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
    if file.read() in (b"", b"\n"):
        return
    file.seek(0)
    last = file.read().rpartition(b"\n")[2]
    try:
        json.loads(last)
    except (ValueError, RecursionError):
        file.truncate(file.tell() - len(last))
        file.seek(0, os.SEEK_END)
    else:
        file.write(b"\n")


def _replace(path: Path, lines: Sequence[bytes]) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.touch(mode=stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666)
    partial.write_bytes(b"".join(lines))
    partial.replace(path)


def describe_capabilities(capabilities: Capabilities) -> dict[str, Any]:
    """What differs from the defaults."""
    values = {one.name: getattr(capabilities, one.name) for one in fields(capabilities)}
    changed = {name: value for name, value in values.items() if value != getattr(_DEFAULTS, name)}
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in changed.items()}


def read_capabilities(data: Mapping[str, Any]) -> Capabilities:
    """What the row of a model says it supports. Raises `ValueError`."""
    if unknown := sorted(set(data) - {one.name for one in fields(_DEFAULTS)}):
        raise ValueError(f"unknown capability {unknown[0]!r}")
    return _CAPABILITIES.validate_python(data)
