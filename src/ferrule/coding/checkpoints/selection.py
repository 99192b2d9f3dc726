"""Selects the turn that undo or redo takes, and says why there is none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from ferrule.coding.checkpoints.report import TurnSummary
from ferrule.coding.checkpoints.turns import Turn

__all__ = [
    "Action",
    "belongs_to",
    "describe_missing",
    "describe_next",
    "describe_skipped",
    "find_incomplete",
    "is_incomplete",
    "release_paths",
    "reopen",
]

Action: TypeAlias = Literal["undo", "redo"]


def belongs_to(turn: Turn, conversation: str | None) -> bool:
    """Whether a turn is one of a conversation; None stands for all."""
    return conversation is None or conversation in turn.conversations


def is_incomplete(turn: Turn, action: Action) -> bool:
    """Whether undo, or redo, has kept files of a turn, so that `force` can overwrite them."""
    before, after = ("done", "undone") if action == "undo" else ("undone", "done")
    return bool(turn.status == after and turn.kept) or (turn.status == before and turn.is_blocked)


def find_incomplete(turns: Iterable[Turn], action: Action, conversation: str | None) -> Turn | None:
    """The turn of which undo, or redo, has kept files last. `turns` are sorted by number."""
    found = [turn for turn in turns if is_incomplete(turn, action) and belongs_to(turn, conversation)]
    return next(iter(found if action == "undo" else reversed(found)), None)


def release_paths(turns: Iterable[Turn], undone: Turn, paths: Collection[str]) -> Iterator[Turn]:
    """Drop paths from later turns of which undo kept them: `undone` has given them an older content by force.

    Yields the turns that changed.
    """
    for turn in turns:
        is_later = turn.number > undone.number and is_incomplete(turn, "undo")
        if is_later and any(change.path in paths for change in turn.changes):
            turn.changes = [change for change in turn.changes if change.path not in paths]
            turn.kept = [path for path in turn.kept if path not in paths]
            yield turn


def reopen(turn: Turn) -> bool:
    """Prepare a turn for the changes of a new one; whether its record changed.

    An undone turn has only the changes left that undo kept, which can be undone later, and none to redo.
    """
    before = (turn.status, turn.kept, turn.is_blocked)
    if turn.status == "undone":
        turn.changes = [change for change in turn.changes if change.path in turn.kept]
        turn.changed_git = False
    if turn.status != "open":
        turn.status, turn.kept, turn.is_blocked = "done", [], False
    return before != (turn.status, turn.kept, turn.is_blocked)


def describe_skipped(skipped: Sequence[Turn], before: Turn | None) -> str:
    """Say that turns changed only `.git`, and what the next undo does; `before` is the turn that it takes back."""
    named = ", ".join(TurnSummary.of(each).describe() for each in skipped)
    after = (
        "there is no turn before to undo"
        if before is None
        else f"undo again takes back {TurnSummary.of(before).describe()}"
    )
    return f"{named} changed only .git, or nothing that can be restored, and undo doesn't restore that; {after}"


def describe_next(action: Action, tried: Turn, turns: Iterable[Turn]) -> Iterator[str]:
    """Say which turn is next after one that is blocked. `turns` are those that could be tried, in order."""
    following = next((turn for turn in turns if turn is not tried), None)
    if tried.is_blocked and following is not None:
        yield f"{action.capitalize()} again to go on with {TurnSummary.of(following).describe()}."


def describe_missing(turns: Sequence[Turn], conversation: str | None) -> str:
    """Say that no turn of a conversation, or of all, can be undone."""
    if not any(turn.status == "done" for turn in turns):
        return "there is nothing to undo in this workspace"
    has_undone = any(turn.status == "undone" and belongs_to(turn, conversation) for turn in turns)
    more = "more" if has_undone else "yet"
    return f"this conversation has changed nothing {more}; `ferrule code undo` takes back what earlier ones changed"
