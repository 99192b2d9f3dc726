"""Undo within one conversation, and what lists of many paths show of it."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from ferrule.coding.checkpoints import Checkpoints, TurnChanges
from ferrule.coding.checkpoints.path_lists import PathNote, list_paths


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / ".gitignore").write_text("build/\n*.log\n")
    return folder


async def change(checkpoints: Checkpoints, conversation: str, command: str) -> None:
    checkpoints.find_conversation = lambda: conversation
    checkpoints.begin_turn(f"{conversation} asks")
    await checkpoints.before_command()
    await asyncio.to_thread(subprocess.run, ["sh", "-ec", command], cwd=checkpoints.workspace, check=True)
    await checkpoints.end_turn()


async def test_undo_and_redo_are_of_the_turns_of_one_conversation(workspace: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(workspace, tmp_path / "store")
    await change(checkpoints, "older", "echo > a")
    checkpoints.find_conversation = lambda: "newer"
    nothing = await checkpoints.undo()
    assert str(nothing) == (
        "this conversation has changed nothing yet; `ferrule code undo` takes back what earlier ones changed"
    )
    assert (workspace / "a").exists()
    await change(checkpoints, "newer", "echo > b")
    assert str(await checkpoints.undo()).startswith("Undid the turn «newer asks»: 1 path removed\n")
    assert "changed nothing more" in str(await checkpoints.undo())
    changes = await checkpoints.find_changes()
    assert isinstance(changes, TurnChanges)
    assert changes.turn is not None
    assert changes.turn.status == "undone"
    checkpoints.find_conversation = lambda: "older"
    assert not (await checkpoints.redo()).paths  # it undid nothing
    assert (await checkpoints.plan_undo()).is_planned
    assert (workspace / "a").exists()
    assert (await checkpoints.undo()).is_complete
    assert not (workspace / "a").exists()
    await checkpoints.aclose()


async def test_a_plan_names_what_undo_then_does(workspace: Path, tmp_path: Path) -> None:
    for name in ("changed", "gone", "mode"):
        (workspace / name).write_text("old\n")
    checkpoints = Checkpoints(workspace, tmp_path / "store")
    await change(checkpoints, "it", "echo > new; echo more >> changed; rm gone; chmod 755 mode")
    planned = await checkpoints.plan_undo()
    assert {(each.path, each.action) for each in planned.paths} == {
        ("new", "removed"), ("changed", "restored"), ("gone", "created"), ("mode", "mode"),
    }  # fmt: skip
    assert set((await checkpoints.undo()).paths) == set(planned.paths)
    await checkpoints.aclose()


async def test_turns_of_a_conversation_that_was_saved_anew_are_still_its_own(workspace: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(workspace, tmp_path / "store")
    await change(checkpoints, "before", "echo > a")
    await checkpoints.rename_conversation("before", "compacted")
    await checkpoints.rename_conversation("unknown", "other")
    for conversation, word in (
        ("other", "changed nothing"),
        ("compacted", "Undid the turn"),
        ("before", "there is nothing to undo"),
    ):
        checkpoints.find_conversation = lambda name=conversation: name
        assert word in str(await checkpoints.undo())
    await checkpoints.aclose()


async def test_ignored_paths_are_listed_by_folder_and_after_the_others(workspace: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(workspace, tmp_path / "store")
    many = "for i in $(seq 60); do echo > web/node_modules/x/$i.js; echo > build/$i.o; done; echo 1 > own; echo > a.log"
    await change(checkpoints, "one", f"mkdir -p web/node_modules/x build; {many}")
    changes = await checkpoints.find_changes()
    assert isinstance(changes, TurnChanges)
    assert str(changes).splitlines() == [
        "the turn «one asks», just now:",
        "diff --git a/own b/own",
        "new file mode 100644",
        *str(changes).splitlines()[3:8],
        "  created a.log (ignored)",
        "  created build/ 60 files (ignored)",
        "  created web/node_modules/ 60 files (ignored)",
    ]
    assert "+1" in str(changes)
    report = await checkpoints.undo()
    assert [line for line in str(report).splitlines() if line.startswith("  removed")] == [
        "  removed web",
        "  removed own",
        "  removed web/node_modules/ 60 files (ignored)",
        "  removed build/ 60 files (ignored)",
        "  removed a.log (ignored)",
    ]
    assert len([one for one in report.to_json()["paths"] if one["ignored"]]) == 124
    await checkpoints.aclose()


def test_many_paths_of_a_folder_are_one_line() -> None:
    notes = [PathNote(f"src/{name}/{number}.py", "  created ") for name in ("a", "b") for number in range(15)]
    lines = list_paths([PathNote("top.py", "  created "), *notes], (), 20)
    assert lines == ["  created top.py", "  created src/a/ 15 files", "  created src/b/ 15 files"]
    lines = list_paths([PathNote(f"{number}.py", "  created ") for number in range(30)], (), 20)
    assert lines[-1] == "  and 10 more"
