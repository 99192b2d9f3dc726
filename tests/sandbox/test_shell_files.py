"""What a command may see and change: modes, protected places, what was given, hidden places, and the bounded search."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.shell import HIDDEN, ShellSandbox
from ferrule.sandbox.shell.scan import WorkspaceScan

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

TIERS = pytest.mark.parametrize("tier", ["full", "container"])
COMMIT = "git -c user.name=n -c user.email=e@example.org commit --allow-empty -qm"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "inner").mkdir(parents=True)
    return folder


@pytest.fixture
def repository(workspace: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    return workspace


async def said(workspace: Path, command: str, **settings: object) -> str:
    writable = settings.pop("writable", ())
    async with ShellSandbox(workspace, **settings) as shell:
        return (await shell.run(command, writable=writable)).output


@TIERS
async def test_read_only_writes_its_temporary_folder_alone(workspace: Path, tier: str) -> None:
    command = "echo x >inner/file; echo y >$TMPDIR/file; cat $TMPDIR/file"
    assert "y\n" in await said(workspace, command, mode="read-only", tier=tier)
    assert list((workspace / "inner").iterdir()) == []


@TIERS
async def test_workspace_write_writes_the_workspace(workspace: Path, tier: str) -> None:
    await said(workspace, "echo x >file; mkdir new; echo y >new/file; mv file inner/; ln -s file inner/link", tier=tier)
    assert (workspace / "inner/link").read_text() == "x\n"
    assert (workspace / "new/file").read_text() == "y\n"


@TIERS
async def test_full_writes_outside_and_still_protects_and_hides(repository: Path, tmp_path: Path, tier: str) -> None:
    (repository / ".env").write_text("secret")
    (tmp_path / "outside").mkdir()
    command = f"echo x >{tmp_path}/outside/file; echo x >.git/hooks/evil; cat .env"
    assert "secret" not in await said(repository, command, mode="full", tier=tier)
    assert (tmp_path / "outside/file").read_text() == "x\n"
    assert not (repository / ".git/hooks/evil").exists()


@TIERS
async def test_what_is_shown_stays_as_writable_as_it_was(workspace: Path, tmp_path: Path, tier: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    shown = [outside, workspace / "inner"]
    for mode, is_written in (("full", True), ("workspace-write", False)):
        await said(workspace, f"touch {outside}/{mode} inner/{mode}", mode=mode, readable=shown, tier=tier)
        assert (outside / mode).exists() is is_written
        assert (workspace / "inner" / mode).exists()


@TIERS
async def test_git_reads_in_a_protected_repository(repository: Path, tier: str) -> None:
    readable = [os.path.realpath("/usr/bin")]
    assert "No commits yet" in await said(repository, "git status", tier=tier, readable=readable)


async def test_a_command_that_was_given_git_commits_and_plants_no_hook(repository: Path) -> None:
    command = f"{COMMIT} made && git log --oneline; echo x >.git/hooks/post-checkout; git config core.fsmonitor evil"
    assert "made" in await said(repository, command, writable=[".git"])
    assert not (repository / ".git/hooks/post-checkout").exists()
    assert "evil" not in (repository / ".git/config").read_text()
    await said(repository, "git config core.fsmonitor asked-for", writable=[".git", ".git/config"])
    # Git renames a new file over the old one, which a mount keeps it from; the file itself can be written.
    await said(repository, "printf '[a]\\n\\tb = asked-for\\n' >>.git/config", writable=[".git/config"])
    assert "asked-for" in (repository / ".git/config").read_text()


async def test_a_command_that_was_given_nothing_can_not_commit(repository: Path) -> None:
    assert "made" not in await said(repository, f"{COMMIT} made; git log --oneline")


@pytest.mark.parametrize("name", ["inner", "../outside", "/etc", ".gitx", ""])
async def test_only_protected_places_are_given(repository: Path, name: str) -> None:
    with pytest.raises(SandboxInputError, match="isn't a protected place"):
        await said(repository, "true", writable=[name])


async def test_read_only_gives_nothing(repository: Path) -> None:
    with pytest.raises(SandboxInputError, match="read-only"):
        await said(repository, "true", mode="read-only", writable=[".git"])


async def test_a_repository_can_not_be_made_where_there_is_none(workspace: Path) -> None:
    await said(
        workspace, "git init; mkdir -p .git; echo evil >.git/config; mv .git inner/g; rmdir .git; mkdir .ferrule/x"
    )
    assert sorted(each.name for each in workspace.iterdir()) == ["inner"]


async def test_protected_files_that_appear_are_named(workspace: Path) -> None:
    async with ShellSandbox(workspace) as shell:
        done = await shell.run("echo evil >ferrule.toml")
        assert done.appeared == (str(workspace / "ferrule.toml"),)
        assert (await shell.run("echo more >>ferrule.toml")).appeared == ()
    assert (workspace / "ferrule.toml").read_text() == "evil\n"
    async with ShellSandbox(workspace / "inner", tier="container") as shell:
        done = await shell.run("git init")
        assert done.appeared == (str(workspace / "inner/.git"),)


@TIERS
async def test_nested_repositories_and_submodules(repository: Path, tier: str) -> None:
    subprocess.run(["git", "init", "-q", str(repository / "inner/deep")], check=True)
    (repository / "inner/module").mkdir()
    (repository / "inner/module/.git").write_text("gitdir: ../../stored\n")
    (repository / "stored").mkdir()
    command = (
        "echo x >inner/deep/.git/hooks/evil; echo x >inner/module/.git; echo x >stored/config; echo x >inner/deep/file"
    )
    await said(repository, command, tier=tier)
    assert not (repository / "inner/deep/.git/hooks/evil").exists()
    assert (repository / "inner/module/.git").read_text() == "gitdir: ../../stored\n"
    assert not (repository / "stored/config").exists()


async def test_a_worktree_can_be_given_its_repository_and_no_other(tmp_path: Path) -> None:
    main, tree, victim = tmp_path / "main", tmp_path / "tree", tmp_path / "victim"
    for each in (main, victim):
        subprocess.run(["git", "init", "-q", str(each)], check=True)
    subprocess.run(f"{COMMIT} first && git worktree add -q {tree}", shell=True, cwd=main, check=True)
    await said(tree, "echo x >.git; rm -f .git")
    assert (tree / ".git").read_text().startswith("gitdir: ")
    assert "made" not in await said(tree, f"{COMMIT} made; git log --oneline", readable=[main])
    assert "made" in await said(tree, f"{COMMIT} made && git log --oneline", writable=[".git"])
    assert not (main / ".git/hooks/evil").exists()
    (tree / ".git").write_text(f"gitdir: {victim}/.git\n")
    with pytest.raises(SandboxUnavailable, match="doesn't name it as its worktree"):
        await said(tree, "true", writable=[".git"])


@TIERS
async def test_a_link_in_place_of_git_is_refused(workspace: Path, tier: str) -> None:
    (workspace / ".git").symlink_to("inner")
    with pytest.raises(SandboxUnavailable, match="symbolic link"):
        await said(workspace, "true", tier=tier)
    assert await said(workspace, "echo ran", tier=tier, protected=()) == "ran\n"
    assert await said(workspace, "echo ran", tier=tier, mode="read-only") == "ran\n"


@TIERS
async def test_lists_can_be_changed(workspace: Path, tier: str) -> None:
    (workspace / ".env").write_text("settings\n")
    (workspace / "inner/private").write_text("private\n")
    shown = await said(workspace, "cat .env inner/private", tier=tier, hidden=[*HIDDEN, "inner/private"])
    assert "settings" not in shown
    assert "private\n" not in shown.replace("inner/private", "")
    shown = await said(workspace, "cat .env inner/private", tier=tier, hidden=["*.secret"])
    assert shown == "settings\nprivate\n"


@TIERS
async def test_what_is_no_secret_is_shown(workspace: Path, tier: str) -> None:
    (workspace / "bundle.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (workspace / ".envs").mkdir()
    (workspace / ".envs/pyvenv.cfg").write_text("home = /usr\n")
    shown = await said(workspace, "cat bundle.pem .envs/pyvenv.cfg", tier=tier)
    assert "CERTIFICATE" in shown
    assert "home" in shown


@TIERS
async def test_a_secret_that_appears_between_two_commands(workspace: Path, tier: str) -> None:
    async with ShellSandbox(workspace, tier=tier) as shell:
        for number in range(5):
            (workspace / f"inner/.env.{number}").write_text("secret")
            assert "secret" not in (await shell.run("cat inner/.env.*")).output


@TIERS
async def test_links_that_a_command_made_hide_nothing_of_the_system(workspace: Path, tier: str) -> None:
    async with ShellSandbox(workspace, tier=tier) as shell:
        await shell.run(
            "ln -s /bin/sh .env; ln -s / .env.1; ln -s . inner/.env; ln -s /usr inner/.env2; mkfifo pipe.pem"
        )
        assert (await shell.run("echo still; ls inner >/dev/null && echo there")).output == "still\nthere\n"


async def test_a_workspace_in_a_hidden_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    workspace = tmp_path / ".config/editor"
    workspace.mkdir(parents=True)
    (tmp_path / ".config/token").write_text("secret")
    for tier in ("full", "container"):
        shown = await said(workspace, "echo x >file; cat ../token; cat file", tier=tier, readable=[tmp_path])
        assert "secret" not in shown
        assert shown.endswith("x\n")
    with pytest.raises(SandboxInputError, match="hidden"):
        await said(tmp_path / ".config", "true")


async def test_protected_places_lie_in_the_workspace(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = tmp_path / "folders"
    folders.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folders))
    for wrong in ("../outside", "/etc", ".", ""):
        with pytest.raises(SandboxInputError, match="within the workspace"):
            await said(workspace, "true", protected=[wrong])
    assert list(folders.iterdir()) == []
    await said(workspace, "mkdir -p inner/a/b; touch inner/a/b/file", protected=["inner/a/b", "inner/settings"])
    assert not (workspace / "inner/settings").exists()


async def test_devices_and_settings_of_the_kernel(workspace: Path) -> None:
    shown = await said(
        workspace, "ls /dev; echo x >/dev/file; echo x >/dev/null && echo fine; ls /sys /run; ls /proc/1/cwd"
    )
    assert "fine" in shown
    assert not {"kmsg", "mem", "vda", "sda", "kvm", "fuse", "net"} & set(shown.split())
    arguments = await said(workspace, "tr '\\0' ' ' </proc/1/cmdline")
    assert "shadow" not in arguments


async def test_too_many_folders_are_refused(workspace: Path) -> None:
    for number in range(30):
        (workspace / f"inner/{number}").mkdir()
    with pytest.raises(SandboxUnavailable, match="scan_limit"):
        await said(workspace, "true", scan_limit=20)
    assert await said(workspace, "echo ran", scan_limit=40) == "ran\n"


def test_a_second_walk_reads_only_what_changed(workspace: Path) -> None:
    import re

    scan = WorkspaceScan(str(workspace), re.compile(r"\.env.*"), 1000)
    for number in range(20):
        (workspace / f"inner/{number}").mkdir()
    time.sleep(0.05)
    assert scan.walk().hidden == ()
    (workspace / "inner/7/.env").touch()
    (workspace / "inner/8/.git").mkdir()
    assert scan.walk() == scan.walk()
    assert scan.walk().hidden == (str(workspace / "inner/7/.env"),)
    assert scan.walk().repositories == (str(workspace / "inner/8/.git"),)
    (workspace / "inner/7/.env").unlink()
    assert scan.walk().hidden == ()


async def test_the_sandbox_s_own_folder_is_nobody_else_s(workspace: Path) -> None:
    async with ShellSandbox(workspace) as shell:
        state = Path(shell._running._state)
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        shown = (await shell.run(f"ls {state} {state}/spilled; echo x >{state}/file")).output
        assert "spilled" not in shown.replace(f"{state}/spilled", "")
        assert not (state / "file").exists()
