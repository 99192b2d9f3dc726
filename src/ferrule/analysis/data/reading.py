"""`read_tables`: files become profiled tables of Parquet. Everything that parses data runs in the sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import Any, Final, Self

from pydantic import ValidationError

from ferrule._util.invalid_fields import describe_invalid_fields
from ferrule.analysis.data.sources import DataSource, check_sources, make_identifier
from ferrule.analysis.data.table import Table
from ferrule.errors import DataError, SandboxInputError
from ferrule.sandbox.python.mounts import Mount
from ferrule.sandbox.python.sandbox import PythonSandbox
from ferrule.sandbox.python.session import SandboxSession
from ferrule.sandbox.tiers import Tier

CHILD: Final = Path(__file__).parent / "child"
"""The folder that the sandbox mounts to import `ferrule_tables`."""
CHILD_IMPORT: Final = f"import sys\nsys.path.append({str(CHILD)!r})\ndel sys\n"
_PACKAGES: Final = ("duckdb", "fsspec", "numpy", "pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet")
_SECONDS: Final = 600.0
_LONGEST_MESSAGE: Final = 600
"""For one step: looking at a file, or the next piece of it."""
_MAX_PARTS: Final = 60
"""Sheets of a workbook, or tables of a database."""
SEED: Final = 20_240_229
"""Of the samples of every profile: the same file has the same profile."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A table that was converted and not yet profiled."""

    source: DataSource
    kind: str
    part: str | None
    name: str
    parquet: Path
    digest: str
    notes: tuple[str, ...]
    profile: Any = None
    """What the sandbox returned as its profile; None if its copy is still to be profiled."""


async def read_tables(
    sources: Sequence[DataSource], folder: Path | str, *, memory: int, tier: Tier | str | None = None
) -> list[Table]:
    """Read and profile files; a workbook or a database gives a table for each of its sheets or tables.

    `folder` gets a Parquet file for each table, named by its content. `memory` is in bytes, for each step; a file may
    be larger. Raises `DataError` for files that can't be read, which says the reason of each, and `SandboxUnavailable`.
    """
    _require_extra()
    await asyncio.to_thread(check_sources, sources)
    if not sources:
        return []
    folder = Path(folder)
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    # It isn't started by itself: a zygote without mounts would have no use.
    async with aclosing(
        PythonSandbox(packages=_PACKAGES, checks="off", memory=memory, tier=tier, readable=[CHILD])
    ) as sandbox:
        # One set of mounts for all files, since a set needs a zygote of its own.
        with _PartFile(folder) as unpacked, _PartFile(folder) as regular:
            reader = _Reader(sandbox, folder, memory, [source.path for source in sources], (unpacked, regular))
            parts = await _convert_all(reader, sources)
        _check_names(parts)
        paths = dict.fromkeys(part.parquet for part in parts if part.profile is None)
        reader = _Reader(sandbox, folder, memory, list(paths))
        try:
            return [_make_table(part, part.profile or await reader.profile(part)) for part in parts]
        except _ChildError as error:
            raise DataError(str(error)) from None


async def _convert_all(reader: _Reader, sources: Sequence[DataSource]) -> list[_Part]:
    parts: list[_Part] = []
    problems: dict[str, None] = {}
    for source in sources:
        try:
            parts += await reader.convert(source)
        except DataError as error:
            problems[str(error)] = None
    if len(problems) > 1:
        raise DataError(f"{len(problems)} files can't be read: {'; '.join(problems)}")
    if problems:
        raise DataError(*problems)
    return parts


def _require_extra() -> None:
    from importlib.util import find_spec

    missing = [
        name for name in ("charset_normalizer", "duckdb", "fsspec", "pandas", "pyarrow") if find_spec(name) is None
    ]
    if missing:
        raise DataError(f"reading data needs {', '.join(missing)}: pip install 'ferrule[analysis]'")


def _check_names(parts: Sequence[_Part]) -> None:
    names: dict[str, _Part] = {}
    for part in parts:
        other = names.setdefault(part.name.casefold(), part)
        if other is not part:
            raise DataError(
                f"{_describe(other)} and {_describe(part)} would both be tables[{part.name!r}]: "
                f"give one file another name, as in other={part.source.path}"
            )


def _describe(part: _Part) -> str:
    return f"{part.source.path}, {part.part}" if part.part else str(part.source.path)


class _PartFile:
    """A file that is written piece by piece, and kept under the name of its content."""

    def __init__(self, folder: Path) -> None:
        self._file = NamedTemporaryFile(dir=folder, suffix=".part", delete=False)  # noqa: SIM115 - closed on exit
        self._hash = hashlib.sha256()
        self.path = Path(self._file.name)
        # Readable for the sandbox, whose runs aren't root where the program is.
        os.fchmod(self._file.fileno(), 0o644)

    def write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._hash.update(piece)

    def clear(self) -> None:
        """Begin anew in place, since the sandbox has this file open by its inode and not by its name."""
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.sha256()

    def finish(self) -> None:
        self._file.flush()

    def keep(self) -> tuple[Path, str]:
        """Name it by its content; returns the path and the digest."""
        self.finish()
        digest = self._hash.hexdigest()
        path = self.path.with_name(f"{digest}.parquet")
        self.path.replace(path)
        return path, digest

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


class _Reader:
    """Converts or profiles files in one sandbox, whose runs find each as a mount.

    `working` are written anew for each file that has to be unpacked or written with regular lines.
    """

    def __init__(
        self,
        sandbox: PythonSandbox,
        folder: Path,
        memory: int,
        paths: Sequence[Path],
        working: Sequence[_PartFile] = (),
    ) -> None:
        self._sandbox = sandbox
        self._mounts = [
            Mount(path, f"data{number}") for number, path in enumerate([*paths, *(file.path for file in working)])
        ]
        self._working = working
        self._folder = folder
        self._memory = memory

    async def convert(self, source: DataSource) -> list[_Part]:
        """Return the tables of a file.

        Each attempt to read it is a session, a fork that takes milliseconds, and so has all of the memory.
        """
        data = self._find(source.path)
        async with await self._open(source) as session:
            found = await _call(session, source, "detection:inspect_file", path=data, name=source.path.name)
            kind, encoding, notes = str(found["kind"]), found["encoding"], tuple(map(str, found["notes"]))
            compression = found["compression"]
            if compression or encoding not in {None, "utf-8"}:
                await _call(session, source, "copying:unpack", path=data, compression=compression, encoding=encoding)
                data = await self._write_again(session, source, self._working[0])
        if kind == "csv":
            return [await self._convert_csv(source, data, notes)]
        async with await self._open(source) as session:
            return await self._convert_parts(session, source, data, kind, notes)

    async def _write_again(self, session: SandboxSession, source: DataSource, file: _PartFile) -> str:
        """Write the copy that the session has begun to a file; returns its name there."""
        file.clear()
        await _take(session, source, file)
        file.finish()
        return self._find(file.path)

    def _find(self, path: Path) -> str:
        """The name of a file for the code in the sandbox."""
        return next(mount.shown_name for mount in self._mounts if mount.path == path)

    async def _open(self, source: DataSource) -> SandboxSession:
        """Start a session that finds files and can import `ferrule_tables`."""
        try:
            session = await self._sandbox.session(mounts=self._mounts, checkpoints=False)
        except SandboxInputError as error:
            raise DataError(f"data can't be read: {str(error).partition(': ')[2]}") from None
        await _run(session, source, f"{CHILD_IMPORT}from ferrule_tables import call")
        return session

    async def _convert_parts(
        self, session: SandboxSession, source: DataSource, data: str, kind: str, notes: tuple[str, ...]
    ) -> list[_Part]:
        if kind in {"json", "jsonl"}:
            return [await self._convert_json(session, source, data, kind, notes)]
        if kind == "parquet":
            said = await _call(session, source, "copying:copy_parquet", path=data, memory=self._memory)
            return [await self._copy(session, source, kind, said, notes)]
        if kind == "sqlite":
            await asyncio.to_thread(_check_journal, source.path)
            listed = await _call(session, source, "records:list_database_tables", path=data)
        else:
            listed = await _call(session, source, "workbooks:list_sheets", path=data)
        names, left_out = _check_parts(source, kind, listed)
        parts = []
        for part in names:
            name = source.table_name if len(names) == 1 else make_identifier(f"{source.table_name}_{part}")
            arguments = {"path": data, "part": part, "memory": self._memory}
            if kind == "sqlite":
                said = await _call(session, source, "copying:copy_database_table", **arguments)
            else:
                said = await _call(session, source, "copying:copy_sheet", **arguments)
            parts.append(await self._copy(session, source, kind, said, (*notes, *left_out), part, name))
            left_out = ()  # said once
        return parts

    async def _convert_csv(self, source: DataSource, data: str, notes: tuple[str, ...]) -> _Part:
        """Convert CSV; if its lines differ in the number of cells, write it again first."""
        try:
            return await self._convert_lines(source, data, notes)
        except _ChildError:
            pass
        async with await self._open(source) as session:
            said = await _call(session, source, "copying:regularize", path=data)
            regular = await self._write_again(session, source, self._working[1])
        return await self._convert_lines(source, regular, (*notes, *map(str, said)), data)

    async def _convert_lines(
        self, source: DataSource, data: str, notes: tuple[str, ...], original: str | None = None
    ) -> _Part:
        """Convert CSV whose lines have the same number of cells: in one pass with its profile, if its values are plain.

        `original`: the file of which `data` was written with regular lines.
        """
        arguments = {"path": data, "memory": self._memory, "original": original}
        try:
            async with await self._open(source) as session:
                said = await _call(session, source, "copying:copy_plain_csv", seed=SEED, **arguments)
                return await self._copy(session, source, "csv", said, notes)
        except _ChildError as error:
            if error.kind == "IrregularLines":
                raise
        async with await self._open(source) as session:
            said = await _call(session, source, "copying:copy_csv", **arguments)
            return await self._copy(session, source, "csv", said, notes)

    async def _convert_json(
        self, session: SandboxSession, source: DataSource, data: str, kind: str, notes: tuple[str, ...]
    ) -> _Part:
        """Convert JSON."""
        try:
            said = await _call(session, source, "copying:copy_json", path=data, kind=kind, memory=self._memory)
            return await self._copy(session, source, kind, said, notes)
        except _ChildError:
            await _call(session, source, "json_errors:explain_json", path=data, kind=kind)
            raise

    async def _copy(
        self,
        session: SandboxSession,
        source: DataSource,
        kind: str,
        said: Any,
        notes: tuple[str, ...],
        part: str | None = None,
        name: str | None = None,
    ) -> _Part:
        """Take the copy that the session has begun, with the notes that it `said` on it."""
        with _PartFile(self._folder) as file:
            result = await _take(session, source, file)
            all_notes = (*notes, *map(str, said))
            return _Part(source, kind, part, name or source.table_name, *file.keep(), all_notes, result.get("profile"))

    async def profile(self, part: _Part) -> Any:
        """Profile a table that was converted."""
        async with await self._open(part.source) as session:
            data = self._find(part.parquet)
            return await _call(
                session, part.source, "profiling:profile_table", path=data, memory=self._memory, seed=SEED
            )


def _make_table(part: _Part, found: Any) -> Table:
    """Make the table of a part and its profile."""
    path = part.source.path
    if not isinstance(found, dict):
        raise DataError(f"{path}: its profile isn't one; the sandbox's process may have been taken over")
    if not found.get("columns"):
        raise DataError(f"{path} has no columns: it has no data to analyse")
    try:
        return Table(
            **found,
            name=part.name,
            path=path,
            kind=part.kind,
            part=part.part,
            parquet=part.parquet,
            digest=part.digest,
            notes=part.notes,
        )
    except (TypeError, ValidationError) as error:
        reason = describe_invalid_fields(error) if isinstance(error, ValidationError) else "it names fields twice"
        raise DataError(f"{path}: its profile isn't valid: {reason}") from None


class _ChildError(DataError):
    """The code in the sandbox reports that the file can't be read in this way; `kind` is the class of its exception."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def _check_journal(path: Path) -> None:
    """A database that a program has open keeps its last changes in another file."""
    for suffix, what in (("-wal", "its last changes are"), ("-journal", "an unfinished change is")):
        journal = Path(f"{path}{suffix}")
        if journal.is_file() and journal.stat().st_size:
            raise DataError(
                f"{path}: {what} still in {journal.name}: close the program that uses it, or save a copy of it, as by "
                f"sqlite3 {path} \"VACUUM INTO 'copy.sqlite'\""
            )


def _check_parts(source: DataSource, kind: str, listed: Any) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of sheets or tables, and notes of those that are left out."""
    what = "sheet" if kind == "excel" else "table"
    try:
        names, notes = listed
    except (TypeError, ValueError):
        names, notes = None, ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{source.path}: the names of its {what}s can't be read")
    notes = tuple(str(note) for note in notes)
    if not names:
        raise DataError(f"{source.path} has no {what} with data: {'; '.join(notes) or 'it has nothing to analyse'}")
    if len(names) > _MAX_PARTS:
        raise DataError(
            f"{source.path} has {len(names)} {what}s with data, and at most {_MAX_PARTS} are read: save the ones that "
            "the question needs in a file of their own"
        )
    return names, notes


async def _take(session: SandboxSession, source: DataSource, file: _PartFile) -> dict[str, Any]:
    """Write the pieces of the session's stream to a file; returns what the stream reports at its end."""
    while True:
        taken = await _call(session, source, "copying:take_piece")
        if not isinstance(taken, dict):
            raise DataError(f"{source.path}: what came back is no piece of it; its process may have been taken over")
        if isinstance(taken.get("piece"), bytes):
            await asyncio.to_thread(file.write, taken["piece"])
        elif "error" in taken:
            raise _explain(source, str(taken["error"]), str(taken.get("message", "")))
        else:
            result = taken.get("result")
            return result if isinstance(result, dict) else {}


async def _call(session: SandboxSession, source: DataSource, function: str, /, **arguments: Any) -> Any:
    """Call `module:function` of `ferrule_tables` in a session. Raises `DataError` for what goes wrong there."""
    return await _run(session, source, "call(function, arguments)", {"function": function, "arguments": arguments})


async def _run(session: SandboxSession, source: DataSource, code: str, inputs: Mapping[str, Any] | None = None) -> Any:
    run = await session.run(code, inputs, timeout=_SECONDS)
    if run.error is None:
        return run.value
    if run.error.kind in {"exception", "memory"}:
        name, _, message = run.error.message.partition(": ")
        raise _explain(source, name.rpartition(".")[2], message)
    if run.error.kind == "timeout":
        raise DataError(f"{source.path} took longer than {_SECONDS:.0f} s to read: extract what the question needs")
    raise DataError(f"{source.path} can't be read: its process ended ({run.error.message})")


_INTERNAL: Final = re.compile(r"""in file "data\d+", |\s*(?:LINE \d+:|COPY \(|Original Line:).*""", re.DOTALL)
"""What a message of duckdb says of our query, and the line of the file, which may have megabytes."""


def _shorten(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE].rpartition(' ')[0]} …"


def _explain(source: DataSource, kind: str, message: str) -> DataError:
    """Make an error of an exception in the sandbox, by the name of its class."""
    message = _shorten(" ".join(_INTERNAL.sub("", message).split()))
    if kind in {"Unreadable", "NoRecords"}:
        return _ChildError(f"{source.path} {message}", kind)
    if kind in {"MemoryError", "OutOfMemoryException", "OutOfMemoryError", "ArrowMemoryError"}:
        return DataError(
            f"{source.path} can't be read in the memory that there is: raise python_memory in the settings"
        )
    return _ChildError(f"{source.path} can't be read: {message or kind}", kind)
