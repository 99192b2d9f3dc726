"""What is hidden or protected can't be brought to where a later command isn't kept from it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ferrule.sandbox.shell import ShellSandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

TIERS = pytest.mark.parametrize("tier", ["full", "container"])
SECRET = "only-for-its-owner"
# A folder is exchanged with another in one system call, which no shell has a command for.
EXCHANGE = """python3 -c "import ctypes; ctypes.CDLL(None).renameat2(-100, b'app', -100, b'node_modules', 2)" """


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a secret two folders down."""
    folder = tmp_path / "workspace"
    (folder / "app/settings").mkdir(parents=True)
    (folder / "app/settings/.env").write_text(SECRET)
    return folder


async def commands(workspace: Path, *lines: str, **settings: str) -> list[str]:
    """What each line prints in one sandbox, and the last in another one as well."""
    async with ShellSandbox(workspace, **settings) as shell:
        said = [(await shell.run(line)).output for line in lines]
    async with ShellSandbox(workspace, **settings) as shell:
        return [*said, (await shell.run(lines[-1])).output]


@TIERS
@pytest.mark.parametrize(
    "move",
    [
        "mv app node_modules",
        "mv app/settings node_modules",
        "mkdir node_modules; mv app node_modules/",
        "mkdir node_modules; mv app/settings node_modules/",
        "mkdir -p inner/.git; mv app inner/.git/",
        "mkdir node_modules; " + EXCHANGE,
        "cp -rl app node_modules",
        "ln app/settings/.env seen",
        "mv app/settings/.env seen",
    ],
)
async def test_a_secret_is_hidden_wherever_its_folder_was_to_go(workspace: Path, move: str, tier: str) -> None:
    said = await commands(workspace, move, "find . -name .env -exec cat {} +; cat seen", tier=tier)
    assert SECRET not in "".join(said)
    assert (workspace / "app/settings/.env").read_text() == SECRET


async def test_what_lies_beside_a_secret_can_be_changed_and_moved(workspace: Path) -> None:
    """But for the container tier, where nothing new can be made in such a folder."""
    (workspace / "app/code").mkdir()
    moves = "mv app/code app/settings/code; echo x >app/settings/new; mv app/settings/new . ; mv app/settings/code ."
    said = await commands(workspace, moves, "ls; cat new", tier="full")
    assert said == ["", "app\ncode\nnew\nx\n", "app\ncode\nnew\nx\n"]


async def test_a_repository_s_hooks_are_protected_wherever_its_folder_was_to_go(workspace: Path) -> None:
    (workspace / "app/.git/hooks").mkdir(parents=True)
    plant = "mv app node_modules; echo x >app/.git/hooks/pre-commit; echo x >node_modules/.git/hooks/pre-commit"
    await commands(workspace, plant, plant)
    assert not list(workspace.rglob("pre-commit"))


@TIERS
@pytest.mark.parametrize("mode", ["000", "600", "100", "300"])
async def test_what_lies_in_a_folder_that_was_shut_is_kept_from_whoever_opens_it(
    workspace: Path, mode: str, tier: str
) -> None:
    """In the same sandbox and in another one, which finds the folder as the command left it."""
    (workspace / "app/.git/hooks").mkdir(parents=True)
    shut = f"chmod {mode} app/settings; chmod {mode} app"
    plant = "chmod 755 app; chmod 755 app/settings; cat app/settings/.env; echo x >app/.git/hooks/pre-commit"
    said = await commands(workspace, shut, plant, tier=tier)
    for folder in (workspace / "app", workspace / "app/settings"):
        folder.chmod(0o755)
    assert SECRET not in "".join(said)
    assert not list(workspace.rglob("pre-commit"))


@TIERS
async def test_what_a_link_led_to_stays_hidden_without_the_link(workspace: Path, tier: str) -> None:
    (workspace / "kept").mkdir()
    (workspace / "kept/production").write_text(SECRET)
    (workspace / ".env").symlink_to("kept/production")
    async with ShellSandbox(workspace, tier=tier) as shell:
        await shell.run("rm -f .env")
        done = await shell.run("cat kept/production")
    assert SECRET not in done.output


async def test_in_full_mode_a_home_can_not_be_moved(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = workspace.parent / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/key").write_text(SECRET)
    monkeypatch.setenv("HOME", str(home))
    said = await commands(workspace, f"mv {home} {home}2", f"cat {home}*/.ssh/key", mode="full")
    assert SECRET not in "".join(said)
    assert "busy" in said[0]
