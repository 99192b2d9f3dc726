"""Keeping the conversations of `ask` and `chat` in a store, where that was asked for, and going on with a kept one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.cli.guard import complain
from ferrule.conversation import Conversation

if TYPE_CHECKING:
    from ferrule.execution import Decision, Pending
    from ferrule.store import Store


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the options say. Nothing is kept unless one of them is given."""

    store: Path | None = None
    keep: bool = False
    resume: str | None = None


def store_file(given: Path | None) -> Path:
    """The file that is given, or the user's own."""
    if given is not None:
        return given
    data = Path(os.environ.get("XDG_DATA_HOME") or "")
    # The specification of these folders has relative ones ignored.
    return (data if data.is_absolute() else Path.home() / ".local" / "share") / "ferrule" / "conversations.db"


@dataclass(slots=True)
class Keeper:
    """Keeps a conversation as it grows; without a store it keeps nothing."""

    store: Store | None = None
    resumed: Conversation = field(default_factory=Conversation)
    pending: tuple[Pending, ...] = ()
    """What of the resumed conversation waits."""
    decisions: dict[str, Decision] = field(default_factory=dict)
    """What was decided on it, by call id."""
    _id: str | None = None
    _ids: list[str] = field(default_factory=list)

    def resume(self, name: str) -> None:
        """Go on with a kept conversation. Raises `ConversationError` where there is no such one."""
        if self.store is None:
            return
        stored = self.store.load(name)
        summary = stored.summary
        self.resumed, self._id = stored.conversation, summary.id
        self.pending, self.decisions = stored.pending, dict(stored.decisions)
        complain(f"resumed {summary.id}, {summary.messages} messages: {summary.title}")

    def begin_anew(self) -> None:
        """What comes is another conversation."""
        self._id = None
        self.pending, self.decisions = (), {}

    def keep(self, conversation: Conversation, pending: Sequence[Pending] = ()) -> None:
        """Keep what there is now, with the calls that wait. Raises `ConversationError` for a store that can't be
        written."""
        if self.store is not None and conversation.messages:
            still_open = {call.id for call in conversation.pending}
            decisions = {call_id: one for call_id, one in self.decisions.items() if call_id in still_open}
            self._id = self.store.save(conversation, id=self._id, pending=pending or None, decisions=decisions or None)
            if self._id not in self._ids:
                self._ids.append(self._id)

    def tell(self) -> None:
        """Say under which ids it was kept."""
        if self._ids:
            complain(f"kept as {', '.join(self._ids)}")


@contextmanager
def opened_keeper(keeping: Keeping) -> Iterator[Keeper]:
    """A keeper, closed at the end. Raises `ConversationError` and `OSError` for a store that can't be used."""
    if keeping.store is None and not keeping.keep and keeping.resume is None:
        yield Keeper()
        return
    from ferrule.store import Store

    with Store(store_file(keeping.store), create=keeping.resume is None) as store:
        keeper = Keeper(store)
        if keeping.resume is not None:
            keeper.resume(keeping.resume)
        try:
            yield keeper
        finally:
            keeper.tell()
