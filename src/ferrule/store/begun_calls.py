"""The record of calls that were begun by resuming a conversation, and the lock of those that are running.

The operating system releases the lock when a program ends, so a begun call whose lock is free was interrupted. It is
committed as begun before it runs, so neither a resume after a crash nor a fork of the conversation runs it again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os.path import samestat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.errors import ConversationError
from ferrule.sandbox.own_files import hide_own_file
from ferrule.store.database import BEGUN_CALLS
from ferrule.store.rows import has_table

if TYPE_CHECKING:
    from ferrule.conversation import MalformedCall, ToolCall
    from ferrule.execution import Journal
    from ferrule.execution.journal import JournalEvent
    from ferrule.store.database import Database


@dataclass(frozen=True, slots=True)
class BegunCalls:
    """The record of which open calls of a conversation were begun; `node` is that of the message that made them."""

    database: Database
    conversation: str
    node: int

    def add(self, call_id: str) -> None:
        """Record that a call begins."""
        with self.database.write_transaction() as connection:
            connection.execute(BEGUN_CALLS)
            row = (self.node, call_id, self.conversation)
            connection.execute("INSERT OR IGNORE INTO begun_calls VALUES (?, ?, ?)", row)

    def find(self, calls: Iterable[ToolCall | MalformedCall]) -> set[str]:
        """Find those of the open calls that were begun, by id.

        Raises `ConversationError` for one that another conversation has begun: one of the two is a fork of the other.
        """
        with self.database.read_transaction() as connection:
            if not has_table(connection, "begun_calls"):
                return set()
            rows = connection.execute(
                "SELECT call, conversations.id FROM begun_calls LEFT JOIN conversations ON conversation = id"
                " WHERE node = ?",
                (self.node,),
            ).fetchall()
        begun = dict(rows)
        open_ids = {call.id for call in calls if call.id in begun}
        for call_id in open_ids:
            conversation = begun[call_id]
            if conversation not in (self.conversation, None):
                raise ConversationError(
                    f"the call {call_id!r} was run by the conversation {conversation}, which shares it with "
                    f"{self.conversation}, and isn't run twice; go on with {conversation}"
                )
        return open_ids


class BegunJournal:
    """Records in the store that a call begins, and everything in the program's own journal."""

    def __init__(self, begun: BegunCalls, journal: Journal) -> None:
        self._begun = begun
        self._journal = journal

    def make_key(self) -> str:
        """See `Journal.make_key`."""
        return self._journal.make_key()

    def record(self, event: JournalEvent, key: str, fields: Mapping[str, Any], /) -> None:
        """See `Journal.record`."""
        if event == "started":
            self._begun.add(fields["call"])
        self._journal.record(event, key, fields)


_held: set[tuple[Database, int]] = set()
"""The locks of databases in memory."""
_changing = threading.Lock()


@contextmanager
def hold_lock(begun: BegunCalls) -> Iterator[None]:
    """Keep others from resuming these calls. Raises `ConversationError` if they are being resumed."""
    path = begun.database.file
    if path is None:
        lock = _hold_key((begun.database, begun.node))
    else:
        path = path.resolve()
        lock = _hold_file(path.with_name(f"{path.name}-resumed-{begun.node}"))
    with lock as is_held:
        if not is_held:
            raise ConversationError(
                f"the calls of {begun.conversation} are being run, by another program or another resume; load the "
                "conversation again when that has ended"
            )
        yield


@contextmanager
def _hold_key(key: tuple[Database, int]) -> Iterator[bool]:
    with _changing:
        is_held = key not in _held
        _held.add(key)
    try:
        yield is_held
    finally:
        if is_held:
            _held.discard(key)


@contextmanager
def _hold_file(path: Path) -> Iterator[bool]:
    """Hold a lock file, and remove it afterwards. Yields False if another holds it."""
    try:
        file = _open_locked(path)
    except OSError as error:
        raise ConversationError(f"{path}: can't be locked: {error.strerror}") from error
    if file is None:
        yield False
        return
    release = hide_own_file(path, "a lock of the store of conversations")
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)
        os.close(file)
        release()


def _open_locked(path: Path) -> int | None:
    import fcntl  # not on Windows, where stores can be used otherwise

    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held the lock before may have removed the file after it was opened here.
            if path.exists() and samestat(os.fstat(file), path.stat()):
                return file
        except BlockingIOError:
            os.close(file)
            return None
        os.close(file)
