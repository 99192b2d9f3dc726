"""The store: saves, loads, forks, lists, searches and deletes conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.conversation import Conversation, Message, Text
from ferrule.errors import ConversationError
from ferrule.media import describe_value, is_framed
from ferrule.store.database import Database
from ferrule.store.rows import (
    ConversationRow,
    ConversationSummary,
    PausedCalls,
    copy_folder,
    read_model,
    select_of_folder,
    shorten_title,
    write_folder,
    write_model,
)
from ferrule.store.search import SearchHit, find_messages
from ferrule.store.tree import SavedPath, add_messages, prune, read_messages, read_path

if TYPE_CHECKING:
    from ferrule.execution import Decision, Pending


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A saved conversation; `decisions`, by call id, are those made on `pending` so far."""

    summary: ConversationSummary
    conversation: Conversation
    pending: tuple[Pending, ...]
    decisions: Mapping[str, Decision]


class Store:
    """A file of conversations. Raises `ConversationError` for a file that is not a store, and for an unknown id.

    An id may be shortened to its first characters if they are unique. With `create=False` a missing file is an error.
    """

    def __init__(self, path: Path | str, *, create: bool = True) -> None:
        self._database = Database(Path(path), create)
        self._saved = SavedPath()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def check_file(self) -> None:
        """Raise `ConversationError` if the file was removed or replaced since it was opened: what is saved is lost."""
        self._database.check_file()

    def save(
        self,
        conversation: Conversation,
        title: str | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word of the whole interface
        pending: Sequence[Pending] | None = None,
        decisions: Mapping[str, Decision] | None = None,
        model: str | None = None,
        folder: str | None = None,
    ) -> str:
        """Save a conversation; returns its id. Saved twice, it is stored once.

        `id` is that of the conversation that this one continues. If the stored messages are not a prefix of
        `conversation`, because another process continued it or messages were removed, this becomes a fork with an
        id of its own: nothing that was saved is lost. The default title is the first question. If `pending` and
        `decisions` aren't given, the stored ones are kept for calls that are still open. `model` is the name of the
        model that answers the conversation, `folder` the one that it is about; what isn't given is kept as stored.
        """
        if not isinstance(conversation, Conversation):
            raise ConversationError(
                f"save takes a Conversation, such as run.conversation, not {describe_value(conversation)}"
            )
        title = None if title is None else shorten_title(title)
        with self._database.write_transaction() as connection:
            saved = add_messages(connection, conversation.messages, self._saved)
            path = [0, *saved.nodes]
            row = (
                ConversationRow.find_same(connection, path[-1], conversation, title)
                if id is None
                else ConversationRow.find(connection, id)
            )
            waiting = PausedCalls.parse(row.waiting if row else None).merge(conversation, pending, decisions).text
            if row is None or row.head not in path or row.now != conversation.now.isoformat():
                name = title or (row.title if row else "") or _derive_title(conversation)
                used = ConversationRow.insert(connection, path[-1], conversation.now.isoformat(), name, waiting)
                model = model or (read_model(connection, row.id) if row else None)
                if row is not None:
                    copy_folder(connection, row.id, used)
            else:
                used = row.id
                row.update(connection, path[-1], title or row.title or _derive_title(conversation), waiting)
            write_model(connection, used, model)
            write_folder(connection, used, folder)
        # Only now: what a transaction that fails has written is not there.
        self._saved = saved
        return used

    def load(self, id: str) -> StoredConversation:  # noqa: A002 - see `save`
        """Load a conversation with its paused calls."""
        with self._database.read_transaction() as connection:
            row = ConversationRow.find(connection, id)
            messages = read_messages(connection, row.head)
            summary = row.summarize(connection, len(messages))
        waiting = PausedCalls.parse(row.waiting)
        conversation = Conversation(messages, datetime.fromisoformat(row.now))
        return StoredConversation(summary, conversation, waiting.pending, waiting.decisions)

    def find_model(self, id: str) -> str | None:  # noqa: A002 - see `save`
        """Find the name of the model that answers a conversation, without loading it; None if none was saved."""
        with self._database.read_transaction() as connection:
            return read_model(connection, ConversationRow.find(connection, id).id)

    def fork(self, id: str, at: int | None = None, title: str | None = None) -> str:  # noqa: A002 - see `save`
        """Start another conversation with the same messages, or the first `at` of them; returns its id."""
        with self._database.write_transaction() as connection:
            row = ConversationRow.find(connection, id)
            path = read_path(connection, row.head)
            if at is not None and not 0 <= at <= len(path):
                raise ConversationError(f"{row.id} has {len(path)} messages; it can't be forked after {at}")
            heads = [0, *path]
            head = heads[len(path) if at is None else at]
            new = ConversationRow.insert(
                connection, head, row.now, title or row.title, row.waiting if head == row.head else None
            )
            write_model(connection, new, read_model(connection, row.id))
            copy_folder(connection, row.id, new)
            return new

    def list(self, limit: int | None = None, *, folder: str | None = None) -> tuple[ConversationSummary, ...]:
        """List the conversations, or those about a folder, the last changed first."""
        with self._database.read_transaction() as connection:
            condition, values = select_of_folder(connection, folder)
            rows = connection.execute(
                f"SELECT {ConversationRow.COLUMNS}, coalesce(depth, 0)"
                f" FROM conversations LEFT JOIN nodes ON nodes.id = head WHERE {condition}"
                " ORDER BY updated DESC, conversations.rowid DESC LIMIT ?",
                (*values, -1 if limit is None else limit),
            ).fetchall()
            return tuple(ConversationRow(*row[:-1]).summarize(connection, row[-1]) for row in rows)

    def search(self, text: str, limit: int = 50) -> tuple[SearchHit, ...]:
        """Find messages that contain each word of `text`, ignoring case and also inside words, newest first.

        A message shared by several conversations is found in each. Raises `ConversationError` for an empty search.
        """
        return find_messages(self._database, text, limit)

    def remove_last(self, id: str, conversation: Conversation) -> None:  # noqa: A002 - see `save`
        """Remove the last message of a conversation, such as a question that was withdrawn.

        `conversation` is what was saved; if the stored one has changed since, it stays as it is.
        """
        with self._database.write_transaction() as connection:
            row = ConversationRow.find(connection, id)
            path = [0, *add_messages(connection, conversation.messages, self._saved).nodes]
            if row.head == path[-1] and len(path) > 1:
                row.update(connection, path[-2], row.title, row.waiting)
            prune(connection, path[-1])

    def delete(self, id: str) -> None:  # noqa: A002 - see `save`
        """Delete a conversation, with its messages and images unless others share them."""
        with self._database.write_transaction() as connection:
            row = ConversationRow.find(connection, id)
            connection.execute("DELETE FROM conversations WHERE id = ?", (row.id,))
            prune(connection, row.head)


def _derive_title(conversation: Conversation) -> str:
    """Derive a title: the first question, without the files that were attached to it, or else the first text."""
    texts = [
        (message.role != "user", _find_typed(message)) for message in conversation.messages if message.text.strip()
    ]
    return min(texts, key=lambda one: one[0], default=(True, ""))[1]


def _find_typed(message: Message) -> str:
    """The first text of a message that isn't a file, or else all of them."""
    typed = (part.text for part in message.parts if isinstance(part, Text) and not is_framed(part.text))
    return next(filter(str.strip, typed), message.text)
