"""The table of conversations: each one's head, title, times, and what waits in it."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ferrule.conversation import Conversation
from ferrule.errors import ConversationError

if TYPE_CHECKING:
    from sqlite3 import Connection

_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True)
class Summary:
    """What a list tells of a conversation; `waiting` counts the calls that wait for a decision."""

    id: str
    title: str
    messages: int
    waiting: int
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `conversations`."""

    id: str
    head: int
    now: str
    title: str
    waiting: str | None
    created: str
    updated: str

    COLUMNS = "conversations.id, head, now, title, waiting, created, updated"

    @classmethod
    def of(cls, connection: Connection, name: str) -> Row:
        """The row of an id, or of its beginning."""
        rows = connection.execute(
            f"SELECT {cls.COLUMNS} FROM conversations WHERE substr(id, 1, length(?1)) = ?1", (name.lower(),)
        ).fetchmany(2)
        if not name or not rows:
            raise ConversationError(f"there is no conversation {name!r}; `ferrule history` lists them")
        if len(rows) > 1:
            raise ConversationError(f"{name!r} begins the ids of several conversations; give more of it")
        return cls(*rows[0])

    @classmethod
    def same(cls, connection: Connection, head: int, conversation: Conversation, title: str | None) -> Row | None:
        """The row that holds this conversation already."""
        row = connection.execute(
            f"SELECT {cls.COLUMNS} FROM conversations WHERE head = ?1 AND now = ?2 AND coalesce(?3, title) = title"
            " ORDER BY created",
            (head, conversation.now.isoformat(), title),
        ).fetchone()
        return None if row is None else cls(*row)

    @classmethod
    def added(cls, connection: Connection, head: int, now: str, title: str, waiting: str | None) -> str:
        """Add a row; returns its id."""
        name = secrets.token_hex(5)
        time = _time()
        connection.execute(
            "INSERT INTO conversations (id, head, now, title, waiting, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (name, head, now, one_line(title), waiting, time, time),
        )
        return name

    def change(self, connection: Connection, head: int, title: str, waiting: str | None) -> None:
        """Write what is new; where nothing is, the time of the last change stays too."""
        if (head, one_line(title), waiting) != (self.head, self.title, self.waiting):
            connection.execute(
                "UPDATE conversations SET head = ?, title = ?, waiting = ?, updated = ? WHERE id = ?",
                (head, one_line(title), waiting, _time(), self.id),
            )

    def summary(self, messages: int) -> Summary:
        """What a list tells of it."""
        waiting = len(json.loads(self.waiting)["pending"]) if self.waiting else 0
        created, updated = datetime.fromisoformat(self.created), datetime.fromisoformat(self.updated)
        return Summary(self.id, self.title, messages, waiting, created, updated)


def one_line(text: str) -> str:
    """A title as it is kept: one line, not long."""
    line = " ".join(text.replace("\0", " ").encode("utf-8", "replace").decode().split())
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"


def _time() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
