"""Converts a source to a stream of Parquet, which is taken in pieces. Runs in the sandbox.

duckdb writes in a thread, through a file system of its own that waits until pieces are taken: so neither the memory nor
the folder of the run has to hold the whole.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from typing import Any

import duckdb
import fsspec

from .sql import quote_text
from .wording import describe_renamed, make_unique, quote_column

PIECE = 4 << 20
ROWS = 61_440
"""Of a row group: what duckdb holds before it writes. Half of its default, for memory."""


class PieceFile:
    """A file that is only written, in pieces, and waits until they are taken."""

    closed = False

    def __init__(self) -> None:
        self.pieces: queue.Queue[bytes | None] = queue.Queue(maxsize=1)
        self._parts: list[bytes] = []
        self._held = self._written = 0

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._held += len(part)
        self._written += len(part)
        if self._held >= PIECE:
            self.flush_pieces()
        return len(part)

    def flush_pieces(self) -> None:
        data, self._parts, self._held = b"".join(self._parts), [], 0
        for start in range(0, len(data), PIECE):
            self.pieces.put(data[start : start + PIECE])

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Pieces are handed over when they are long enough."""

    def close(self) -> None:
        """The end is marked once the whole command succeeded."""


class PieceFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]  # it has no types
    """Gives duckdb the file to write to."""

    protocol = "pieces"
    cachable = False

    def __init__(self, file: PieceFile) -> None:
        super().__init__()
        self._file = file

    def open(self, *_: Any, **__: Any) -> PieceFile:
        return self._file

    def exists(self, *_: Any, **__: Any) -> bool:
        return False

    def isdir(self, *_: Any) -> bool:
        return False

    def isfile(self, *_: Any) -> bool:
        return False

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        raise FileNotFoundError(path)


class PieceStream:
    """Anything that is produced in a thread and taken in pieces."""

    def __init__(self) -> None:
        self.file = PieceFile()
        self.result: dict[str, Any] = {}
        self.error: BaseException | None = None

    def start(self, work: Any) -> None:
        threading.Thread(target=self._work, args=(work,), daemon=True).start()

    def _work(self, work: Any) -> None:
        try:
            self.result = work(self.file) or {}
            self.file.flush_pieces()
        except BaseException as error:  # noqa: BLE001 - told to whoever takes the pieces
            self.error = error
        self.file.pieces.put(None)

    def take(self) -> dict[str, Any]:
        """Return the next piece, the result at the end, or the error."""
        piece = self.file.pieces.get()
        if piece is not None:
            return {"piece": piece}
        if self.error is not None:
            return {"error": type(self.error).__name__, "message": shorten(str(self.error))}
        return {"result": self.result}


def shorten(message: str) -> str:
    """Cut an error message to what a person needs of it."""
    lines = [line.strip() for line in message.partition("LINE 1:")[0].splitlines() if line.strip()]
    return " ".join(lines[:4])[:600]


def connect(memory: int, **settings: Any) -> duckdb.DuckDBPyConnection:
    """A database in memory, which loads nothing and opens no other files."""
    # Each thread has buffers of its own, and the allocator an arena for each.
    threads = 2 if memory >= 512 << 20 else 1
    config: dict[str, Any] = {"threads": threads, "memory_limit": f"{int(memory * 0.6) >> 20}MiB", "temp_directory": ""}
    config |= {"autoinstall_known_extensions": False, "autoload_known_extensions": False, **settings}
    connection = duckdb.connect(config=config)
    connection.execute("SET enable_progress_bar = false")
    # It would make a join of each list of texts, and so a query of many columns one with as many joins.
    connection.execute("SET disabled_optimizers = 'in_clause'")
    return connection


def copy_bytes(chunks: Iterable[bytes], limit: int) -> PieceStream:
    """Stream chunks, at most `limit` bytes of them."""

    def work(file: PieceFile) -> dict[str, Any]:
        for chunk in chunks:
            file.write(chunk)
            if file.tell() > limit:
                raise ValueError(f"it has more than {limit >> 20:,} MB when it is unpacked")
        return {}

    stream = PieceStream()
    stream.start(work)
    return stream


def copy_relation(memory: int, sql: str, reader: Any = None) -> PieceStream:
    """Stream the result of a query as Parquet; `reader` is a source that the query names."""

    def work(file: PieceFile) -> dict[str, Any]:
        # One thread: with more, the same rows may be written as other bytes, which would be another digest.
        connection = connect(memory, threads=1)
        connection.register_filesystem(PieceFileSystem(file))
        if reader is not None:
            connection.register("reader", reader)
        connection.execute(
            f"COPY ({sql}) TO 'pieces://table.parquet' "
            f"(FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {ROWS}, WRITE_BLOOM_FILTER false, "
            "DICTIONARY_SIZE_LIMIT 1000)"
        )
        return {}

    stream = PieceStream()
    stream.start(work)
    return stream


def make_parquet_query(path: str) -> tuple[str, list[str]]:
    """Return the query of a file of Parquet, and notes."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    renamed = describe_renamed(schema.names, make_unique(schema.names))
    zones = [(field.name, zone) for field in schema if (zone := getattr(field.type, "tz", None)) not in {None, "UTC"}]
    notes = [
        f"{quote_column(name)}: times of {quote_column(zone)} are in UTC here; "
        f".dt.tz_convert({quote_column(zone)}) of it has the local ones"
        for name, zone in zones
    ]
    for field in schema:
        kind = str(field.type)
        if kind.startswith("duration["):
            notes.append(f"{quote_column(field.name)}: durations are whole numbers here, in {kind[9:-1]}")
        elif kind.startswith("decimal") and field.type.precision > 15:
            notes.append(f"{quote_column(field.name)}: decimals are floats in pandas, which round after 15 digits")
    return f"SELECT * FROM read_parquet({quote_text(path)})", renamed + notes
