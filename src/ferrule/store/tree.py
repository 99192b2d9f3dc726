"""The tree of messages: common prefixes are stored once, and messages that no conversation needs are deleted.

A node is a message after a parent; a conversation is the path from the beginning to its head.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ferrule.conversation import Message
from ferrule.errors import ConversationError
from ferrule.formats.conversation_json import message_from_json, message_to_json
from ferrule.store.message_json import collect_text, decode_message, hash_message
from ferrule.store.search import unindex

if TYPE_CHECKING:
    from sqlite3 import Connection

_PATH = """
WITH RECURSIVE path (id, parent, message, depth) AS (
    SELECT id, parent, message, depth FROM nodes WHERE id = ?
    UNION SELECT nodes.id, nodes.parent, nodes.message, nodes.depth FROM nodes JOIN path ON nodes.id = path.parent)
"""
# `UNION ALL` would go round for ever where a damaged or forged node is before itself.


def read_path(connection: Connection, head: int) -> list[int]:
    """Return the nodes from the first message to `head`. Raises `ConversationError` for a damaged path."""
    rows = connection.execute(f"{_PATH} SELECT id, parent FROM path ORDER BY depth", (head,)).fetchall()
    return _check_path([node for node, _ in rows], [parent for _, parent in rows], head)


def read_messages(connection: Connection, head: int) -> tuple[Message, ...]:
    """Read the messages from the first to that of `head`. Raises `ConversationError` for one that is damaged."""
    rows = connection.execute(
        f"{_PATH} SELECT path.id, parent, hash, data FROM path LEFT JOIN messages ON messages.id = message"
        " ORDER BY depth",
        (head,),
    ).fetchall()
    _check_path([row[0] for row in rows], [row[1] for row in rows], head)
    blobs, messages = _BlobTable(connection), []
    for at, (_, _, name, data) in enumerate(rows):
        where = f"message {at}"
        messages.append(message_from_json(decode_message(data, name, where), blobs, where))
    return tuple(messages)


def _check_path(nodes: list[int], parents: list[int], head: int) -> list[int]:
    if [0, *nodes] != [*parents, head]:
        raise ConversationError("some of its messages are missing, or their order is damaged")
    return nodes


@dataclass(frozen=True, slots=True)
class SavedPath:
    """Messages that were saved, and the node and row of each: saving them again needs no hash of them."""

    messages: Sequence[Message] = ()
    rows: Sequence[tuple[int, int]] = ()

    @property
    def nodes(self) -> list[int]:
        """The node of each message."""
        return [node for node, _ in self.rows]

    def cut(self, connection: Connection, messages: Sequence[Message]) -> SavedPath:
        """Return the part that begins `messages` and is still stored: another process may have deleted it since."""
        count = 0
        for saved, message in zip(self.messages, messages, strict=False):
            if saved is not message:
                break
            count += 1
        # Node ids may be used again for other messages, the rows of messages never are.
        query = f"{_PATH} SELECT id, message FROM path ORDER BY depth"
        rows = list(self.rows[:count])
        if not rows or connection.execute(query, (rows[-1][0],)).fetchall() != rows:
            return SavedPath()
        return SavedPath(messages[:count], rows)


def add_messages(connection: Connection, messages: Sequence[Message], saved: SavedPath) -> SavedPath:
    """Add the messages of a conversation that are missing; those that begin `saved` are neither hashed nor written."""
    saved = saved.cut(connection, messages)
    rows = [*saved.rows]
    for at, message in enumerate(messages[len(rows) :], len(rows)):
        parent = rows[-1][0] if rows else 0
        key = (parent, _store_message(connection, message, at))
        connection.execute("INSERT OR IGNORE INTO nodes (parent, message, depth) VALUES (?, ?, ?)", (*key, at + 1))
        (node,) = connection.execute("SELECT id FROM nodes WHERE parent = ? AND message = ?", key).fetchone()
        rows.append((node, key[1]))
    return SavedPath(messages, rows)


def _store_message(connection: Connection, message: Message, at: int) -> int:
    """Store a message unless one with the same content exists; returns its row."""
    blobs = _BlobTable(connection)
    data = message_to_json(message, blobs, f"message {at}")
    name = hash_message(data)
    row = connection.execute("SELECT id FROM messages WHERE hash = ?", (name,)).fetchone()
    if row is not None:
        return int(row[0])
    text = collect_text(data).casefold()
    added = connection.execute(
        "INSERT INTO messages (hash, data, text) VALUES (?, ?, ?)", (name, json.dumps(data), text)
    ).lastrowid
    connection.executemany(
        "INSERT OR IGNORE INTO message_blobs (message, blob) VALUES (?, ?)", [(added, blob) for blob in blobs.names]
    )
    return int(added or 0)


def prune(connection: Connection, node: int) -> None:
    """Delete the nodes from `node` towards the root that nothing needs, with messages that only they have."""
    while node:
        is_needed = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM nodes WHERE parent = :node)"
            " OR EXISTS (SELECT 1 FROM conversations WHERE head = :node)",
            {"node": node},
        ).fetchone()[0]
        if is_needed:
            return
        row = connection.execute("SELECT parent, message FROM nodes WHERE id = ?", (node,)).fetchone()
        if row is None:  # of a damaged path
            return
        parent, message = row
        connection.execute("DELETE FROM nodes WHERE id = ?", (node,))
        if not connection.execute("SELECT EXISTS (SELECT 1 FROM nodes WHERE message = ?)", (message,)).fetchone()[0]:
            _delete_message(connection, message)
        node = parent


def _delete_message(connection: Connection, message: int) -> None:
    blobs = connection.execute("SELECT blob FROM message_blobs WHERE message = ?", (message,)).fetchall()
    unindex(connection, message)
    connection.execute("DELETE FROM messages WHERE id = ?", (message,))
    connection.executemany(
        "DELETE FROM blobs WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM message_blobs WHERE blob = ?1)", blobs
    )


@dataclass(slots=True)
class _BlobTable:
    """The images of messages, by their full SHA-256."""

    connection: Connection
    names: list[str] = field(default_factory=list)

    def put(self, data: bytes, /) -> str:
        """Store an image; returns its name."""
        name = hashlib.sha256(data).hexdigest()
        self.connection.execute("INSERT OR IGNORE INTO blobs (hash, data) VALUES (?, ?)", (name, data))
        self.names.append(name)
        return name

    def get(self, name: str, /) -> bytes | None:
        """Return a stored image."""
        row = self.connection.execute("SELECT data FROM blobs WHERE hash = ?", (name,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None
