"""A turn's changes as a unified diff."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ferrule.coding.checkpoints.entries import UNREADABLE, Entry, encode_tree, is_folder
from ferrule.coding.checkpoints.history import TurnHistory
from ferrule.coding.checkpoints.objects import ObjectStore
from ferrule.coding.checkpoints.turns import Change
from ferrule.tools.intent import Diff

__all__ = ["write_diff"]

_MAX_CHARACTERS = 1_000_000
_EXECUTABLE, _PLAIN, _LINK, _FOLDER = 0o100755, 0o100644, 0o120777, 0o040755


def write_diff(history: TurnHistory, number: int | None) -> str:
    """What a turn changed in files and links; the content of what checkpoints don't include isn't shown."""
    _, changes = history.find_changes(number)
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
