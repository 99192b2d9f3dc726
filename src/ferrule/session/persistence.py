"""Saves the conversation of a session in a store, and resumes a saved one."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule._util.user_folders import find_data_folder
from ferrule.conversation import Conversation
from ferrule.errors import ConversationError
from ferrule.session.terminal.output import print_notice

if TYPE_CHECKING:
    from ferrule.execution import Decision, Pending
    from ferrule.store import Store


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Where to save conversations, and which to resume. Nothing is saved unless an option is set.

    `store` is a file, by default the user's own with `keep` or `resume`; `resume` is the id of a saved conversation.
    `model` is the name that is saved as that of the model that answers, `folder` the folder that the conversation is
    about.
    """

    store: Path | str | None = None
    keep: bool = False
    resume: str | None = None
    model: str | None = None
    folder: Path | str | None = None


def find_store_path(given: Path | str | None = None) -> Path:
    """Return the given file, or the path of the user's own store.

    Raises `ConversationError` for a folder, a device and the like.
    """
    path = Path(given or find_data_folder() / "conversations.db")
    # What SQLite says about them is "disk I/O error".
    if path.exists() and not path.is_file():
        raise ConversationError(
            f"{path}: not a regular file; name a file for the conversations, new or kept by ferrule"
        )
    return path


@dataclass(slots=True)
class Autosave:
    """Saves a conversation after each message, result and turn; without a store it does nothing."""

    store: Store | None = None
    resumed: Conversation = field(default_factory=Conversation)
    pending: tuple[Pending, ...] = ()
    """The calls of the resumed conversation that wait for a decision."""
    decisions: dict[str, Decision] = field(default_factory=dict)
    """The decisions on them, by call id."""
    notify: Callable[[str], None] = print_notice
    """Tells the person what was resumed and saved."""
    model: str | None = None
    """The name of the model that answers, as it is saved."""
    folder: str | None = None
    """The folder that the conversation is about, as it is saved."""
    place: Path | None = None
    """The file of the store, if it isn't the user's own."""
    conversation_id: str | None = None
    """The id under which the conversation was saved, None before that."""
    _ids: list[str] = field(default_factory=list)
    _id_before_question: str | None = None

    def resume(self, name: str) -> None:
        """Load a saved conversation. Raises `ConversationError` for an unknown id."""
        if self.store is None:
            return
        stored = self.store.load(name)
        summary = stored.summary
        self.resumed, self.conversation_id = stored.conversation, summary.id
        self.pending, self.decisions = stored.pending, dict(stored.decisions)
        self.notify(f"resumed {summary.id}, {summary.messages} messages: {summary.title}")

    def restore(
        self,
        resumed: Conversation,
        pending: tuple[Pending, ...],
        decisions: dict[str, Decision],
        conversation_id: str | None,
    ) -> None:
        """Return to what was saved before `resume`."""
        self.resumed, self.pending, self.decisions, self.conversation_id = resumed, pending, decisions, conversation_id

    def start_new(self) -> None:
        """Save what follows as a new conversation."""
        self.conversation_id = None
        self.pending, self.decisions = (), {}

    def save(self, conversation: Conversation, pending: Sequence[Pending] = ()) -> None:
        """Save the conversation, with the calls that wait for a decision.

        Raises `ConversationError` for a store that can't be written.
        """
        if self.store is not None and conversation.messages:
            still_open = {call.id for call in conversation.pending} if self.decisions else ()
            decisions = {call_id: one for call_id, one in self.decisions.items() if call_id in still_open}
            self.conversation_id = self.store.save(
                conversation,
                id=self.conversation_id,
                pending=pending or None,
                decisions=decisions or None,
                model=self.model,
                folder=self.folder,
            )
            if self.conversation_id not in self._ids:
                self._ids.append(self.conversation_id)

    def save_question(self, conversation: Conversation) -> None:
        """Save the conversation with a question that nothing answers yet. Raises what `save` raises."""
        self._id_before_question = self.conversation_id
        self.save(conversation)

    def withdraw_question(self, conversation: Conversation) -> None:
        """Undo `save_question`, as long as nothing followed. Raises what `save` raises."""
        if self.store is None or self.conversation_id is None:
            return
        if self.conversation_id == self._id_before_question:
            self.store.remove_last(self.conversation_id, conversation)
            return
        self.store.delete(self.conversation_id)
        self._ids.remove(self.conversation_id)
        self.conversation_id = self._id_before_question

    def report_ids(self) -> None:
        """Notify the person of the ids under which conversations were saved, or that they are lost."""
        if not self._ids or self.store is None:
            return
        try:
            self.store.check_file()
        except ConversationError as error:
            self.notify(f"the conversation is not saved: {error}")
            return
        # Only the coding agent's conversations are about a folder.
        place = "" if self.place is None else f" --store {shlex.quote(str(self.place))}"
        hint = f"; `ferrule code{place} --continue` goes on with it" if self.folder is not None else ""
        self.notify(f"saved as {', '.join(self._ids)}{hint}")


@contextmanager
def open_autosave(options: StoreOptions) -> Iterator[Autosave]:
    """Open an `Autosave`. Raises `ConversationError` and `OSError` for a store that can't be used."""
    if options.store is None and not options.keep and options.resume is None:
        yield Autosave()
        return
    from ferrule.store import Store

    with Store(find_store_path(options.store), create=options.resume is None) as store:
        folder = None if options.folder is None else str(options.folder)
        autosave = Autosave(
            store, model=options.model, folder=folder, place=None if options.store is None else Path(options.store)
        )
        if options.resume is not None:
            autosave.resume(options.resume)
        try:
            yield autosave
        finally:
            autosave.report_ids()
