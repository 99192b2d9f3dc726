"""A turn's changes as a unified diff."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ferrule._util.terminal_text import escape_text
from ferrule.coding.checkpoints.entries import UNREADABLE, Entry, encode_tree, is_folder
from ferrule.coding.checkpoints.path_lists import PathNote, list_paths
from ferrule.coding.checkpoints.report import TurnSummary, describe_age
from ferrule.coding.checkpoints.turns import Change
from ferrule.coding.checkpoints.undo import UndoHistory
from ferrule.sandbox.git.objects import ObjectStore
from ferrule.tools.intent import Diff

__all__ = ["TurnChanges", "find_turn_changes", "write_diff"]

_MAX_CHARACTERS = 1_000_000
_MOST_LISTED = 20
_EXECUTABLE, _PLAIN, _LINK, _FOLDER = 0o100755, 0o100644, 0o120777, 0o040755


@dataclass(frozen=True, slots=True)
class TurnChanges:
    """What a turn changed. `str(changes)` is its text for people."""

    turn: TurnSummary | None
    """None if there is no such turn."""
    paths: tuple[tuple[str, str], ...] = ()
    """What was done, `created`, `changed` or `removed`, and the path, of all of them."""
    ignored: frozenset[str] = frozenset()
    """Those of the paths that git ignores."""
    diff: str = ""
    """The changes of files and links that aren't ignored, as a unified diff."""

    def __str__(self) -> str:
        """The turn on a line, its diff, and what the diff doesn't show, one line a folder."""
        if self.turn is None:
            return ""
        state = ", which is undone" if self.turn.status == "undone" else f", {describe_age(self.turn.started)}"
        shown = self.ignored if self.diff else frozenset(path for _, path in self.paths)
        notes = [PathNote(path, f"  {verb} ") for verb, path in self.paths if path in shown]
        lines = list_paths(notes, self.ignored, _MOST_LISTED)
        return "\n".join([f"{self.turn.describe()}{state}:", *escape_text(self.diff).splitlines(), *lines])

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON data, each path by itself."""
        paths = [{"path": path, "action": verb, "ignored": path in self.ignored} for verb, path in self.paths]
        return {"turn": None if self.turn is None else asdict(self.turn), "paths": paths, "diff": self.diff}


def find_turn_changes(history: UndoHistory, number: int | None, conversation: str | None) -> TurnChanges:
    """Find what a turn changed: that of a number, or the last one of a conversation, or of all."""
    turn, changes = history.find_changes(number, conversation)
    if turn is None:
        return TurnChanges(None)
    ignored = history.select_ignored(change.path for change in changes)
    paths = tuple((_name_change(change), change.path) for change in changes)
    diff = write_changes(history, [change for change in changes if change.path not in ignored])
    return TurnChanges(replace(TurnSummary.of(turn), files=len(changes)), paths, ignored, diff)


def write_diff(history: UndoHistory, number: int | None) -> str:
    """What a turn changed, by default the last one that isn't undone, as a unified diff."""
    return write_changes(history, history.find_changes(number, skips_undone=True)[1])


def write_changes(history: UndoHistory, changes: Sequence[Change]) -> str:
    """Write changes of files and links as a unified diff; what checkpoints don't include isn't shown."""
    shown = [change for change in changes if _is_shown(change)]
    git = history.store.git
    if git is None:
        return _cut("\n".join(_compare(history.objects, change) for change in shown))
    trees = [
        _write_tree(history.objects, ((change.path, getattr(change, side)) for change in shown))
        for side in ("before", "after")
    ]
    options = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "-p")
    return _cut(git.run("-c", "core.quotePath=false", "diff", *options, *trees).decode("utf-8", "replace"))


def _name_change(change: Change) -> str:
    if change.before is None:
        return "created"
    return "removed" if change.after is None else "changed"


def _is_shown(change: Change) -> bool:
    sides = [side for side in (change.before, change.after) if side is not None]
    return any(side.kind in ("file", "link") and side.oid != UNREADABLE for side in sides)


def _write_tree(objects: ObjectStore, files: Iterable[tuple[str, Entry | None]]) -> str:
    """A tree of some files alone."""
    top: dict[str, Any] = {}
    for path, entry in files:
        if entry is None or is_folder(entry) or len(entry.oid) != 64:
            continue
        *folders, name = path.lstrip("/").split("/")
        inner = top
        for folder in folders:
            inner = inner.setdefault(folder, {})
        mode = _LINK if entry.kind == "link" else _EXECUTABLE if entry.mode & 0o100 else _PLAIN
        inner[name] = Entry(mode, entry.oid)
    return _write_folder(objects, top)


def _write_folder(objects: ObjectStore, folder: dict[str, Any]) -> str:
    entries = {
        name: inner if isinstance(inner, Entry) else Entry(_FOLDER, _write_folder(objects, inner))
        for name, inner in folder.items()
    }
    return objects.write(encode_tree(entries), b"tree")


def _compare(objects: ObjectStore, change: Change) -> str:
    """One file's change, where there is no git to write it."""
    texts = []
    for side in (change.before, change.after):
        has_content = side is not None and len(side.oid) == 64
        texts.append(objects.read(side.oid) if side is not None and has_content else b"")
    if any(b"\0" in text[:8000] for text in texts):
        return f"Binary file {change.path} differs"
    before, after = (text.decode("utf-8", "replace") for text in texts)
    return str(Diff(change.path, before, after))


def _cut(text: str) -> str:
    if len(text) <= _MAX_CHARACTERS:
        return text
    kept = text[:_MAX_CHARACTERS]
    return f"{kept}\n[{len(text) - len(kept):,} more characters]\n"
