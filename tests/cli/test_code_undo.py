"""`ferrule code undo`, `redo` and `diff` in a folder where a session has changed files."""

import asyncio
import json
from pathlib import Path

import pytest
from terminals import ferrule

from ferrule.coding.checkpoints import Checkpoints


async def make_a_file(workspace: Path) -> None:
    checkpoints = Checkpoints(workspace)
    checkpoints.begin_turn("make a")
    await checkpoints.before_write([workspace / "a"])
    (workspace / "a").write_text("a")
    await checkpoints.aclose()


def test_undo_from_the_shell_shows_what_it_would_do_and_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    home = {"XDG_DATA_HOME": str(tmp_path / "home")}
    monkeypatch.setenv("XDG_DATA_HOME", home["XDG_DATA_HOME"])
    asyncio.run(make_a_file(workspace))
    refused = ferrule("code", "undo", folder=workspace, **home)
    assert refused.returncode == 2
    assert refused.stdout.startswith("Would undo the turn «make a»: 1 path to remove\n  remove a\n")
    assert refused.stderr == (
        "ferrule: nothing was undone, since nobody can be asked here; --yes undoes it without asking\n"
    )
    planned = json.loads(ferrule("code", "undo", "--json", folder=workspace, **home).stdout)
    assert (planned["planned"], planned["paths"][0]["action"]) == (True, "removed")
    assert (workspace / "a").exists()
    assert ferrule("code", "undo", "--yes", folder=workspace, **home).stdout.startswith("Undid the turn «make a»")
    assert not (workspace / "a").exists()
    assert ferrule("code", "diff", folder=workspace, **home).stdout.startswith("the turn «make a», which is undone:\n")
    assert ferrule("code", "redo", folder=workspace, **home).stdout.startswith("Redid the turn «make a»")


def test_the_command_asks_about_no_undo_that_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, home = tmp_path / "workspace", {"XDG_DATA_HOME": str(tmp_path / "home")}
    workspace.mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", home["XDG_DATA_HOME"])

    async def work() -> None:
        checkpoints = Checkpoints(workspace)
        for name in ("one", "two"):
            checkpoints.begin_turn(name)
            await checkpoints.before_write([workspace / name])
            (workspace / name).write_text(name)
        await checkpoints.aclose()

    asyncio.run(work())
    (workspace / "two").write_text("mine")
    kept = ferrule("code", "undo", folder=workspace, **home)
    assert (kept.returncode, kept.stderr) == (1, "")
    assert kept.stdout.startswith("Nothing of the turn «two» was undone\nKept two: it was changed afterwards\n")
    planned = ferrule("code", "undo", folder=workspace, **home)
    assert planned.stdout.startswith("Would undo the turn «one»: 1 path to remove\n")
    forced = ferrule("code", "undo", "--force", "--yes", folder=workspace, **home)
    assert forced.stdout.startswith("Undid the turn «two»: 1 path removed\n")
