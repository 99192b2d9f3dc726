"""The store: saves, loads, forks, lists, searches and deletes conversations."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from ferrule.conversation import Conversation, Message, Text
from ferrule.errors import ConversationError, SettingsError
from ferrule.media import describe_value, is_framed
from ferrule.store.database import Database
from ferrule.store.rows import (
    ConversationRow,
    ConversationSummary,
    PausedCalls,
    copy_folder,
    describe_damage,
    find_key,
    read_conversation_time,
    read_model,
    select_of_folder,
    shorten_title,
    write_folder,
    write_model,
)
from ferrule.store.search import SearchHit, find_messages
from ferrule.store.tree import SavedPath, add_messages, prune, read_messages, read_path

if TYPE_CHECKING:
    from ferrule.blobs import BlobStore
    from ferrule.execution import Approver, Decision, Journal, Pending, Policy
    from ferrule.execution.approver import Decide
    from ferrule.tools.registry import BoundRegistry, ToolLike


class ResumeOptions(TypedDict, total=False):
    """Options of `Store.resume`: those of `Executor` and `CallScope`.

    `decisions` are by call id, each made by `Pending.decide`; they are added to those that were saved.
    """

    decisions: Mapping[str, Decision]
    policy: Policy | None
    approver: Approver | Decide | None
    journal: Journal | None
    blobs: BlobStore | None
    workspace: Path | str | None


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
        if not isinstance(path, str | os.PathLike):
            raise SettingsError(f"Store takes the path of a file, such as 'conversations.db', not {path!r}")
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
        folder: Path | str | None = None,
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
        for name, text in (("title", title), ("model", model)):
            if not isinstance(text, str | None):
                raise ConversationError(f"{name} must be a text, not {describe_value(text)}")
        title = None if title is None else shorten_title(title)
        with self._database.write_transaction() as connection:
            saved = add_messages(connection, conversation.messages, self._saved)
            path = [0, *saved.nodes]
            row = (
                ConversationRow.find_same(connection, path[-1], conversation, title)
                if id is None
                else ConversationRow.find(connection, id)
            )
            with describe_damage(row.id if row else None):
                stored = PausedCalls.parse(row.waiting if row else None)
            waiting = stored.merge(conversation, pending, decisions).text
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
            write_folder(connection, used, None if folder is None else str(folder))
        # Only now: what a transaction that fails has written is not there.
        self._saved = saved
        return used

    def load(self, id: str) -> StoredConversation:  # noqa: A002 - see `save`
        """Load a conversation with its paused calls."""
        with self._database.read_transaction() as connection:
            row = ConversationRow.find(connection, id)
            with describe_damage(row.id):
                messages = read_messages(connection, row.head)
                waiting = PausedCalls.parse(row.waiting)
                pending, decisions = waiting.pending, waiting.decisions
                conversation = Conversation(messages, read_conversation_time(row.now))
            return StoredConversation(row.summarize(connection, len(messages)), conversation, pending, decisions)

    def find_title(self, id: str) -> tuple[str, str]:  # noqa: A002 - see `save`
        """Find the full id and the title of a conversation, also of a damaged one, without loading it."""
        with self._database.read_transaction() as connection:
            found, _ = find_key(connection, id)
            (title,) = connection.execute("SELECT title FROM conversations WHERE id = ?", (found,)).fetchone()
            return str(found), str(title)

    def find_model(self, id: str) -> str | None:  # noqa: A002 - see `save`
        """Find the name of the model that answers a conversation, without loading it; None if none was saved."""
        with self._database.read_transaction() as connection:
            return read_model(connection, str(find_key(connection, id)[0]))

    async def resume(
        self,
        id: str,  # noqa: A002 - see `save`
        tools: ToolLike | BoundRegistry | Sequence[ToolLike],
        *,
        decisions: Mapping[str, Decision] | None = None,
        policy: Policy | None = None,
        approver: Approver | Decide | None = None,
        journal: Journal | None = None,
        blobs: BlobStore | None = None,
        workspace: Path | str | None = None,
    ) -> StoredConversation:
        """Run the open calls of a saved conversation, and save each result; returns the conversation with them.

        A call that still waits for a decision is in the `pending` of what is returned. Each call is run at most once,
        by whichever program comes first: one that was begun before and has no result is answered as interrupted.
        `decisions`, by call id and made by `Pending.decide`, are added to those that were saved; the other options are
        those of `Executor`.

        Raises `ConversationError` if no call is open, if another program is running the calls or has run them in a
        fork, if a tool is missing, or for a decision on an unknown call; `PolicyError` for a decision that isn't bound
        by `Pending.decide`; and what `Executor` and opening the tools raise.
        """
        from ferrule.store.resume import resume_conversation

        options: ResumeOptions = {
            "decisions": decisions or {}, "policy": policy, "approver": approver, "journal": journal, "blobs": blobs,
            "workspace": workspace,
        }  # fmt: skip
        return self.load(await resume_conversation(self, self._database, id, tools, options))

    def resume_sync(
        self,
        id: str,  # noqa: A002 - see `save`
        tools: ToolLike | BoundRegistry | Sequence[ToolLike],
        **options: Unpack[ResumeOptions],
    ) -> StoredConversation:
        """`resume`, for programs without an event loop."""
        from ferrule._util.background import run_synchronously

        return run_synchronously(self.resume(id, tools, **options))

    def fork(self, id: str, at: int | None = None, title: str | None = None) -> str:  # noqa: A002 - see `save`
        """Start another conversation with the same messages, or the first `at` of them; returns its id."""
        with self._database.write_transaction() as connection:
            row = ConversationRow.find(connection, id)
            with describe_damage(row.id):
                path = read_path(connection, row.head)
            if at is not None and (not isinstance(at, int) or not 0 <= at <= len(path)):
                raise ConversationError(f"{row.id} has {len(path)} messages; it can't be forked after {at}")
            heads = [0, *path]
            head = heads[len(path) if at is None else at]
            new = ConversationRow.insert(
                connection, head, row.now, title or row.title, row.waiting if head == row.head else None
            )
            write_model(connection, new, read_model(connection, row.id))
            copy_folder(connection, row.id, new)
            return new

    def list(self, limit: int | None = None, *, folder: Path | str | None = None) -> tuple[ConversationSummary, ...]:
        """List the conversations, or those about a folder, the last changed first.

        A damaged one is left out, with a warning of the logger `ferrule.store`.
        """
        with self._database.read_transaction() as connection:
            condition, values = select_of_folder(connection, None if folder is None else str(folder))
            rows = connection.execute(
                f"SELECT {ConversationRow.COLUMNS}, coalesce(depth, 0)"
                f" FROM conversations LEFT JOIN nodes ON nodes.id = head WHERE {condition}"
                " ORDER BY updated DESC, conversations.rowid DESC",
                values,
            )
            summaries: list[ConversationSummary] = []
            while len(summaries) != limit and (row := rows.fetchone()) is not None:
                try:
                    summaries.append(ConversationRow.read(row[:-1]).summarize(connection, row[-1]))
                except ConversationError as error:
                    self._database.warn(error)
            return tuple(summaries)

    def search(self, text: str, limit: int = 50) -> tuple[SearchHit, ...]:
        """Find messages that contain each word of `text`, ignoring case and also inside words, newest first.

        A message shared by several conversations is found in each; a damaged one is left out, with a warning. Raises
        `ConversationError` for an empty search.
        """
        if not isinstance(text, str):
            raise ConversationError(f"search takes a text, not {describe_value(text)}")
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
        """Delete a conversation, also a damaged one, with its messages and images unless others share them."""
        with self._database.write_transaction() as connection:
            found, head = find_key(connection, id)
            connection.execute("DELETE FROM conversations WHERE id = ?", (found,))
            prune(connection, head)


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
