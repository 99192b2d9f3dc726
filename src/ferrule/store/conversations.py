"""Saving, loading, branching and deleting; how rows and messages are kept is for the files beside this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.conversation import Conversation
from ferrule.errors import ConversationError
from ferrule.store.database import Database
from ferrule.store.rows import Row, Summary, one_line
from ferrule.store.search import Hit, found
from ferrule.store.tree import grown, messages_to, nodes_to, prune
from ferrule.store.waiting import Waiting

if TYPE_CHECKING:
    from ferrule.execution import Decision, Pending


@dataclass(frozen=True, slots=True)
class Stored:
    """A conversation as it was kept; `decisions`, by call id, are those made on `pending` so far."""

    summary: Summary
    conversation: Conversation
    pending: tuple[Pending, ...]
    decisions: Mapping[str, Decision]


class Store:
    """A file of conversations. Raises `ConversationError` for a file that is none, and for an id that isn't in it.

    An id may be shortened to its first characters, as long as they are one conversation's alone. `create=False` refuses
    a file that isn't there.
    """

    def __init__(self, path: Path | str, *, create: bool = True) -> None:
        self._database = Database(Path(path), create)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def save(
        self,
        conversation: Conversation,
        title: str | None = None,
        *,
        id: str | None = None,  # noqa: A002 - what everything here calls it
        pending: Sequence[Pending] | None = None,
        decisions: Mapping[str, Decision] | None = None,
    ) -> str:
        """Keep a conversation; returns its id. Saved twice, it is kept once.

        `id` is that of the conversation that this one goes on from. Where what is kept of it is not a beginning of
        `conversation`, because another process went on with it or messages were taken back, this becomes a fork, with
        an id of its own: nothing that was saved is lost. Without a title it has its first question as one. `pending`
        and `decisions` stay as they were where they aren't given, for calls that are still open.
        """
        title = None if title is None else one_line(title)
        with self._database.writing() as connection:
            path = [0, *grown(connection, conversation.messages)]
            row = Row.same(connection, path[-1], conversation, title) if id is None else Row.of(connection, id)
            waiting = Waiting.of(row.waiting if row else None).changed(conversation, pending, decisions).text
            if row is None or row.head not in path or row.now != conversation.now.isoformat():
                name = title or (row.title if row else "") or _title(conversation)
                return Row.added(connection, path[-1], conversation.now.isoformat(), name, waiting)
            row.change(connection, path[-1], title or row.title or _title(conversation), waiting)
            return row.id

    def load(self, id: str) -> Stored:  # noqa: A002 - see `save`
        """A conversation with what waits in it."""
        with self._database.reading() as connection:
            row = Row.of(connection, id)
            messages = messages_to(connection, row.head)
        waiting = Waiting.of(row.waiting)
        conversation = Conversation(messages, datetime.fromisoformat(row.now))
        return Stored(row.summary(len(messages)), conversation, waiting.pending, waiting.decisions)

    def fork(self, id: str, at: int | None = None, title: str | None = None) -> str:  # noqa: A002 - see `save`
        """Another conversation with the same messages, or the first `at` of them; returns its id. No row is copied."""
        with self._database.writing() as connection:
            row = Row.of(connection, id)
            path = nodes_to(connection, row.head)
            if at is not None and not 0 <= at <= len(path):
                raise ConversationError(f"{row.id} has {len(path)} messages; it can't be forked after {at}")
            heads = [0, *path]
            head = heads[len(path) if at is None else at]
            return Row.added(connection, head, row.now, title or row.title, row.waiting if head == row.head else None)

    def list(self, limit: int | None = None) -> tuple[Summary, ...]:
        """The conversations, the one that was last changed first."""
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {Row.COLUMNS}, coalesce(depth, 0) FROM conversations LEFT JOIN nodes ON nodes.id = head"
                " ORDER BY updated DESC, conversations.rowid DESC LIMIT ?",
                (-1 if limit is None else limit,),
            ).fetchall()
        return tuple(Row(*row[:-1]).summary(row[-1]) for row in rows)

    def search(self, text: str, limit: int = 50) -> tuple[Hit, ...]:
        """Messages that hold each word of `text`, in whatever case and also inside a word, the newest first.

        A message that several conversations share is found in each. Raises `ConversationError` where there is no word.
        """
        return found(self._database, text, limit)

    def delete(self, id: str) -> None:  # noqa: A002 - see `save`
        """Delete a conversation, and of its messages and images those that no other one has."""
        with self._database.writing() as connection:
            row = Row.of(connection, id)
            connection.execute("DELETE FROM conversations WHERE id = ?", (row.id,))
            prune(connection, row.head)


def _title(conversation: Conversation) -> str:
    """The first question, or what else was said first."""
    texts = [(message.role != "user", message.text) for message in conversation.messages if message.text.strip()]
    return min(texts, key=lambda one: one[0], default=(True, ""))[1]
