"""The SQLite file of a store: its schema, its transactions, and the check that a file is a store."""

from __future__ import annotations

import logging
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from os.path import samestat
from pathlib import Path

from ferrule.errors import ConversationError
from ferrule.sandbox.own_files import hide_own_file

_log = logging.getLogger("ferrule.store")

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
# Tables of their own, made when first needed: an older ferrule ignores them and still opens the file, so that no new
# version of the schema is needed.
MODELS = """
CREATE TABLE IF NOT EXISTS conversation_models (
    conversation TEXT PRIMARY KEY REFERENCES conversations ON DELETE CASCADE, model TEXT NOT NULL)
"""
FOLDERS = """
CREATE TABLE IF NOT EXISTS conversation_folders (
    conversation TEXT PRIMARY KEY REFERENCES conversations ON DELETE CASCADE, folder TEXT NOT NULL)
"""
# By node, which the forks of a conversation share.
BEGUN_CALLS = """
CREATE TABLE IF NOT EXISTS begun_calls (
    node INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE, call TEXT NOT NULL, conversation TEXT NOT NULL,
    PRIMARY KEY (node, call)) WITHOUT ROWID
"""


def _read_statement(statement: str) -> tuple[str, str]:
    """The name of what a statement makes, and the statement as SQLite keeps it, with single blanks."""
    kept = " ".join(statement.replace("IF NOT EXISTS ", "").rstrip("; \n").split())
    found = _MADE.match(kept)
    assert found is not None
    return found[1], kept


_MADE = re.compile(r"CREATE (?:VIRTUAL )?(?:TABLE|INDEX) (\w+)")
_NEEDED = dict(map(_read_statement, _SCHEMA.rstrip().split(";\n")))
_KNOWN = _NEEDED | dict(map(_read_statement, (_INDEX, MODELS, FOLDERS, BEGUN_CALLS)))
_COMPUTED = re.compile(r"\b(?:CHECK|DEFAULT|GENERATED|AS|REFERENCES)\b", re.IGNORECASE)
"""What lets a table compute something, which those that SQLite makes for its index don't."""


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

    @property
    def file(self) -> Path | None:
        """The file, by its absolute path; None in memory."""
        return None if self._opened is None else self._opened[0]

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

    def warn(self, damage: ConversationError) -> None:
        """Warn of a damaged part of the file, which is left out."""
        _log.warning("%s: left out, as it is damaged: %s", self._path, damage)

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
        # A text that isn't UTF-8 is damage of one row, and not of what is read with it.
        self._connection.text_factory = lambda data: str(data, "utf-8", "replace")
        self._connection.execute("PRAGMA trusted_schema = OFF")
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
        if application:
            self._check_schema()
        return bool(application)

    def _check_schema(self) -> None:
        """Check that the file has the tables of a store, and nothing that acts on them.

        A trigger would change other conversations, and a view could be without an end. Raises `ConversationError`.
        """
        missing = dict(_NEEDED)
        for kind, name, table, sql in self._connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"):
            missing.pop(name, None)
            kept = None if sql is None else " ".join(str(sql).split())
            if name.startswith("message_index_"):
                is_foreign = kind != "table" or (kept is not None and _COMPUTED.search(kept) is not None)
            elif name in _KNOWN or table in _KNOWN:  # SQLite's own indices have no statement
                is_foreign = kept is not None and kept != _KNOWN.get(name)
            else:
                is_foreign = kind in ("trigger", "view")
            if is_foreign:
                raise ConversationError(
                    f"{self._path}: it has the {kind} {str(name)!r:.60}, which ferrule didn't make; "
                    "a file that may be forged isn't used"
                )
        if missing:
            raise ConversationError(f"{self._path}: the file is damaged: it has no {next(iter(missing))!r}")

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
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # What SQLite says may quote a damaged file.
            reason = "the file is damaged" if isinstance(error, UnicodeDecodeError) else f"{error!s:.200}"
            if "not a database" in reason:
                reason = "not a store of conversations; name another file"
            elif "locked" in reason:
                reason = f"another process has locked it for {_LOCK_TIMEOUT:g} seconds; try again"
            raise ConversationError(f"{self._path}: {' '.join(reason.split())}") from error
