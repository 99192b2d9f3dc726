"""What the user undid and the model wasn't told yet, kept in the store: it may be told by a later program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from ferrule._util.terminal_text import escape_line
from ferrule._util.user_folders import write_private_file
from ferrule.coding.checkpoints.restore import Restored
from ferrule.sandbox.file_access import describe_path

__all__ = ["FILE_NAME", "NewsFile", "UndoNews", "describe_for_model"]

FILE_NAME = "undo_news.json"
"""Of the news in a store."""
_MOST_KEPT = 50
_MOST_NAMED = 20
_STATES = {
    "undo": {"created": "is back", "restored": "is as before", "removed": "is gone", "mode": "has its earlier mode"},
    "redo": {"created": "is back", "restored": "is changed again", "removed": "is gone", "mode": "has its later mode"},
}


@dataclass(frozen=True, slots=True)
class UndoNews:
    """One undo or redo, for the model whose turn it was."""

    text: str
    paths: tuple[str, ...]
    """The paths that were restored, relative to the workspace or absolute."""
    conversations: tuple[str, ...]
    """The ids of the turn's conversation; none if its program has none."""


@dataclass(frozen=True, slots=True)
class NewsFile:
    """The news of one store, which is read and changed under the store's lock."""

    path: Path

    def add(self, news: UndoNews) -> None:
        """Keep news. Raises `OSError`."""
        self._save([*self._load(), news][-_MOST_KEPT:])

    def take(self, conversation: str | None) -> list[UndoNews]:
        """Return the news for a conversation, or for all, and forget them. Raises `OSError`."""
        known = self._load()
        taken = [one for one in known if conversation is None or conversation in one.conversations]
        if taken:
            self._save([one for one in known if one not in taken])
        return taken

    def rename_conversation(self, known: str, name: str) -> None:
        """Let the news for a conversation be found by another id, too. Raises `OSError`."""
        found = self._load()
        renamed = [
            replace(one, conversations=(*one.conversations, name)) if known in one.conversations else one
            for one in found
        ]
        if renamed != found:
            self._save(renamed)

    def _load(self) -> list[UndoNews]:
        with suppress(OSError, ValueError, TypeError, KeyError):
            return [
                UndoNews(one["text"], tuple(one["paths"]), tuple(one["conversations"]))
                for one in json.loads(self.path.read_bytes())
            ]
        return []

    def _save(self, news: Sequence[UndoNews]) -> None:
        if not news:
            self.path.unlink(missing_ok=True)
            return
        write_private_file(self.path, json.dumps([asdict(one) for one in news]).encode())


def describe_for_model(action: Literal["undo", "redo"], label: str, done: Sequence[Restored]) -> str:
    """Describe an undo or redo to the model whose turn it was."""
    states = _STATES[action]
    named = [f"- {describe_path(each.path)} {states[each.action]}" for each in done[:_MOST_NAMED]]
    if len(done) > _MOST_NAMED:
        named.append(f"- and {len(done) - _MOST_NAMED} more")
    turn = f"your turn «{escape_line(label)}»" if label else "a turn of yours"
    verb = "undid" if action == "undo" else "made again what was undone of"
    head = f"The user {verb} {turn}, with what its commands changed. Read again before you rely on it:"
    return "\n".join([head, *named])
