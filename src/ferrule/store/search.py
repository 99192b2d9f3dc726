"""Finding what was said in the conversations of a store.

SQLite's index of trigrams, where it has one, only narrows the search: what is found is the same without it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.errors import ConversationError
from ferrule.store.database import Database, is_unindexable

_SHORTEST_INDEXED = 3
_AROUND = 50
_BELOW = """
WITH RECURSIVE below (position, node) AS (
    SELECT depth - 1, id FROM nodes WHERE message = ?
    UNION ALL SELECT position, id FROM nodes JOIN below ON parent = node)
SELECT conversations.id, title, position FROM below JOIN conversations ON head = node ORDER BY updated DESC LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found, by its place in a conversation, and the text around the first word."""

    id: str
    title: str
    position: int
    role: str
    excerpt: str


def searchable(data: Mapping[str, Any]) -> str:
    """All text in a message's JSON, in a form that SQLite can hold: texts, thoughts, calls, results."""
    text = "\n".join(_texts(data["parts"]))
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _texts(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for part in parts:
        for key in ("text", "name", "arguments", "raw"):
            if key in part:
                yield part[key]
        yield from _texts(part.get("content", ()))


def found(database: Database, text: str, limit: int) -> tuple[Hit, ...]:
    """The messages that hold each word of `text`; see `Store.search`."""
    words = searchable({"parts": [{"text": text}]}).casefold().split()
    if not words:
        raise ConversationError("there is nothing to search for; give a word")
    long = [word for word in words if len(word) >= _SHORTEST_INDEXED]
    narrowed = long and _indexed(database)
    conditions = ["instr(text, ?) > 0"] * len(words)
    if narrowed:
        conditions.append("id IN (SELECT rowid FROM message_index WHERE message_index MATCH ?)")
        doubled = [word.replace('"', '""') for word in long]
        words_and_query = [*words, " AND ".join(f'"{word}"' for word in doubled)]
    hits: list[Hit] = []
    with database.reading() as connection:
        messages = connection.execute(
            f"SELECT id, data FROM messages WHERE {' AND '.join(conditions)} ORDER BY id DESC",
            words_and_query if narrowed else words,
        )
        for message, written in messages:
            data = json.loads(written)
            excerpt = _excerpt(searchable(data), words[0])
            rows = connection.execute(_BELOW, (message, limit - len(hits))).fetchall()
            hits += [Hit(name, title, at, data["role"], excerpt) for name, title, at in rows]
            if len(hits) >= limit:
                break
    return tuple(hits)


def _indexed(database: Database) -> bool:
    """Bring the index up to date; returns whether there is one. Saving is not held up by it."""
    if not database.make_index():
        return False
    with database.reading() as connection:
        if not connection.execute("SELECT EXISTS (SELECT 1 FROM messages WHERE indexed = 0)").fetchone()[0]:
            return True
    with database.writing() as connection:
        connection.execute("INSERT INTO message_index (rowid, text) SELECT id, text FROM messages WHERE indexed = 0")
        connection.execute("UPDATE messages SET indexed = 1 WHERE indexed = 0")
    return True


def unindex(connection: sqlite3.Connection, message: int) -> None:
    """Take a message that will be deleted out of the index, where it is in one that this SQLite can change."""
    text, indexed = connection.execute("SELECT text, indexed FROM messages WHERE id = ?", (message,)).fetchone()
    if not indexed:
        return
    try:
        connection.execute(
            "INSERT INTO message_index (message_index, rowid, text) VALUES ('delete', ?, ?)", (message, text)
        )
    except sqlite3.OperationalError as error:
        # What stays names no message: ids aren't used twice.
        if not is_unindexable(error):
            raise


def _excerpt(text: str, word: str) -> str:
    """The text around a word, on one line; its beginning where case changes the word's length."""
    place = re.search(re.escape(word), text, re.IGNORECASE)
    at = place.start() if place else 0
    begin, end = max(0, at - _AROUND), at + len(word) + _AROUND
    shown = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{shown}{'…' if end < len(text) else ''}"
