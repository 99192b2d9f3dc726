"""Folders added to a workspace: commands and file tools use them by the same rules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from called_tools import call_tool

from ferrule.coding import tools
from ferrule.coding.workspace import Workspace
from ferrule.execution import Policy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")


async def test_what_is_hidden_and_protected_there_is_so_for_commands_too(tmp_path: Path) -> None:
    for name in ("project", "added/.git/hooks", "other"):
        (tmp_path / name).mkdir(parents=True)
    added = tmp_path / "added"
    (added / ".env").write_text("TOKEN=secret\n")
    (added / "notes.txt").write_text("seen\n")
    async with Workspace(tmp_path / "project", added=[added]) as workspace:
        own = list(tools(workspace).tools)

        async def run(command: str) -> str:
            return (await call_tool(own, "bash", policy=Policy(profile="all"), command=command)).text

        assert await run(f"cat {added}/notes.txt") == "seen"
        assert "TOKEN" not in await run(f"cat {added}/.env")
        assert (await call_tool(own, "read_file", path=str(added / ".env"))).is_error
        assert await run(f"echo more > {added}/new.txt && cat {added}/new.txt") == "more"
        await run(f"echo x > {added}/.git/hooks/pre-commit; echo x > {tmp_path}/other/file")
        assert not (added / ".git" / "hooks" / "pre-commit").exists()
        assert not (tmp_path / "other" / "file").exists()
