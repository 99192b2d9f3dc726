"""Hidden files that the user shows: every tool, `@file`, search, commands and checkpoints go by the same setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule import Policy
from ferrule.coding import tools
from ferrule.coding.attached_files import attach_files
from ferrule.coding.checkpoints import Checkpoints
from ferrule.coding.workspace import Workspace
from ferrule.errors import SettingsError
from ferrule.execution.executor import call_tool

ALL = Policy(profile="all")


@pytest.mark.parametrize("visible", [(), (".env",)])
async def test_all_tools_obey_alike(tmp_path: Path, visible: tuple[str, ...]) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / ".env").write_text("TOKEN=1\n")
    (folder / ".env.local").write_text("TOKEN=2\n")
    async with Workspace(folder, visible=visible) as used:
        checkpoints = Checkpoints(folder, tmp_path / "store", used.access)
        used.checkpoints = checkpoints
        registry = tools(used)
        calls = (
            ("read_file", {"path": ".env"}),
            ("search", {"pattern": "TOKEN"}),
            ("bash", {"command": "cat .env .env.local"}),
        )
        for name, arguments in calls:
            result = await call_tool(registry, arguments, name=name, policy=ALL)
            assert ("TOKEN=1" in result.text) is bool(visible), name
            assert "TOKEN=2" not in result.text
        if visible:
            assert any("TOKEN=1" in str(each) for each in attach_files("see @.env", used))
        else:
            with pytest.raises(SettingsError, match="hidden"):
                attach_files("see @.env", used)
        checkpoints.begin_turn("write")
        edits = [{"old": "TOKEN=1", "new": "TOKEN=3"}]
        result = await call_tool(registry, {"path": ".env", "edits": edits}, name="edit_file", policy=ALL)
        assert result.is_error is not bool(visible)
        await checkpoints.end_turn()
        if visible:
            assert "TOKEN=3" in (folder / ".env").read_text()
            await checkpoints.undo()
        assert (folder / ".env").read_text() == "TOKEN=1\n"
        await checkpoints.aclose()
