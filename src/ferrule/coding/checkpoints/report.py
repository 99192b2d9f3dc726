"""What undo and redo did, as data and as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ferrule._util.pluralize import pluralize
from ferrule._util.terminal_text import escape_line
from ferrule.coding.checkpoints.restore import Restored
from ferrule.coding.checkpoints.turns import Turn

__all__ = ["NEVER_RESTORED", "Report", "TurnSummary"]

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

    @classmethod
    def of(cls, turn: Turn) -> TurnSummary:
        """Summarize a turn's record."""
        files = len(turn.changes)
        return cls(turn.number, turn.label, turn.started, turn.status, files, turn.ran_command, turn.is_interrupted)


@dataclass(frozen=True, slots=True)
class Report:
    """What undo or redo did. `str(report)` is its text."""

    action: Literal["undo", "redo"]
    turn: TurnSummary | None = None
    """The turn that was undone or redone; None if there was none, or it failed before it began."""
    paths: tuple[Restored, ...] = ()
    not_restored: tuple[str, ...] = ()
    """What the checkpoint doesn't include, each with its reason."""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Why nothing was done, or why the checkpoint isn't complete."""

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
        """A first line that says what was done, then what wasn't."""
        if self.turn is None:
            return "\n".join(self.problems)
        done = [each for each in self.paths if each.action not in ("kept", "failed")]
        verb = "Undid" if self.action == "undo" else "Redid"
        label = f" ({escape_line(self.turn.label)})" if self.turn.label else ""
        lines = [f"{verb} turn {self.turn.number}{label}: {_count(done)}"]
        lines += _list([f"  {_VERBS[each.action]} {escape_line(each.path)}" for each in done])
        lines += _list([f"Kept {escape_line(each.path)}: {each.reason}" for each in self.kept])
        lines += _list([f"Failed: {escape_line(each.path)}: {each.reason}" for each in self.failed])
        if self.kept:
            lines.append(f"{self.action.capitalize()} again with force to overwrite what was kept.")
        if self.not_restored:
            lines.append("Not restored: " + "; ".join(map(escape_line, self.not_restored)))
        problems = [f"The checkpoint isn't complete: {each}" for each in self.problems]
        return "\n".join([*lines, *self.notes, *problems])


_VERBS = {"created": "created", "restored": "restored", "removed": "removed", "mode": "mode of"}


def _count(done: Sequence[Restored]) -> str:
    return f"{pluralize(len(done), 'path')} restored" if done else "nothing had to be restored"


def _list(lines: Sequence[str]) -> list[str]:
    hidden = len(lines) - _SHOWN
    return [*lines[:_SHOWN], f"  and {hidden:,} more"] if hidden > 0 else list(lines)
