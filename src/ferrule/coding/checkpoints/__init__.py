"""Undo that tells the truth: a checkpoint before the first change of each turn, in a private store.

    checkpoints = Checkpoints(workspace)
    checkpoints.begin_turn("add error handling")
    await checkpoints.before_write([path])      # a file tool: only what it is about to change
    await checkpoints.before_command()          # a command: everything in the workspace that it may change
    await checkpoints.end_turn()
    print(await checkpoints.undo())

`checkpoints` is the room's front, `undo` records turns, takes them back and makes them again, `scan` finds what is in
the workspace, `restore` puts files back, `store` keeps contents as git objects (`sandbox/git/objects.py`).

The store is never the user's repository: neither its index, HEAD, refs, settings nor hooks are written, and none of its
settings apply. So the bytes of a file come back as they were, whatever its attributes say of line ends and filters.
"""

from ferrule.coding.checkpoints.checkpoints import (
    Checkpoints,
    diff_last_turn,
    find_last_changes,
    list_last_turns,
    plan_last_undo,
    redo_last_turn,
    undo_last_turn,
)
from ferrule.coding.checkpoints.diff import TurnChanges
from ferrule.coding.checkpoints.report import Report, TurnSummary
from ferrule.coding.checkpoints.restore import Restored
from ferrule.coding.checkpoints.undo import Limits

__all__ = [
    "Checkpoints",
    "Limits",
    "Report",
    "Restored",
    "TurnChanges",
    "TurnSummary",
    "diff_last_turn",
    "find_last_changes",
    "list_last_turns",
    "plan_last_undo",
    "redo_last_turn",
    "undo_last_turn",
]
