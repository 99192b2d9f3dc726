"""What undo and redo keep, since it was changed afterwards, stays within reach: of `force`, and of a later undo."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ferrule.coding.checkpoints import Checkpoints, Report


class Folder:
    """A workspace with turns of file tools."""

    def __init__(self, folder: Path, store: Path) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder, store)

    async def work(self, label: str, **texts: str) -> None:
        """A turn that writes files."""
        self.checkpoints.begin_turn(label)
        await self.checkpoints.before_write([self.folder / name for name in texts])
        self.change(**texts)
        await self.checkpoints.end_turn()

    def change(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.folder / name).write_text(text)

    def read(self, *names: str) -> list[str | None]:
        paths = [self.folder / name for name in names]
        return [path.read_text() if path.exists() else None for path in paths]

    async def undo(self, *, force: bool = False) -> list[str]:
        return str(await self.checkpoints.undo(force=force)).splitlines()

    async def redo(self, *, force: bool = False) -> list[str]:
        return str(await self.checkpoints.redo(force=force)).splitlines()


@pytest.fixture
async def folder(tmp_path: Path) -> AsyncIterator[Folder]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    folder = Folder(workspace, tmp_path / "store")
    yield folder
    await folder.checkpoints.aclose()


async def test_a_turn_of_which_everything_is_kept_is_not_undone(folder: Folder) -> None:
    folder.change(a="old")
    await folder.work("one", b="one")
    await folder.work("two", a="two")
    folder.change(a="mine")
    assert await folder.undo() == [
        "Nothing of the turn «two» was undone",
        "Kept a: it was changed afterwards",
        "Undo again with force to overwrite what was kept.",
        "Undo again to go on with the turn «one».",
    ]
    assert [turn.status for turn in await folder.checkpoints.list_turns()] == ["done", "done"]
    await folder.work("three", c="three")
    assert (await folder.undo())[0] == "Undid the turn «three»: 1 path removed"
    assert (await folder.undo())[0] == "Nothing of the turn «two» was undone"
    assert (await folder.undo())[0] == "Undid the turn «one»: 1 path removed"
    assert (await folder.undo())[-1] == "Undo again with force to overwrite what was kept."  # no turn is before it
    folder.change(a="two")
    assert await folder.undo() == ["Undid the turn «two»: 1 path restored", "  restored a"]
    assert folder.read("a", "b", "c") == ["old", None, None]


async def test_force_overwrites_what_the_last_undo_has_kept(folder: Folder) -> None:
    folder.change(a="old")
    await folder.work("one", b="one")
    await folder.work("two", a="two")
    folder.change(a="mine")
    await folder.undo()
    await folder.undo()
    assert (await folder.undo(force=True))[0] == "Undid the turn «two»: 1 path restored"
    assert folder.read("a", "b") == ["old", None]
    assert (await folder.redo())[0] == "Redid the turn «one»: 1 path created"
    await folder.redo()
    assert folder.read("a", "b") == ["mine", "one"]


async def test_what_was_kept_of_an_undone_turn_can_be_undone_after_a_later_turn(folder: Folder) -> None:
    folder.change(a="old", b="old")
    await folder.work("one", a="one", b="one")
    folder.change(a="mine")
    report = await folder.undo()
    assert report[0] == "Undid the turn «one» in part: 1 path restored"
    await folder.work("two", c="two")
    assert (await folder.redo())[0].startswith("there is nothing to redo")
    await folder.undo()
    assert (await folder.undo())[:2] == ["Nothing of the turn «one» was undone", "Kept a: it was changed afterwards"]
    assert await folder.undo(force=True) == ["Undid the turn «one»: 1 path restored", "  restored a"]
    assert folder.read("a", "b") == ["old", "old"]


async def test_redo_leaves_what_it_keeps_to_force_too(folder: Folder) -> None:
    folder.change(a="old", b="old", c="old")
    await folder.work("one", a="one", b="one")
    await folder.work("two", c="two")
    await folder.undo()
    await folder.undo()
    folder.change(a="mine", b="mine")
    assert await folder.redo() == [
        "Nothing of the turn «one» was redone",
        "Kept a: it was changed afterwards",
        "Kept b: it was changed afterwards",
        "Redo again with force to overwrite what was kept.",
        "Redo again to go on with the turn «two».",
    ]
    assert (await folder.redo())[0] == "Redid the turn «two»: 1 path restored"
    folder.change(b="old")
    assert (await folder.redo())[0] == "Redid the turn «one» in part: 1 path restored"
    assert folder.read("a", "b", "c") == ["mine", "one", "two"]
    assert await folder.redo(force=True) == ["Redid the turn «one»: 1 path restored", "  restored a"]
    assert folder.read("a") == ["one"]
    await folder.undo()
    await folder.undo()
    assert folder.read("a", "b", "c") == ["mine", "old", "old"]


async def test_redo_makes_only_what_was_undone(folder: Folder) -> None:
    folder.change(a="old", b="old")
    await folder.work("one", a="one", b="one")
    folder.change(a="mine")
    await folder.undo()
    assert await folder.redo() == ["Redid the turn «one»: 1 path restored", "  restored b"]
    assert folder.read("a", "b") == ["mine", "one"]


async def test_force_after_force_does_not_bring_back_a_content_between_two_turns(folder: Folder) -> None:
    folder.change(a="old")
    await folder.work("one", a="one")
    await folder.work("two", a="two", b="two")
    folder.change(a="mine", b="mine")
    await folder.undo()
    assert (await folder.undo())[0] == "Nothing of the turn «one» was undone"
    await folder.undo(force=True)
    assert folder.read("a", "b") == ["old", "mine"]
    assert (await folder.undo(force=True))[0] == "Undid the turn «two»: 1 path removed"
    assert folder.read("a", "b") == ["old", None]
    assert await folder.undo() == ["there is nothing to undo in this workspace"]


async def test_force_goes_on_after_a_folder_that_holds_the_files_of_somebody_else(folder: Folder) -> None:
    await folder.work("one", a="one")
    folder.checkpoints.begin_turn("two")
    await folder.checkpoints.before_command()
    (folder.folder / "made").mkdir()
    await folder.checkpoints.end_turn()
    (folder.folder / "made" / "mine").write_text("mine")
    assert (await folder.undo())[0] == "Nothing of the turn «two» was undone"
    report: Report = await folder.checkpoints.undo(force=True)
    assert [each.path for each in report.kept] == ["made"]
    assert "with force" not in str(report)
    assert (await folder.undo(force=True))[0] == "Undid the turn «one»: 1 path removed"
    assert (folder.folder / "made" / "mine").exists()
