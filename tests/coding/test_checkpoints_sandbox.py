"""Checkpoints together with the tools that they are for: commands in the shell sandbox, and file tools."""

import os
from pathlib import Path

import pytest
from checkpoint_trees import read_tree

from ferrule import Policy
from ferrule.coding import tools
from ferrule.coding.checkpoints import Checkpoints
from ferrule.coding.workspace import Workspace
from ferrule.execution.executor import call_tool

ALL = Policy(profile="all")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.py").write_text("one = 1\n")
    (folder / ".env").write_text("SECRET=1")
    return folder


async def test_tools_are_undone_turn_by_turn(workspace: Path, tmp_path: Path) -> None:
    states = [read_tree(workspace)]
    checkpoints = Checkpoints(workspace, tmp_path / "store")
    async with Workspace(workspace, checkpoints=checkpoints) as used:
        registry = tools(used)
        calls = [
            ("write_file", {"path": "new/b.py", "content": "two = 2\n"}),
            ("bash", {"command": "mv new/b.py c.py; rmdir new; chmod 600 a.py; mkfifo pipe"}),
            ("read_file", {"path": "a.py"}),
            ("edit_file", {"path": "a.py", "edits": [{"old": "one", "new": "three"}]}),
            ("bash", {"command": "rm -rf *; ls -a"}),
        ]
        for name, arguments in calls:
            checkpoints.begin_turn(name)
            result = await call_tool(registry, arguments, name=name, policy=ALL)
            assert result.status == "ok", result.text
            await checkpoints.end_turn()
        # What the sandbox creates around a command for itself isn't part of any turn.
        assert [turn.files for turn in await checkpoints.list_turns()] == [2, 5, 1, 3]
        for _ in range(4):
            report = await checkpoints.undo()
        assert report.is_complete, report
    assert read_tree(workspace) == states[0]
    await checkpoints.aclose()
    assert checkpoints.take_announcements() == []


async def test_a_command_that_only_reads_needs_no_checkpoint(workspace: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(workspace, tmp_path / "store")
    async with Workspace(workspace, checkpoints=checkpoints) as used:
        await call_tool(tools(used), {"command": "cat a.py"}, name="bash", policy=ALL)
    assert not (tmp_path / "store").exists()
    await checkpoints.aclose()


async def test_a_command_sees_no_store(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(workspace / "data"))
    checkpoints = Checkpoints(workspace)
    async with Workspace(workspace, checkpoints=checkpoints) as used:
        registry = tools(used)
        checkpoints.begin_turn()
        await call_tool(registry, {"command": "touch x"}, name="bash", policy=ALL)
        assert os.listdir(checkpoints.store / "turns")  # noqa: PTH208
        result = await call_tool(registry, {"command": "ls -R data; rm -rf data"}, name="bash", policy=ALL)
        assert "turns" not in result.text
        result = await call_tool(registry, {"path": "data/ferrule/checkpoints"}, name="read_file", policy=ALL)
        assert "hidden" in result.text
        assert (await checkpoints.undo()).is_complete
    assert sorted(path.name for path in workspace.iterdir()) == [".env", "a.py", "data"]
    await checkpoints.aclose()
