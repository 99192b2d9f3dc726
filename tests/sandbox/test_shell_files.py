"""What a command may see and change: modes, protected places, what was given, hidden places, and the bounded search."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from ferrule.errors import SandboxInputError, SandboxUnavailable
from ferrule.sandbox.hidden_paths import ProtectedNames
from ferrule.sandbox.shell import HIDDEN, ShellSandbox
from ferrule.sandbox.shell.workspace_scan import WorkspaceScan

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


PLANTS = {
    "hooks that weren't there": "mkdir .git/hooks; echo x >.git/hooks/evil",
    "another repository": "cp -r .git .evil; echo x >.evil/evil; echo ../.evil >.git/commondir",
    "a submodule's hook": "mkdir -p .git/modules/a/b/hooks; echo x >.git/modules/a/b/hooks/evil",
    "a submodule's settings": "git config -f .git/modules/a/b/config core.fsmonitor evil",
    "a submodule's own submodule": "git config -f .git/modules/a/b/modules/c/config core.fsmonitor evil",
    "another submodule instead": "mv .git/modules .git/a; mkdir -p .git/modules/a; mv .git/a .git/modules/evil",
    "another repository of a worktree": "echo /evil >.git/worktrees/tree/commondir",
    "a worktree's settings": "git config -f .git/worktrees/tree/config.worktree core.fsmonitor evil",
}


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
async def test_a_command_that_was_given_git_gives_it_nothing_else_to_run(repository: Path, plant: str) -> None:
    git = repository / ".git"
    shutil.rmtree(git / "hooks", ignore_errors=True)
    for place in (
        "modules/a/b/HEAD",
        "modules/a/b/config",
        "modules/a/b/modules/c/HEAD",
        "modules/a/b/modules/c/config",
    ):
        (git / place).parent.mkdir(parents=True, exist_ok=True)
        (git / place).touch()
    (git / "modules/a/b/hooks").mkdir()
    (git / "worktrees/tree").mkdir(parents=True)
    (git / "worktrees/tree/commondir").write_text("../..\n")
    (git / "worktrees/tree/config.worktree").touch()
    assert "made" in await said(repository, f"{COMMIT} made && git log --oneline; {plant}", writable=[".git"])
    assert not (git / "commondir").exists()
    assert not list(git.rglob("evil"))
    read = [path.read_bytes() for path in git.rglob("*") if path.is_file()]
    assert not any(b"evil" in each for each in read)


async def test_a_command_that_was_given_nothing_can_not_commit(repository: Path) -> None:
    assert "made" not in await said(repository, f"{COMMIT} made; git log --oneline")


@pytest.mark.parametrize("name", ["inner", "../outside", "/etc", ".gitx", ""])
async def test_only_protected_places_are_given(repository: Path, name: str) -> None:
    with pytest.raises(SandboxInputError, match="isn't a protected path"):
        await said(repository, "true", writable=[name])


async def test_read_only_gives_nothing(repository: Path) -> None:
    with pytest.raises(SandboxInputError, match="read-only"):
        await said(repository, "true", mode="read-only", writable=[".git"])


async def test_a_repository_can_not_be_made_where_there_is_none(workspace: Path) -> None:
    await said(
        workspace, "git init; mkdir -p .git; echo evil >.git/config; mv .git inner/g; rmdir .git; mkdir .ferrule/x"
    )
    assert sorted(each.name for each in workspace.iterdir()) == ["inner"]


async def test_a_protected_place_can_not_be_made_or_is_named(workspace: Path) -> None:
    """In the container tier nothing keeps one from being made, where the folder holds nothing else to be protected."""
    make = "echo evil >ferrule.toml; mkdir -p .vscode; echo evil >.vscode/tasks.json; ls -A"
    async with ShellSandbox(workspace) as shell:
        done = await shell.run(make)
        assert done.appeared == (str(workspace / "ferrule.toml"),)
        assert (await shell.run("echo more >>ferrule.toml")).appeared == ()
    assert not (workspace / ".vscode").exists()
    assert (workspace / "ferrule.toml").read_text() == "evil\n"
    (workspace / "ferrule.toml").unlink()
    async with ShellSandbox(workspace, tier="container") as shell:
        done = await shell.run(make)
        assert done.appeared == (str(workspace / "ferrule.toml"), str(workspace / ".vscode"))
        assert (await shell.run("echo more >>ferrule.toml; echo more >>.vscode/tasks.json")).appeared == ()
    assert (workspace / "ferrule.toml").read_text() == "evil\n"
    assert (workspace / ".vscode/tasks.json").read_text() == "evil\n"
    async with ShellSandbox(workspace / "inner", tier="container") as shell:
        done = await shell.run("git init")
        assert done.appeared == (str(workspace / "inner/.git"),)


@TIERS
async def test_nested_repositories_and_submodules(repository: Path, tier: str) -> None:
    subprocess.run(["git", "init", "-q", str(repository / "inner/deep")], check=True)
    (repository / "inner/module").mkdir()
    (repository / "inner/module/.git").write_text("gitdir: ../../stored\n")
    (repository / "stored").mkdir()
    (repository / "stored/HEAD").write_text("ref: refs/heads/main\n")
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


async def test_a_submodule_can_be_given_its_repository_and_no_other(tmp_path: Path) -> None:
    main, other = tmp_path / "main", tmp_path / "other"
    for each in (main, other):
        subprocess.run(f"git init -q {each} && cd {each} && {COMMIT} first", shell=True, check=True)
    add = f"git -c protocol.file.allow=always submodule --quiet add {other} part"
    subprocess.run(add, shell=True, cwd=main, check=True)
    part = main / "part"
    plant = "echo x >../.git/hooks/evil; echo x >../.git/modules/part/hooks/evil; git config core.fsmonitor evil"
    assert "made" in await said(part, f"{COMMIT} made && git log --oneline; {plant}", writable=[".git"])
    assert not list(main.rglob("evil"))
    assert "evil" not in (main / ".git/modules/part/config").read_text()
    (part / ".git").write_text("gitdir: ../.git\n")
    with pytest.raises(SandboxUnavailable, match="doesn't name it as its worktree"):
        await said(part, "true", writable=[".git"])


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


@TIERS
async def test_where_there_are_too_many_folders_those_that_hold_most_are_hidden(workspace: Path, tier: str) -> None:
    for number in range(30):
        (workspace / f"inner/{number}").mkdir()
    for name in ("small", "inner/29"):
        (workspace / name).mkdir(exist_ok=True)
        (workspace / name / ".env").write_text("secret")
        (workspace / name / "file").write_text("shown")
    async with ShellSandbox(workspace, tier=tier, scan_limit=20) as shell:
        done = await shell.run(
            "cat small/* small/.env; cat inner/29/.env inner/29/file; echo x >small/new; cat small/new"
        )
    assert done.unsearched == (str(workspace / "inner"),)
    assert done.output.count("shown") == 1
    assert "secret" not in done.output
    assert done.output.endswith("x\n") or tier == "container"  # where nothing is made beside a secret
    async with ShellSandbox(workspace, tier=tier, scan_limit=40) as shell:
        assert (await shell.run("cat inner/29/file")).output == "shown"


@TIERS
async def test_what_goes_while_a_command_is_started_keeps_it_from_nothing(workspace: Path, tier: str) -> None:
    """A secret that the user's own program makes anew each time."""
    is_over = threading.Event()

    def renew() -> None:
        while not is_over.is_set():
            (workspace / "inner/.env").write_text("secret")
            time.sleep(0.01)
            (workspace / "inner/.env").unlink()
            time.sleep(0.02)

    async with ShellSandbox(workspace, tier=tier) as shell:
        renewing = threading.Thread(target=renew)
        renewing.start()
        try:
            for _ in range(25):
                assert (await shell.run("echo ran")).output == "ran\n"
        finally:
            is_over.set()
            renewing.join()


@TIERS
async def test_more_secrets_at_the_top_than_can_be_covered_are_told(workspace: Path, tier: str) -> None:
    async with ShellSandbox(workspace, tier=tier) as shell:
        await shell.run("i=0; while [ $i -lt 20001 ]; do : >.env$i; i=$((i+1)); done")
        with pytest.raises(
            SandboxUnavailable, match=r"hidden names \(such as .*\.env\d+\) are directly in the workspace"
        ):
            await shell.run("true")
        (workspace / "secrets").mkdir()
        for file in workspace.glob(".env?*"):
            file.rename(workspace / "secrets" / file.name)
        assert (await shell.run("echo ran")).output == "ran\n"


def test_a_second_walk_reads_only_what_changed(workspace: Path) -> None:
    import re

    scan = WorkspaceScan(str(workspace), re.compile(r"\.env.*"), ProtectedNames.of([".git"]), 1000)
    for number in range(20):
        (workspace / f"inner/{number}").mkdir()
    time.sleep(0.05)
    assert scan.walk().hidden == ()
    (workspace / "inner/7/.env").touch()
    (workspace / "inner/8/.git").mkdir()
    assert scan.walk() == scan.walk()
    assert scan.walk().hidden == (str(workspace / "inner/7/.env"),)
    assert scan.walk().protected == (str(workspace / "inner/8/.git"),)
    (workspace / "inner/7/.env").unlink()
    assert scan.walk().hidden == ()


async def test_the_sandbox_s_own_folder_is_nobody_else_s(workspace: Path) -> None:
    async with ShellSandbox(workspace) as shell:
        state = Path(shell._running._state)
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        shown = (await shell.run(f"ls {state} {state}/spilled; echo x >{state}/file")).output
        assert "spilled" not in shown.replace(f"{state}/spilled", "")
        assert not (state / "file").exists()
