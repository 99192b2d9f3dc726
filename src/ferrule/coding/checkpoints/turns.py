"""The record of each turn: what was there before its first change, and what it changed; a file each."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from ferrule._util.user_folders import write_private_file
from ferrule.coding.checkpoints.entries import Entry

__all__ = ["Change", "SessionLock", "Turn", "TurnFiles", "is_session_alive"]

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Change:
    """One path that a turn changed; None stands for nothing there."""

    path: str
    """Relative to the workspace, or absolute for a file in an added folder."""
    before: Entry | None
    after: Entry | None


@dataclass(slots=True)
class Turn:
    """What one turn did to files."""

    number: int
    """0 as long as it has no record."""
    label: str
    started: float
    """Seconds since 1970."""
    session: str
    """The session that made it; while its lock is held the turn may go on."""
    conversations: list[str] = field(default_factory=list)
    """The ids of the conversation that it belongs to, by which undo finds its turns; none if its program has none."""
    status: Literal["open", "done", "undone"] = "open"
    ended: float | None = None
    is_interrupted: bool = False
    """Whether it ended with its program, so that what was changed later counts as its own."""
    was_shared: bool = False
    """Whether other sessions were open when a turn with commands ended."""
    ran_command: bool = False
    git_before: str = ""
    """The state of `.git` before its first command."""
    git_after: str = ""
    """That when it ended."""
    changed_git: bool = False
    """Whether its commands changed `.git`, such as by a commit."""
    snapshot: str = ""
    """The tree of the workspace before its first command."""
    before: dict[str, Entry | None] = field(default_factory=dict)
    """What file tools were about to change, as it was before."""
    changes: list[Change] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What the checkpoint doesn't include, each with its reason."""
    kept: list[str] = field(default_factory=list)
    """The paths that the last undo or redo of it kept, so that its `status` isn't theirs."""
    unfinished: list[str] = field(default_factory=list)
    """The paths that an undo or redo of it changes; not empty if its program was killed meanwhile."""
    opened: dict[str, int] = field(default_factory=dict)
    """The modes of read-only folders that it makes writable meanwhile, by path."""
    is_blocked: bool = False
    """Whether the last undo or redo of it kept all of its paths, so that the next one tries another turn first."""
    problems: list[str] = field(default_factory=list)
    """Why the checkpoint isn't complete."""

    def list_objects(self) -> Iterator[str]:
        """The ids of the contents that undoing and redoing it needs, without those of its snapshot."""
        sides = [side for change in self.changes for side in (change.before, change.after)]
        yield from (
            entry.oid for entry in (*sides, *self.before.values()) if entry is not None and len(entry.oid) == 64
        )


@dataclass(frozen=True, slots=True)
class TurnFiles:
    """The records of turns in a folder, replaced as a whole by renaming."""

    folder: Path

    def list(self) -> tuple[list[Turn], list[Path]]:
        """The turns, oldest first, and the files that can't be read as one."""
        turns: list[Turn] = []
        damaged: list[Path] = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                turns.append(_parse(json.loads(path.read_bytes())))
            except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
                damaged.append(path)
        return sorted(turns, key=lambda turn: turn.number), damaged

    def save(self, turn: Turn) -> None:
        """Write a turn's record, and give it a number if it has none. Raises `OSError`."""
        turn.number = turn.number or self._choose_number()
        data: dict[str, Any] = {each.name: getattr(turn, each.name) for each in fields(turn)} | {"format": _FORMAT}
        data["before"] = {path: _dump(entry) for path, entry in turn.before.items()}
        data["changes"] = [[change.path, _dump(change.before), _dump(change.after)] for change in turn.changes]
        write_private_file(self._name(turn.number), json.dumps(data).encode())

    def remove(self, turn: Turn) -> None:
        """Remove a turn's record."""
        self._name(turn.number).unlink(missing_ok=True)

    def _choose_number(self) -> int:
        """A number higher than that of any record, also of a damaged one."""
        numbers = [int(path.stem) for path in self.folder.glob("*.json") if path.stem.isdigit()]
        return max(numbers, default=0) + 1

    def _name(self, number: int) -> Path:
        return self.folder / f"{number:08}.json"


class SessionLock:
    """A lock that is held as long as its session's process lives, by which others see that it does."""

    def __init__(self, folder: Path) -> None:
        """Raises `OSError`."""
        self.name = os.urandom(8).hex()
        self._path = folder / f"{self.name}.lock"
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        """End the session. Can be called again."""
        if self._file >= 0:
            file, self._file = self._file, -1
            self._path.unlink(missing_ok=True)
            os.close(file)


def is_session_alive(folder: Path, name: str) -> bool:
    """Whether a session's lock is held. The file of one that has ended is removed."""
    path = folder / f"{name}.lock"
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(file)


def _dump(entry: Entry | None) -> list[Any] | None:
    return None if entry is None else [entry.mode, entry.oid]


def _load(data: Any) -> Entry | None:
    if data is None:
        return None
    mode, oid = data
    if not isinstance(mode, int) or not isinstance(oid, str):
        raise TypeError(data)
    return Entry(mode, oid)


def _parse(data: dict[str, Any]) -> Turn:
    """The turn that `TurnFiles.save` wrote.

    Raises `ValueError`, `TypeError`, `LookupError` or `AttributeError` for anything else. Not by pydantic, whose texts
    can't hold the names of files that aren't UTF-8.
    """
    if data.pop("format") != _FORMAT:
        raise ValueError("another format")
    data["before"] = {path: _load(entry) for path, entry in data["before"].items()}
    data["changes"] = [Change(path, _load(before), _load(after)) for path, before, after in data["changes"]]
    turn = Turn(**data)
    texts = (turn.label, turn.session, turn.snapshot, *turn.conversations, *turn.left_out, *turn.kept, *turn.problems)
    texts += (*turn.unfinished, *turn.opened)
    is_turn = isinstance(turn.number, int) and isinstance(turn.started, int | float)
    is_turn = is_turn and all(isinstance(mode, int) for mode in turn.opened.values())
    if not is_turn or turn.status not in ("open", "done", "undone") or not all(isinstance(each, str) for each in texts):
        raise ValueError("not a turn")
    return turn
