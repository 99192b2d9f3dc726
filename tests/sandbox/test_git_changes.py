"""What commands can leave in git repositories, and that none of it makes git run anything outside of the sandbox."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ferrule.errors import FileAccessRefused, SandboxInputError
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.access_plan import Access
from ferrule.sandbox.shell.git_settings import is_harmless, parse_settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

PLANTS = tomllib.loads((Path(__file__).parent / "git_plants.toml").read_text())["plant"]
IDENTITY = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "protocol.file.allow=always")
AS_SOMEBODY = "git -c user.name=n -c user.email=n@example.org "


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    other, folder = tmp_path / "other", tmp_path / "repository"
    for each in (other, folder):
        git(tmp_path, "init", "-q", each.name)
        git(each, "commit", "-q", "--allow-empty", "-m", "first")
    git(folder, "submodule", "--quiet", "add", str(other), "part")
    git(folder, "commit", "-q", "-m", "second")
    git(folder, "worktree", "add", "-q", "tree")
    return folder


def read_by_git(folder: Path) -> dict[Path, str]:
    """The files with settings and hooks below a folder, by their content."""
    names = ("config", "config.worktree", "commondir", "attributes", "post-checkout", "post-index-change", ".git")
    names += ("origin", "HEAD")
    found = [path for path in folder.rglob("*") if path.name in names and (path.is_file() or path.is_symlink())]
    return {path: str(path.readlink()) if path.is_symlink() else path.read_text() for path in found}


@pytest.mark.parametrize("plant", PLANTS, ids=[each["name"] for each in PLANTS])
async def test_nothing_is_left_for_git_to_run(repository: Path, plant: dict[str, str]) -> None:
    before = read_by_git(repository)
    async with ShellSandbox(repository) as shell:
        done = await shell.run(plant["command"], writable=[".git"])
        assert plant.get("says", "") in "; ".join(done.repositories), done
        assert bool(done.repositories) is ("says" in plant), done
        committed = await shell.run(f"{AS_SOMEBODY} commit -q --allow-empty -m third && git log -1", writable=[".git"])
        assert "third" in committed.output
        assert committed.repositories == ()
    after = read_by_git(repository)
    assert not [path for path, text in after.items() if "evil" in text]
    changed = [path for path in before if path.name in ("config", "commondir") and before[path] != after.get(path)]
    assert changed == []
    assert "first" in git(repository, "log")
    git(repository, "status")
    git(repository / "part", "status")
    git(repository / "tree", "status")


async def test_a_new_repository_keeps_its_harmless_settings(tmp_path: Path) -> None:
    async with ShellSandbox(tmp_path) as shell:
        plant = (
            "git init -q inner && cd inner && git remote add up 'https://example.org/\"a;b\"' && git config a.b evil"
        )
        done = await shell.run(plant)
        assert done.repositories != ()
        again = await shell.run("true")
        assert again.repositories == ()
    assert git(tmp_path / "inner", "config", "remote.up.url").strip() == 'https://example.org/"a;b"'
    assert "evil" in (tmp_path / "inner/.git/config.refused").read_text()
    assert "evil" not in (tmp_path / "inner/.git/config").read_text()


async def test_a_repository_can_be_created_cloned_and_given_worktrees(tmp_path: Path) -> None:
    async with ShellSandbox(tmp_path) as shell:
        await shell.run("true")  # leaves a placeholder for a while
        for command in (
            f"git init -q && {AS_SOMEBODY} commit -q --allow-empty -m first && git status",
            "git clone -q . copy && git -C copy log",
            "git worktree add -q tree && git -C tree log",
            f"git -C tree checkout -q -b other && cd tree && {AS_SOMEBODY} commit -q --allow-empty -m second",
        ):
            done = await shell.run(command, writable=[".git"])
            assert (done.exit_code, done.repositories) == (0, ()), (command, done.output)
        refused = await shell.run("git config core.fsmonitor evil", writable=[".git"])
        assert "ask the user to make this change" in refused.hint
    assert git(tmp_path, "log", "--format=%s", "other").split() == ["second", "first"]
    assert sorted(each.name for each in tmp_path.iterdir()) == [".git", "copy", "tree"]
    assert not (tmp_path / ".git/commondir").exists()


async def test_a_new_repository_of_the_workspace_is_checked_too(tmp_path: Path) -> None:
    async with ShellSandbox(tmp_path) as shell:
        plant = "git init -q; git config core.fsmonitor evil; mkdir -p .git/hooks; echo evil >.git/hooks/post-checkout"
        done = await shell.run(plant, writable=[".git"])
    assert "config sets core.fsmonitor, post-checkout is a hook" in done.repositories[0]
    assert "evil" not in (tmp_path / ".git/config").read_text()
    assert not (tmp_path / ".git/hooks/post-checkout").exists()


async def test_a_bare_repository_that_was_there_is_named_and_left_alone(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "store")
    git(tmp_path / "store", "config", "core.pager", "wanted")
    async with ShellSandbox(tmp_path) as shell:
        assert (await shell.run("touch store/x")).repositories == ()
        done = await shell.run("git -C store config core.editor evil")
    assert "config sets core.editor" in done.repositories[0]
    assert "core.pager" not in done.repositories[0]
    assert git(tmp_path / "store", "config", "core.editor").strip() == "evil"


async def test_steps_of_a_rebase_are_named(repository: Path) -> None:
    plant = "mkdir .git/rebase-merge; printf 'pick 1\\nexec touch evil\\n' >.git/rebase-merge/git-rebase-todo"
    async with ShellSandbox(repository) as shell:
        done = await shell.run(plant, writable=[".git"])
        assert "makes `git rebase --continue` run 'touch evil'" in done.repositories[0]
        assert (await shell.run("true", writable=[".git"])).repositories == ()


async def test_git_works_outside_while_a_command_may_write_it(repository: Path) -> None:
    """What protects `.git` from a command changes nothing for the user, who uses git at the same time."""
    async with ShellSandbox(repository) as shell:
        running = asyncio.create_task(
            shell.run("while [ ! -e done ]; do sleep 0.05; done; cat .git/commondir", writable=[".git"])
        )
        while not (repository / ".git/commondir").exists():
            await asyncio.sleep(0.02)
        for folder in (repository, repository / "part", repository / "tree"):
            git(folder, "commit", "-q", "--allow-empty", "-m", "by the user")
            assert "by the user" in git(folder, "log", "-1")
            assert git(folder, "rev-parse", "--show-toplevel").strip() == str(folder)
        git(repository, "gc", "-q")
        assert len(git(repository, "worktree", "list").splitlines()) == 2
        (repository / "done").touch()
        assert (await running).output == ".\n"
    assert not (repository / ".git/commondir").exists()


async def test_a_background_command_is_given_no_repository(repository: Path) -> None:
    async with ShellSandbox(repository) as shell:
        with pytest.raises(SandboxInputError, match=r"can't write \.git"):
            await shell.start("true", writable=["./.git/"])


async def test_what_settings_name_is_protected(repository: Path) -> None:
    git(repository, "config", "core.hooksPath", "scripts/hooks")
    git(repository, "config", "include.path", "../shared.gitconfig")
    git(repository, "config", "filter.x.clean", "sh scripts/clean.sh")
    git(repository, "config", "alias.x", "!sh scripts/alias.sh")
    git(repository, "config", "alias.y", "log scripts/free.sh")
    git(repository, "config", "core.sshCommand", "./ssh.sh -v")
    (repository / "scripts").mkdir()
    for name in ("shared.gitconfig", "scripts/clean.sh", "scripts/alias.sh", "scripts/free.sh"):
        (repository / name).write_text("whole\n")
    async with ShellSandbox(repository) as shell:
        tried = (
            "shared.gitconfig",
            "scripts/clean.sh",
            "scripts/alias.sh",
            "scripts/free.sh",
            "scripts/hooks/pre-commit",
        )
        for name in tried:
            await shell.run(f"mkdir -p {name.rpartition('/')[0] or '.'}; echo evil >{name}", writable=[".git"])
        access = FileAccess(repository)
        for name in ("scripts/alias.sh", "ssh.sh", "scripts/hooks/pre-commit"):
            with pytest.raises(FileAccessRefused, match="other programs run"):
                access.check(name, Access.WRITE)
        access.check("scripts/free.sh", Access.WRITE)
        assert (await shell.run("ls; echo made >ssh.sh")).appeared == (str(repository / "ssh.sh"),)
    assert (repository / "shared.gitconfig").read_text() == "whole\n"
    assert (repository / "scripts/clean.sh").read_text() == "whole\n"
    assert (repository / "scripts/alias.sh").read_text() == "whole\n"
    assert (repository / "scripts/free.sh").read_text() == "evil\n"
    assert not (repository / "scripts/hooks/pre-commit").exists()


async def test_a_reading_command_is_not_said_to_have_made_what_others_make(repository: Path) -> None:
    git(repository, "config", "core.sshCommand", "./ssh.sh")
    async with ShellSandbox(repository) as shell:
        line = "echo begun >/tmp/begun; while [ ! -e ssh.sh ]; do sleep 0.05; done"
        running = asyncio.create_task(shell.run(line, mode="read-only"))
        await shell.run("while [ ! -e /tmp/begun ]; do sleep 0.05; done")
        (repository / "ssh.sh").touch()
        assert (await running).appeared == ()


SETTINGS = {
    "[core]\n\tbare = false": True,
    "[core]\n\tfsmonitor": True,
    "[core]\n\tfsmonitor = true": True,
    "[core]\n\tfsmonitor = x": False,
    "[core] hooksPath=x": False,
    "[core]\n\tbare = fa\\\nlse": False,
    '[remote "a\\"b"]\n\turl = ../x': True,
    "[remote.origin]\n\turl = https://example.org": True,
    "[remote.origin]\n\tuploadpack = x": False,
    "[remote]\n\turl = x": False,
    "[color]\n\tui = true # comment": True,
    "\ufeff[core]\n\tbare = true": True,
    "bare = true": False,
    "[core\n]\n": False,
    "[core]\0\n": False,
    "[include]\n\tpath = x": False,
    "[alias]\n\tst = status": False,
    '[submodule "x"]\n\tupdate = !x': False,
    '[submodule "x"]\n\tupdate = none': True,
    "[core]\r\n\tbare = true\r\n": True,
    "[CORE]\n\tFSMonitor = x": False,
}


@pytest.mark.parametrize("text", SETTINGS, ids=map(repr, SETTINGS))
def test_settings(text: str) -> None:
    assert all(is_harmless(each, "/w/.git", "/w") for each in parse_settings(text)) is SETTINGS[text]
