"""The table of conversations: the head, title, times and paused calls of each."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ferrule.conversation import Conversation
from ferrule.errors import ConversationError, choose_advice
from ferrule.store.database import FOLDERS, MODELS
from ferrule.store.message_json import decode_json

if TYPE_CHECKING:
    from sqlite3 import Connection

    from ferrule.execution import Decision, Pending


@dataclass(frozen=True, slots=True)
class PausedCalls:
    """The calls of a conversation that wait for a decision and the decisions made so far, as JSON values by call id.

    `execution/` is imported only if there are any, which is rare.
    """

    pending_json: Mapping[str, Any]
    decisions_json: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str | None) -> PausedCalls:
        """Parse the JSON of a row. Raises `ConversationError`."""
        if not text:
            return cls({}, {})
        data = decode_json(text, "its waiting calls")
        try:
            return cls({one["call"]["id"]: one for one in data["pending"]}, dict(data["decisions"]))
        except (LookupError, TypeError, ValueError) as error:
            raise ConversationError("its waiting calls can't be read") from error

    def merge(
        self, conversation: Conversation, pending: Sequence[Pending] | None, decisions: Mapping[str, Decision] | None
    ) -> PausedCalls:
        """Replace what was stored by what is given, and keep only calls that are still open."""
        if not (self.pending_json or self.decisions_json or pending or decisions):
            return self
        from ferrule.execution.decisions import check_decisions, decision_to_json, pending_to_json

        if wrong := [one for one in pending or () if not hasattr(one, "request")]:
            raise ConversationError(f"pending takes what run.pending has, not {wrong[0]!r}")
        check_decisions(decisions or {})
        open_ids = {call.id for call in conversation.pending}
        for call_id in (*(one.call.id for one in pending or ()), *(decisions or ())):
            if call_id not in open_ids:
                raise ConversationError(f"the call {call_id!r} isn't open in this conversation, so it can't wait")
        pending_json, decisions_json = self.pending_json, self.decisions_json
        if pending is not None:
            pending_json = {one.call.id: pending_to_json(one) for one in pending}
        if decisions is not None:
            decisions_json = {call_id: decision_to_json(decision) for call_id, decision in decisions.items()}
        return PausedCalls(
            {call_id: one for call_id, one in pending_json.items() if call_id in open_ids},
            {call_id: one for call_id, one in decisions_json.items() if call_id in open_ids},
        )

    @property
    def text(self) -> str | None:
        """The JSON for a row, None if nothing waits."""
        if not self.pending_json and not self.decisions_json:
            return None
        return json.dumps({"pending": list(self.pending_json.values()), "decisions": dict(self.decisions_json)})

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The calls that wait for a decision."""
        if not self.pending_json:
            return ()
        from ferrule.execution.decisions import pending_from_json

        return tuple(pending_from_json(one) for one in self.pending_json.values())

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """The decisions."""
        if not self.decisions_json:
            return {}
        from ferrule.execution.decisions import decision_from_json

        return {call_id: decision_from_json(one) for call_id, one in self.decisions_json.items()}


_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """An entry of a list; `waiting` counts the calls that wait for a decision."""

    id: str
    title: str
    messages: int
    waiting: int
    created: datetime
    updated: datetime
    model: str | None = None
    """The name of the model that answers it, where the saving program gave one."""


@dataclass(frozen=True, slots=True)
class ConversationRow:
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
    def find(cls, connection: Connection, name: str) -> ConversationRow:
        """Find the row of an id, or of its first characters. Raises `ConversationError`, also for a damaged row."""
        found, _ = find_key(connection, name)
        return cls.read(*connection.execute(f"SELECT {cls.COLUMNS} FROM conversations WHERE id = ?", (found,)))

    @classmethod
    def read(cls, row: Sequence[Any]) -> ConversationRow:
        """Read the values of `COLUMNS`. Raises `ConversationError` if one is of another type than is written."""
        read = cls(*row)
        with describe_damage(read.id):
            for name, kind in _KINDS.items():
                if not isinstance(getattr(read, name), kind):
                    raise ConversationError(f"its {name} can't be read")
        return read

    @classmethod
    def find_same(
        cls, connection: Connection, head: int, conversation: Conversation, title: str | None
    ) -> ConversationRow | None:
        """Find the row that already has this conversation."""
        row = connection.execute(
            f"SELECT {cls.COLUMNS} FROM conversations WHERE head = ?1 AND now = ?2 AND coalesce(?3, title) = title"
            " ORDER BY created",
            (head, conversation.now.isoformat(), title),
        ).fetchone()
        return None if row is None else cls.read(row)

    @classmethod
    def insert(cls, connection: Connection, head: int, now: str, title: str, waiting: str | None) -> str:
        """Add a row; returns its id."""
        name = secrets.token_hex(5)
        time = _format_time()
        connection.execute(
            "INSERT INTO conversations (id, head, now, title, waiting, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (name, head, now, shorten_title(title), waiting, time, time),
        )
        return name

    def update(self, connection: Connection, head: int, title: str, waiting: str | None) -> None:
        """Write what has changed; where nothing has, the time of the last change stays too."""
        if (head, shorten_title(title), waiting) != (self.head, self.title, self.waiting):
            connection.execute(
                "UPDATE conversations SET head = ?, title = ?, waiting = ?, updated = ? WHERE id = ?",
                (head, shorten_title(title), waiting, _format_time(), self.id),
            )

    def summarize(self, connection: Connection, messages: int) -> ConversationSummary:
        """Make its entry for a list. Raises `ConversationError`."""
        with describe_damage(self.id):
            waiting = len(PausedCalls.parse(self.waiting).pending_json)
            if not isinstance(messages, int):
                raise ConversationError("the number of its messages can't be read")
            created, updated = _read_time(self.created), _read_time(self.updated)
        return ConversationSummary(
            self.id, self.title, messages, waiting, created, updated, read_model(connection, self.id)
        )


_KINDS: Mapping[str, Any] = {
    **dict.fromkeys(("id", "now", "title", "created", "updated"), str),
    "head": int,
    "waiting": str | None,
}


@contextmanager
def describe_damage(conversation: object) -> Iterator[None]:
    """Say in a `ConversationError` which conversation is damaged, and what can be done."""
    try:
        yield
    except ConversationError as error:
        advice = choose_advice("Store.delete() removes it", "`ferrule history delete` removes it")
        raise ConversationError(f"the conversation {conversation!r:.40} is damaged: {error}; {advice}") from error


def find_key(connection: Connection, name: str) -> tuple[Any, Any]:
    """Find the id and head of a conversation, also of a damaged one, by its id or the first characters of it.

    Raises `ConversationError`.
    """
    if not isinstance(name, str):
        raise ConversationError(f"an id is a text, as save() returns it, not {name!r}")
    rows = connection.execute(
        "SELECT id, head FROM conversations WHERE substr(lower(id), 1, length(?1)) = ?1 ORDER BY length(id) LIMIT 2",
        (name.lower(),),
    ).fetchall()
    if not name or not rows:
        advice = choose_advice("Store.list() returns them", "`ferrule history` lists them")
        raise ConversationError(f"no conversation has the id {name!r}; {advice}")
    if len(rows) > 1 and rows[0][0] != name:
        raise ConversationError(f"several ids begin with {name!r}; give more characters")
    return tuple(rows[0])


def read_conversation_time(text: str) -> datetime:
    """Read the time of a conversation. Raises `ConversationError`."""
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ConversationError(f"{text!r:.40} is no time") from error


def _read_time(text: str) -> datetime:
    time = read_conversation_time(text)
    try:
        time.astimezone()
    except OverflowError as error:
        raise ConversationError(f"{text!r:.40} is no time that can be shown") from error
    return time


def read_model(connection: Connection, conversation: str) -> str | None:
    """Read the name of the model that answers a conversation, by the conversation's full id."""
    if not has_table(connection, "conversation_models"):
        return None
    row = connection.execute("SELECT model FROM conversation_models WHERE conversation = ?", (conversation,)).fetchone()
    return row[0] if row is not None and isinstance(row[0], str) else None


def write_model(connection: Connection, conversation: str, model: str | None) -> None:
    """Write the name of the model that answers a conversation; None keeps what is stored."""
    if model is not None:
        connection.execute(MODELS)
        connection.execute("INSERT OR REPLACE INTO conversation_models VALUES (?, ?)", (conversation, model))


def has_table(connection: Connection, name: str) -> bool:
    """Whether the store has a table that is made when first needed."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def write_folder(connection: Connection, conversation: str, folder: str | None) -> None:
    """Write the folder that a conversation is about; None keeps what is stored."""
    if folder is not None:
        connection.execute(FOLDERS)
        connection.execute("INSERT OR REPLACE INTO conversation_folders VALUES (?, ?)", (conversation, folder))


def copy_folder(connection: Connection, conversation: str, copy: str) -> None:
    """Write the folder of a conversation, if it has one, for a copy of it."""
    if has_table(connection, "conversation_folders"):
        connection.execute(
            "INSERT INTO conversation_folders SELECT ?2, folder FROM conversation_folders WHERE conversation = ?1",
            (conversation, copy),
        )


def select_of_folder(connection: Connection, folder: str | None) -> tuple[str, tuple[str, ...]]:
    """Return a condition on `conversations`, and its values, for those of a folder; without one, for all."""
    if folder is None:
        return "1", ()
    if not has_table(connection, "conversation_folders"):
        return "0", ()
    return "conversations.id IN (SELECT conversation FROM conversation_folders WHERE folder = ?)", (folder,)


def shorten_title(text: str) -> str:
    """Shorten a title to one line of at most 80 characters."""
    line = " ".join(text.replace("\0", " ").encode("utf-8", "replace").decode().split())
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"


def _format_time() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
