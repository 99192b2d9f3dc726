"""What undo and redo did, as data and as text for people."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.coding.checkpoints.path_lists import PathNote, find_parents, list_paths
from ferrule.coding.checkpoints.restore import Restored
from ferrule.coding.checkpoints.turns import Turn

__all__ = ["NEVER_RESTORED", "Report", "TurnSummary", "describe_age"]

NEVER_RESTORED = (".git", "the network", "running processes")
"""What commands may have changed that no checkpoint includes."""
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class TurnSummary:
    """One turn of the list of turns."""

    number: int
    label: str
    started: float
    """Seconds since 1970."""
    status: Literal["open", "done", "undone"]
    files: int
    """How many paths it changed."""
    ran_command: bool
    is_interrupted: bool
    conversations: tuple[str, ...] = ()
    """The ids of the conversation that it belongs to, if its program has one."""

    def describe(self) -> str:
        """Its label: numbers would be of all conversations together."""
        return f"the turn «{escape_line(self.label)}»" if self.label else "a turn"

    @classmethod
    def of(cls, turn: Turn) -> TurnSummary:
        """Summarize a turn's record."""
        files = len(turn.changes)
        return cls(
            turn.number,
            turn.label,
            turn.started,
            turn.status,
            files,
            turn.ran_command,
            turn.is_interrupted,
            tuple(turn.conversations),
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What undo or redo did, or would do. `str(report)` is its text."""

    action: Literal["undo", "redo"]
    turn: TurnSummary | None = None
    """The turn that was undone or redone; None if there was none, or it failed before it began."""
    paths: tuple[Restored, ...] = ()
    not_restored: tuple[str, ...] = ()
    """What the checkpoint doesn't include, each with its reason."""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Why nothing was done, or why the checkpoint isn't complete."""
    ignored: frozenset[str] = frozenset()
    """Those of the paths that git ignores."""
    is_planned: bool = False
    """Whether nothing was done, and this says what would be."""
    is_forced: bool = False
    """Whether what was changed since was overwritten, too."""

    @property
    def done(self) -> tuple[Restored, ...]:
        """What was changed, or would be."""
        return tuple(each for each in self.paths if each.is_done)

    @property
    def kept(self) -> tuple[Restored, ...]:
        """What was left alone, since somebody else changed it afterwards."""
        return tuple(each for each in self.paths if each.action == "kept")

    @property
    def failed(self) -> tuple[Restored, ...]:
        """What could not be restored."""
        return tuple(each for each in self.paths if each.action == "failed")

    @property
    def is_complete(self) -> bool:
        """Whether every change of the turn's that a checkpoint can include was taken back, or made again."""
        return self.turn is not None and not self.kept and not self.failed and not self.problems

    def __str__(self) -> str:
        """A first line that says what was done, then what wasn't. Many paths of one folder are one line."""
        if self.turn is None:
            return "\n".join(self.problems)
        lines = [self._describe_action(self.turn.describe())]
        verbs = _PLANNED if self.is_planned else _VERBS
        lines += self._list(PathNote(each.path, f"  {verbs[each.action]} ") for each in self.done)
        kept, failed = ("Keeps ", "Can't restore ") if self.is_planned else ("Kept ", "Failed: ")
        lines += self._list(PathNote(each.path, kept, f": {each.reason}") for each in self.kept)
        lines += self._list(PathNote(each.path, failed, f": {each.reason}") for each in self.failed)
        if self.kept and not self.is_planned and not self.is_forced:
            lines.append(f"{self.action.capitalize()} again with force to overwrite what was kept.")
        if self.not_restored:
            lines.append(
                ("Can't be restored: " if self.is_planned else "Not restored: ")
                + "; ".join(map(escape_line, self.not_restored))
            )
        problems = [f"The checkpoint isn't complete: {each}" for each in self.problems]
        return "\n".join([*lines, *self.notes, *problems])

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON data, each path by itself."""
        return {
            "action": self.action,
            "planned": self.is_planned,
            "complete": self.is_complete,
            "turn": None if self.turn is None else asdict(self.turn),
            "paths": [{**asdict(each), "ignored": each.path in self.ignored} for each in self.paths],
            "not_restored": list(self.not_restored),
            "notes": list(self.notes),
            "problems": list(self.problems),
        }

    def _describe_action(self, turn: str) -> str:
        if not self.done and self.paths:
            done = "undone" if self.action == "undo" else "redone"
            return f"Nothing of {turn} {'can be' if self.is_planned else 'was'} {done}"
        verb = "Undid" if self.action == "undo" else "Redid"
        part = " in part" if self.kept or self.failed else ""
        return f"{f'Would {self.action}' if self.is_planned else verb} {turn}{part}: {self._count(self.done)}"

    def _count(self, done: Sequence[Restored]) -> str:
        if not done:
            return "nothing has to be restored" if self.is_planned else "nothing had to be restored"
        # As in the list: of ignored ones only files count, not the folders that they are in.
        parents = find_parents(each.path for each in done)
        counts: Counter[tuple[bool, str]] = Counter()
        for each in done:
            is_ignored = each.path in self.ignored
            if not (is_ignored and each.path in parents):
                verb = "restored" if each.action == "mode" else each.action
                counts[is_ignored, f"to {_PLANNED[verb]}" if self.is_planned else verb] += 1
        return ", ".join(
            f"{pluralize(count, 'ignored path' if is_ignored else 'path')} {verb}"
            for (is_ignored, verb), count in sorted(counts.items())
        )

    def _list(self, notes: Iterable[PathNote]) -> list[str]:
        return list_paths(list(notes), self.ignored, _SHOWN)


_VERBS = {"created": "created", "restored": "restored", "removed": "removed", "mode": "mode of"}
_PLANNED = {"created": "create", "restored": "restore", "removed": "remove", "mode": "mode of"}


def describe_age(started: float) -> str:
    """Describe how long ago something was, as exactly as people need it."""
    seconds = max(0.0, time.time() - started)
    for size, unit in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            return f"{pluralize(int(seconds // size), unit)} ago"
    return "just now"
