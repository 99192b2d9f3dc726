"""Searches the messages of a store.

SQLite's trigram index, where available, only narrows the search: the results are the same without it.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from ferrule.errors import ConversationError
from ferrule.store.database import Database, is_unindexable
from ferrule.store.message_json import collect_text, decode_message, read_text

_SHORTEST_INDEXED = 3
_AROUND = 50
_BELOW = """
WITH RECURSIVE below (position, node) AS (
    SELECT depth - 1, id FROM nodes WHERE message = ?
    UNION SELECT position, id FROM nodes JOIN below ON parent = node)
SELECT conversations.id, title, position FROM below JOIN conversations ON head = node ORDER BY updated DESC LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that a search found: its position in a conversation, and the text around the first word."""

    id: str
    title: str
    position: int
    role: str
    excerpt: str


def find_messages(database: Database, text: str, limit: int) -> tuple[SearchHit, ...]:
    """Find the messages that contain each word of `text`; see `Store.search`."""
    words = collect_text({"parts": [{"text": text}]}).casefold().split()
    if not words:
        raise ConversationError("the search is empty; give a word")
    long = [word for word in words if len(word) >= _SHORTEST_INDEXED]
    narrowed = long and _update_index(database)
    conditions = ["instr(text, ?) > 0"] * len(words)
    if narrowed:
        conditions.append("id IN (SELECT rowid FROM message_index WHERE message_index MATCH ?)")
        doubled = [word.replace('"', '""') for word in long]
        words_and_query = [*words, " AND ".join(f'"{word}"' for word in doubled)]
    hits: list[SearchHit] = []
    with database.read_transaction() as connection:
        messages = connection.execute(
            f"SELECT id, hash, data FROM messages WHERE {' AND '.join(conditions)} ORDER BY id DESC",
            words_and_query if narrowed else words,
        )
        for message, name, written in messages:
            where = f"message {message} of the file"
            try:
                role, found = read_text(decode_message(written, name, where), where)
            except ConversationError as error:
                database.warn(error)
                continue
            excerpt = _cut_excerpt(found, words[0])
            rows = connection.execute(_BELOW, (message, limit - len(hits))).fetchall()
            hits += [SearchHit(str(name), str(title), at, role, excerpt) for name, title, at in rows]
            if len(hits) >= limit:
                break
    return tuple(hits)


def _update_index(database: Database) -> bool:
    """Update the index before a search, so that saving doesn't wait for it; returns whether there is one."""
    if not database.make_index():
        return False
    with database.read_transaction() as connection:
        if not connection.execute("SELECT EXISTS (SELECT 1 FROM messages WHERE indexed = 0)").fetchone()[0]:
            return True
    with database.write_transaction() as connection:
        connection.execute("INSERT INTO message_index (rowid, text) SELECT id, text FROM messages WHERE indexed = 0")
        connection.execute("UPDATE messages SET indexed = 1 WHERE indexed = 0")
    return True


def unindex(connection: sqlite3.Connection, message: int) -> None:
    """Remove a message that will be deleted from the index, if this SQLite supports it."""
    row = connection.execute("SELECT text FROM messages WHERE id = ? AND indexed", (message,)).fetchone()
    if row is None:
        return
    try:
        connection.execute(
            "INSERT INTO message_index (message_index, rowid, text) VALUES ('delete', ?, ?)", (message, row[0])
        )
    except sqlite3.OperationalError as error:
        # The stale entry does no harm: ids are never reused.
        if not is_unindexable(error):
            raise


def _cut_excerpt(text: str, word: str) -> str:
    """Cut the text around a word to one line; the beginning of the text if case folding hides the word."""
    place = re.search(re.escape(word), text, re.IGNORECASE)
    at = place.start() if place else 0
    begin, end = max(0, at - _AROUND), at + len(word) + _AROUND
    shown = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"
