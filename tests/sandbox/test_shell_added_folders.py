"""Folders added to a workspace: commands use them like it, with the same hidden and protected names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.errors import SandboxInputError
from ferrule.sandbox.shell import ShellSandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")
TIERS = pytest.mark.parametrize("tier", ["full", "container"])


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    workspace, added = tmp_path / "ws", tmp_path / "shared"
    for folder in (workspace, added / "sub", added / "other"):
        folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(added)], check=True)
    (added / "file").write_text("there\n")
    (added / "sub/.env").write_text("secret\n")
    return workspace, added


@TIERS
async def test_commands_read_and_write_there(folders: tuple[Path, Path], tier: str) -> None:
    workspace, added = folders
    async with ShellSandbox(workspace, added=[added], tier=tier) as shell:
        command = f"cat {added}/file; echo x >{added}/other/new; echo y >here; cat {added}/sub/.env"
        output = (await shell.run(command)).output
        assert output.startswith("there\n")
        assert "secret" not in output
        assert (added / "other/new").read_text() == "x\n"
        assert (await shell.run("pwd", folder=str(added))).output == f"{added}\n"
        (added / "sub/.env.later").write_text("secret\n")
        assert "secret" not in (await shell.run(f"cat {added}/sub/.env.later")).output


@TIERS
async def test_what_is_protected_there_stays(folders: tuple[Path, Path], tier: str) -> None:
    workspace, added = folders
    async with ShellSandbox(workspace, added=[added], tier=tier) as shell:
        for _ in range(2):
            await shell.run(f"echo x >{added}/.git/hooks/evil; echo x >>{added}/.git/config; mv {added}/.git {added}/x")
            await shell.run(f"mkdir {added}/.vscode && echo x >{added}/.vscode/tasks.json")
    assert not (added / ".git/hooks/evil").exists()
    assert "x" not in (added / ".git/config").read_text().splitlines()
    if tier == "full":
        assert not (added / ".vscode/tasks.json").exists()


async def test_nothing_is_written_there_in_read_only_mode(folders: tuple[Path, Path]) -> None:
    workspace, added = folders
    async with ShellSandbox(workspace, added=[added], mode="read-only") as shell:
        output = (await shell.run(f"cat {added}/file; echo x >{added}/new")).output
    assert output.startswith("there\n")
    assert not (added / "new").exists()


def test_folders_are_validated(folders: tuple[Path, Path]) -> None:
    workspace, added = folders
    with pytest.raises(SandboxInputError, match=r"the added folder .*absent isn't a usable folder"):
        ShellSandbox(workspace, added=[added / "absent"])
    with pytest.raises(SandboxInputError, match="is a list of folders"):
        ShellSandbox(workspace, added=str(added))
    (workspace / "inner").mkdir()
    assert ShellSandbox(workspace, added=[added, added / "sub/..", workspace / "inner"]).added == (added,)
