"""Undoes and redoes one turn, killed before each of its changes to files: see `test_checkpoints_killed`.

    python killed_at_each_step.py FOLDER

Writes a line for each time that the next undo or redo doesn't finish what the killed one began.
"""

import os
import shutil
import sys
from pathlib import Path

from checkpoint_trees import read_tree

from ferrule.coding.checkpoints.undo import UndoHistory

CHANGES = frozenset({"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.symlink"})
"""The audit events of calls that change files."""


def prepare(top: Path) -> None:
    for folder in ("gone", "gone/deep", "to-file", "shut", "becomes-shut"):
        (top / folder).mkdir()
        (top / folder / "inner").write_text("before")
    (top / "to-folder").write_text("before")
    (top / "to-folder").chmod(0o600)
    (top / "gone").chmod(0o500)
    (top / "shut").chmod(0o500)


def change(top: Path) -> None:
    (top / "gone").chmod(0o700)
    for folder in ("gone", "to-file"):
        shutil.rmtree(top / folder)
    (top / "to-folder").unlink()
    for folder in ("to-folder", "new"):
        (top / folder).mkdir()
        (top / folder / "inner").write_text("after")
    for name in ("to-file", "shut/inner", "becomes-shut/inner"):
        (top / name).write_text("after")
    for folder in ("becomes-shut", "new"):
        (top / folder).chmod(0o500)


def is_killed(workspace: Path, store: Path, action: str, step: int) -> bool:
    """Undo or redo in a process that ends before a change; False if there are fewer changes."""
    process = os.fork()
    if not process:
        left = step

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            is_in_store = str(store) in str(arguments[:1])
            left -= event in CHANGES and not is_in_store
            if not left:
                os._exit(1)

        history = UndoHistory(workspace, store, lambda _: False)
        sys.addaudithook(count)
        getattr(history, action)()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 1


def take_back(workspace: Path, store: Path, action: str, step: int, wanted: dict[str, tuple[int, bytes]]) -> bool:
    """Undo or redo, killed at a step, and then again; False if nothing was left to kill."""
    if not is_killed(workspace, store, action, step):
        return False
    history = UndoHistory(workspace, store, lambda _: False)
    report = getattr(history, action)()
    history.close()
    found = read_tree(workspace)
    if not report.is_complete or found != wanted:
        different = sorted(path for path in {*found, *wanted} if found.get(path) != wanted.get(path))
        print(f"{action} killed at {step}: {different}, {report}")
    return True


def run(top: Path) -> None:
    workspace, store = top / "workspace", top / "store"
    workspace.mkdir()
    prepare(workspace)
    before = read_tree(workspace)
    history = UndoHistory(workspace, store, lambda _: False)
    turn = history.begin("a turn")
    history.record_workspace(turn)
    change(workspace)
    history.finish(turn)
    history.close()
    after = read_tree(workspace)
    step = 1
    while take_back(workspace, store, "undo", step, before):
        if not take_back(workspace, store, "redo", step, after):
            assert read_tree(workspace) == after
        step += 1
    print(f"{step} steps")


if __name__ == "__main__":
    run(Path(sys.argv[1]))
