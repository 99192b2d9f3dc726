"""The SQLite file of a store: its schema, its transactions, and the check that a file is a store."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from os.path import samestat
from pathlib import Path

from ferrule.errors import ConversationError
from ferrule.sandbox.own_files import hide_own_file

VERSION = 1
_APPLICATION = 0x66727243  # "frrC": marks the file as ours
_LOCK_TIMEOUT = 30.0
_IN_MEMORY = ":memory:"
_ENDINGS = ("-wal", "-shm", "-journal")
"""What SQLite adds to the name for its own files."""

# A conversation is a head in a tree of nodes, each a message after a parent (0 at the beginning), so that forks share
# their rows. Message ids are never reused: a stale entry of the index can't refer to another message.
_SCHEMA = """
CREATE TABLE blobs (hash TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE, data TEXT NOT NULL, text TEXT NOT NULL,
    indexed INTEGER NOT NULL DEFAULT 0);
CREATE INDEX messages_to_index ON messages (id) WHERE indexed = 0;
CREATE TABLE message_blobs (
    message INTEGER NOT NULL REFERENCES messages ON DELETE CASCADE, blob TEXT NOT NULL REFERENCES blobs,
    PRIMARY KEY (message, blob)) WITHOUT ROWID;
CREATE INDEX message_blobs_blob ON message_blobs (blob);
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, message INTEGER NOT NULL REFERENCES messages,
    depth INTEGER NOT NULL, UNIQUE (parent, message));
CREATE INDEX nodes_message ON nodes (message);
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, head INTEGER NOT NULL, now TEXT NOT NULL, title TEXT NOT NULL, waiting TEXT,
    created TEXT NOT NULL, updated TEXT NOT NULL);
CREATE INDEX conversations_head ON conversations (head);
"""
_INDEX = """
CREATE VIRTUAL TABLE IF NOT EXISTS message_index
USING fts5 (text, content = 'messages', content_rowid = 'id', tokenize = 'trigram case_sensitive 1')
"""


def is_unindexable(error: sqlite3.OperationalError) -> bool:
    """Whether the error means that SQLite was built without the modules for the index."""
    return "no such module" in str(error) or "no such tokenizer" in str(error)


class Database:
    """A connection to the file. Threads may share one; each process needs its own.

    `:memory:` is not a file; its content is lost when it is closed. Raises `ConversationError`, naming the file, for a
    file that is not a store and for every other error of SQLite.
    """

    def __init__(self, path: Path, create: bool) -> None:
        self._path = path
        self._lock = threading.RLock()
        if str(path) != _IN_MEMORY and not path.exists():
            if not create:
                raise ConversationError(f"{path}: no such store of conversations")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)  # conversations are private
        with self._convert_errors():
            self._connection = sqlite3.connect(
                path, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
            )
        try:
            with self._convert_errors():
                self._prepare()
        except BaseException:
            self._connection.close()
            raise
        is_file = str(path) != _IN_MEMORY
        self._release = hide_own_file(path, "the store of conversations", *_ENDINGS) if is_file else lambda: None
        self._opened = (path.absolute(), path.stat()) if is_file else None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
            self._release()

    def check_file(self) -> None:
        """Raise `ConversationError` if the file was removed or replaced since it was opened: what is saved is lost."""
        if self._opened is None:
            return
        path, opened = self._opened
        try:
            is_same = samestat(path.stat(), opened)
        except OSError:
            is_same = False
        if not is_same:
            raise ConversationError(
                f"{self._path}: removed or replaced while it was in use, and what was saved with it"
            )

    @contextmanager
    def read_transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that reads a consistent state."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Open an atomic transaction, for which other writers wait."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def make_index(self) -> bool:
        """Create the search index if it is missing; returns whether this SQLite supports it."""
        with self._lock, self._convert_errors():
            try:
                self._connection.execute(_INDEX)
            except sqlite3.OperationalError as error:
                if is_unindexable(error):
                    return False
                raise
        return True

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._convert_errors():
            self._connection.execute(begin)
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA foreign_keys = ON")
        with self.read_transaction():  # what another process writes meanwhile would be seen in part
            is_ready = self._is_ready()
        if not is_ready:
            self._enable_write_ahead()
            with self.write_transaction() as connection:
                if not self._is_ready():  # another process may have been first
                    for statement in _SCHEMA.split(";\n"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {VERSION}")
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def _is_ready(self) -> bool:
        """Whether the file is a store; an empty file isn't one yet. Raises `ConversationError` for anything else."""
        application, version, tables = (
            self._connection.execute(query).fetchone()[0]
            for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
        )
        if application != _APPLICATION and (application or version or tables):
            raise ConversationError(
                f"{self._path}: an SQLite file, but not a store of conversations; name another file"
            )
        if version > VERSION:
            raise ConversationError(
                f"{self._path}: made by a newer ferrule (schema {version}; this one knows {VERSION})"
            )
        return bool(application)

    def _enable_write_ahead(self) -> None:
        """Enable write-ahead logging, so that readers and a writer don't wait for each other.

        SQLite's own timeout doesn't cover this statement.
        """
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            reason = str(error)
            if "not a database" in reason:
                reason = "not a store of conversations; name another file"
            elif "locked" in reason:
                reason = f"another process has locked it for {_LOCK_TIMEOUT:g} seconds; try again"
            raise ConversationError(f"{self._path}: {reason}") from error
