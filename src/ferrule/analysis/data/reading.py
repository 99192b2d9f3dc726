"""`read_tables`: files become profiled tables of Parquet. Everything that parses data runs in the sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
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

_CHILD: Final = Path(__file__).parent / "child"
_PACKAGES: Final = ("duckdb", "fsspec", "numpy", "pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet")
_SECONDS: Final = 600.0
_LONGEST_MESSAGE: Final = 600
"""For one step: looking at a file, or the next piece of it."""
_INSPECTION: Final = ("wording", "detection", "conversion")
_MODULES: Final = (
    "wording",
    "detection",
    "conversion",
    "sql",
    "json_errors",
    "forms",
    "csv_types",
    "csv_header",
    "csv_lines",
    "profiling",
    "plain_csv",
    "records",
    "sheet_xml",
    "workbooks",
)
_MAX_UNPACKED: Final = 20 * 1024**3
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
    sources: Sequence[DataSource], folder: Path, *, memory: int, tier: Tier | str | None = None
) -> list[Table]:
    """Read and profile files; a workbook or a database gives a table for each of its sheets or tables.

    `folder` gets a Parquet file for each table, named by its content. `memory` is in bytes, for each step; a file may
    be larger. Raises `DataError` for files that can't be read, which says the reason of each, and `SandboxUnavailable`.
    """
    _require_extra()
    await asyncio.to_thread(check_sources, sources)
    if not sources:
        return []
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    # It isn't started by itself: a zygote without mounts would have no use.
    async with aclosing(PythonSandbox(packages=_PACKAGES, checks="off", memory=memory, tier=tier)) as sandbox:
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


_CHILD_IMPORT: Final = re.compile(
    r"^from ferrule\.analysis\.data\.child\.\w+ import (?:\([^)]*\)|[^(\n]*)$", re.MULTILINE
)
"""Files of `child` that are loaded into one session see each other's names."""


@cache
def load_child_code(name: str) -> str:
    """The code of a file of `child`, without its imports of other files there."""
    return _CHILD_IMPORT.sub("", (_CHILD / f"{name}.py").read_text(encoding="utf-8"))


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
        async with await self._open(source, *_INSPECTION) as session:
            found = await _call(session, source, f"inspect_file({data!r}, {source.path.name!r})")
            kind, encoding, notes = str(found["kind"]), found["encoding"], tuple(map(str, found["notes"]))
            if found["compression"] or encoding not in {None, "utf-8"}:
                chunks = f"chunks, notes = decode_chunks({data!r}, {found['compression']!r}, {encoding!r}), []"
                data, _ = await self._write_again(session, source, self._working[0], chunks)
        if kind == "csv":
            return [await self._convert_csv(source, data, notes)]
        async with await self._open(source, *_MODULES) as session:
            return await self._convert_parts(session, source, data, kind, notes)

    async def _write_again(
        self, session: SandboxSession, source: DataSource, file: _PartFile, code: str
    ) -> tuple[str, list[str]]:
        """Write the `chunks` that code in the sandbox makes to a file; returns its name there, and the notes."""
        file.clear()
        said = await _call(session, source, f"{code}\nstream = copy_bytes(chunks, {_MAX_UNPACKED})\nnotes")
        await _take(session, source, file)
        file.finish()
        return self._find(file.path), [str(note) for note in said]

    def _find(self, path: Path) -> str:
        """The name of a file for the code in the sandbox."""
        return next(mount.shown_name for mount in self._mounts if mount.path == path)

    async def _open(self, source: DataSource, *modules: str) -> SandboxSession:
        """Start a session that finds files, with the functions of modules of `child`."""
        try:
            session = await self._sandbox.session(mounts=self._mounts, checkpoints=False)
        except SandboxInputError as error:
            raise DataError(f"data can't be read: {str(error).partition(': ')[2]}") from None
        for module in modules:
            await _call(session, source, load_child_code(module) + "\nNone")
        return session

    async def _convert_parts(
        self, session: SandboxSession, source: DataSource, data: str, kind: str, notes: tuple[str, ...]
    ) -> list[_Part]:
        if kind in {"json", "jsonl"}:
            return [await self._convert_json(session, source, data, kind, notes)]
        if kind == "parquet":
            return [await self._copy_query(session, source, kind, f"make_parquet_query({data!r})", notes)]
        if kind == "sqlite":
            await asyncio.to_thread(_check_journal, source.path)
        lister = "list_sheets" if kind == "excel" else "list_database_tables"
        listed = await _call(session, source, f"{lister}({data!r})")
        names, left_out = _check_parts(source, kind, listed)
        parts = []
        for part in names:
            name = source.table_name if len(names) == 1 else make_identifier(f"{source.table_name}_{part}")
            maker = f"{'read_sheet' if kind == 'excel' else 'read_database_table'}({data!r}, {part!r})"
            code = f"reader, notes = {maker}\nstream = copy_relation({self._memory}, 'FROM reader', reader)\nnotes"
            with _PartFile(self._folder) as file:
                said = await _call(session, source, code)
                await _take(session, source, file)
                parts.append(_Part(source, kind, part, name, *file.keep(), (*notes, *left_out, *map(str, said))))
            left_out = ()  # said once
        return parts

    async def _convert_csv(self, source: DataSource, data: str, notes: tuple[str, ...]) -> _Part:
        """Convert CSV; if its lines differ in the number of cells, write it again first."""
        try:
            return await self._convert_lines(source, data, notes)
        except _ChildError:
            code = f"notes, chunks = regularize_lines({data!r})"
        async with await self._open(source, *_MODULES) as session:
            regular, said = await self._write_again(session, source, self._working[1], code)
        return await self._convert_lines(source, regular, (*notes, *said), data)

    async def _convert_lines(
        self, source: DataSource, data: str, notes: tuple[str, ...], original: str | None = None
    ) -> _Part:
        """Convert CSV whose lines have the same number of cells: in one pass with its profile, if its values are plain.

        `original`: the file of which `data` was written with regular lines.
        """
        try:
            async with await self._open(source, *_MODULES) as session:
                plain = f"stream, notes = stream_plain_csv({data!r}, {self._memory}, {SEED}, {original!r})\nnotes"
                return await self._copy(session, source, "csv", plain, notes)
        except _ChildError as error:
            if error.kind == "IrregularLines":
                raise
        async with await self._open(source, *_MODULES) as session:
            query = f"make_csv_query(connect({self._memory}), {data!r}, {original!r})"
            return await self._copy_query(session, source, "csv", query, notes)

    async def _convert_json(
        self, session: SandboxSession, source: DataSource, data: str, kind: str, notes: tuple[str, ...]
    ) -> _Part:
        """Convert JSON."""
        query = f"make_json_query({data!r}, {kind!r}, {self._memory})"
        try:
            return await self._copy_query(session, source, kind, query, notes)
        except _ChildError:
            await _call(session, source, f"explain_json({data!r}, {kind!r})")
            raise

    async def _copy_query(
        self, session: SandboxSession, source: DataSource, kind: str, make: str, notes: tuple[str, ...]
    ) -> _Part:
        """Convert by the query that the code of `make` gives, and its notes."""
        code = f"query, notes = {make}\nstream = copy_relation({self._memory}, query)\nnotes"
        return await self._copy(session, source, kind, code, notes)

    async def _copy(
        self, session: SandboxSession, source: DataSource, kind: str, code: str, notes: tuple[str, ...]
    ) -> _Part:
        """Convert by the `stream` that code makes, which has notes as its value."""
        with _PartFile(self._folder) as file:
            said = [str(note) for note in await _call(session, source, code)]
            result = await _take(session, source, file)
            return _Part(source, kind, None, source.table_name, *file.keep(), (*notes, *said), result.get("profile"))

    async def profile(self, part: _Part) -> Any:
        """Profile a table that was converted."""
        async with await self._open(part.source, "sql", "profiling") as session:
            data = self._find(part.parquet)
            return await _call(session, part.source, f"profile_table({data!r}, {self._memory}, {SEED})")


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
        taken = await _call(session, source, "stream.take()")
        if not isinstance(taken, dict):
            raise DataError(f"{source.path}: what came back is no piece of it; its process may have been taken over")
        if isinstance(taken.get("piece"), bytes):
            await asyncio.to_thread(file.write, taken["piece"])
        elif "error" in taken:
            raise _explain(source, str(taken["error"]), str(taken.get("message", "")))
        else:
            result = taken.get("result")
            return result if isinstance(result, dict) else {}


async def _call(session: SandboxSession, source: DataSource, code: str) -> Any:
    """Run code in a session. Raises `DataError` for what goes wrong there."""
    run = await session.run(code, timeout=_SECONDS)
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
