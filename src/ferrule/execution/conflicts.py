"""Finds calls that may not run at the same time: one writes a file that another reads or writes.

It also tells whether a change that was approved is still the same after an earlier call has changed its file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ferrule.tools.intent import Diff, Intent


class UsedPaths:
    """The paths that some calls read and write, with links followed. A folder stands for everything in it."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._written: set[str] = set()
        self._read_folders: set[str] = set()
        self._written_folders: set[str] = set()

    def add(self, intent: Intent) -> None:
        """Add the paths of a call."""
        for path, is_write in _list_paths(intent):
            (self._written if is_write else self._read).add(path)
            (self._written_folders if is_write else self._read_folders).update(_list_folders(path))

    def add_unknown(self) -> None:
        """Add a call that may write anything."""
        self._written.add("/")

    def conflicts_with(self, intent: Intent) -> bool:
        """Whether a call writes what one of these reads or writes, or reads what one of them writes."""
        return any(
            _overlaps(path, self._written, self._written_folders)
            or (is_write and _overlaps(path, self._read, self._read_folders))
            for path, is_write in _list_paths(intent)
        )

    def has_written(self, intent: Intent) -> bool:
        """Whether one of these calls writes what a call reads or writes."""
        return any(_overlaps(path, self._written, self._written_folders) for path, _ in _list_paths(intent))


def may_write(intent: Intent) -> bool:
    """Whether a call may change files: what a program does isn't known."""
    return any(effect.kind in ("write", "run") for effect in intent.effects)


def is_same_change(approved: Intent, now: Intent) -> bool:
    """Whether a call would still do what was approved, although its file has changed elsewhere.

    That is so if it has the same effects, and replaces the same lines in the same surroundings, wherever they are now.
    """
    if approved.effects != now.effects:
        return False
    if not (isinstance(approved.preview, Diff) and isinstance(now.preview, Diff)):
        return approved.preview == now.preview
    return _list_changes(approved.preview) == _list_changes(now.preview)


def _list_changes(diff: Diff) -> list[str]:
    """The lines of a diff without its line numbers."""
    return ["@@" if line.startswith("@@") else line for line in str(diff).split("\n")]


def _list_paths(intent: Intent) -> Iterator[tuple[str, bool]]:
    """Yield each path that a call reads or writes, and whether it is written; an unknown one stands for all."""
    for effect in intent.effects:
        if effect.kind in ("read", "write") and "://" not in effect.target:
            try:
                path = os.path.realpath(effect.target) if effect.target else "/"
            except ValueError:  # a text that can't be a path
                path = "/"
            yield path, effect.kind == "write"


def _overlaps(path: str, paths: set[str], folders: set[str]) -> bool:
    """Whether `path` is one of these, or below one of them, or above one, which then has it among its `folders`."""
    return path in paths or path in folders or any(folder in paths for folder in _list_folders(path))


def _list_folders(path: str) -> Iterator[str]:
    """Yield the folders above a path."""
    while path not in ("/", ""):
        path = os.path.dirname(path)  # noqa: PTH120 - a text already
        yield path
