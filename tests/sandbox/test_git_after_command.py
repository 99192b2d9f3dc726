"""What commands can leave in git repositories, and that none of it makes git run anything outside of the sandbox."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ferrule.errors import FileAccessRefused, SandboxInputError
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.git.control_files import find_named_paths
from ferrule.sandbox.git.settings import is_harmless, parse_settings
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.access_plan import Access
from tables import each_case

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

PLANTS = tomllib.loads((Path(__file__).parent / "git_plants.toml").read_text())["plant"]
STEPS = tomllib.loads((Path(__file__).parent / "git_plant_steps.toml").read_text())["plant"]
BARE = tomllib.loads((Path(__file__).parent / "git_bare_plants.toml").read_text())["plant"]
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
    names: tuple[str, ...] = (
        "config",
        "config.worktree",
        "commondir",
        "attributes",
        "post-checkout",
        "post-index-change",
        "post-receive",
        ".git",
    )
    names += ("origin", "HEAD", "git-rebase-todo")
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


@pytest.mark.parametrize("plant", STEPS, ids=[each["name"] for each in STEPS])
async def test_nothing_is_left_in_steps_for_git_to_run(tmp_path: Path, plant: dict[str, Any]) -> None:
    said = ""
    async with ShellSandbox(tmp_path, tier="full") as shell:
        for step in plant["steps"]:
            said += "; ".join((await shell.run(step, writable=plant.get("writable", ()))).repositories)
        assert plant["says"] in said
    git(tmp_path / plant["folder"], plant.get("use", "status"))
    assert not (tmp_path / "evil").exists()
    assert not [path for path, text in read_by_git(tmp_path).items() if "evil" in text]


@pytest.mark.parametrize("plant", BARE, ids=[each["name"] for each in BARE])
async def test_nothing_is_left_in_a_bare_repository_that_has_a_working_tree(
    tmp_path: Path, plant: dict[str, Any]
) -> None:
    workspace = tmp_path / "workspace"
    git(tmp_path, "init", "-q", "made")
    git(tmp_path / "made", "commit", "-q", "--allow-empty", "-m", "first")
    git(tmp_path, "clone", "-q", "--bare", "made", "workspace/store")
    (workspace / "file").touch()
    for line in plant.get("prepare", ()):
        git(workspace, *shlex.split(line))
    said = ""
    async with ShellSandbox(workspace) as shell:
        for step in plant["steps"]:
            said += "; ".join((await shell.run(step)).repositories)
        assert plant["says"] in said
        assert (await shell.run("true")).repositories == ()
    assert not [path for path, text in read_by_git(workspace).items() if "evil" in text]
    git(workspace / plant.get("folder", "store"), *plant.get("use", "status").split())


async def test_what_the_user_has_in_a_bare_repository_is_moved_if_it_gets_a_working_tree(tmp_path: Path) -> None:
    """What the user has in it stays as long as it has no working tree; with one it is moved, and named."""
    git(tmp_path, "init", "-q", "--bare", "store")
    git(tmp_path / "store", "config", "core.pager", "wanted")
    (tmp_path / "store/hooks/post-receive").write_text("wanted")
    async with ShellSandbox(tmp_path) as shell:
        assert (await shell.run("git -C store config remote.x.url ../x")).repositories == ()
        (named,) = (await shell.run("git -C store config core.bare false")).repositories
        assert "since the command gave that bare repository a working tree (config sets core.pager, post-rec" in named
        assert (await shell.run("git -C store config core.bare true")).repositories == ()
    assert (tmp_path / "store/hooks/post-receive.refused").read_text() == "wanted"
    assert git(tmp_path / "store", "config", "-f", "config.refused", "core.pager") == "wanted\n"
    assert git(tmp_path / "store", "config", "remote.x.url") == "../x\n"


async def test_a_folder_that_holds_too_many_to_be_searched_is_named(tmp_path: Path) -> None:
    async with ShellSandbox(tmp_path, tier="full", scan_limit=20) as shell:
        done = await shell.run("for each in 1 2 3 4 5 6 7; do mkdir -p large/$each/a large/$each/b large/$each/c; done")
        assert "large holds too many folders to be searched for what the command left there" in done.repositories[0]


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


async def test_a_bare_repository_keeps_the_settings_that_it_had(tmp_path: Path) -> None:
    store = tmp_path / "store"
    git(tmp_path, "init", "-q", "--bare", "store")
    for name in ("core.pager", "filter.x.clean", "includeIf.never.path"):
        git(store, "config", name, "wanted")
    (store / "config").chmod(0o600)
    async with ShellSandbox(tmp_path) as shell:
        harmless = "touch store/x; git -C store remote add up ../up; git -C store config core.pager wanted"
        assert (await shell.run(harmless)).repositories == ()
        changed = (
            "git -C store config core.editor evil; git -C store config filter.y.clean wanted; git -C store config x.y z"
        )
        done = await shell.run(changed)
        assert (
            "config sets core.editor, config sets filter.*.clean, config sets x.y): moved to store/config.refused,"
            in (done.repositories[0])
        )
        assert len(done.repositories) == 1
        assert (await shell.run("true")).repositories == ()
        assert len((await shell.run("git -C store config core.pager evil")).repositories) == 1
    assert (store / "config").stat().st_mode & 0o777 == 0o600
    kept = git(store, "config", "--local", "--list").split()
    assert "includeif.never.path=wanted" in kept
    assert "filter.x.clean=wanted" in kept
    assert "remote.up.url=../up" in kept
    assert not [each for each in kept if each.startswith(("core.editor", "filter.y", "x.y", "core.pager"))]
    assert "core.pager=evil" in git(store, "config", "-f", "config.2.refused", "--list")
    assert sorted(each.name for each in store.glob("config*")) == ["config", "config.2.refused", "config.refused"]


async def test_a_setting_of_several_lines_is_put_aside_if_anything_in_its_file_has_changed(tmp_path: Path) -> None:
    """What a command adds to it would look like a harmless setting."""
    store = tmp_path / "store"
    git(tmp_path, "init", "-q", "--bare", "store")
    with (store / "config").open("a") as file:
        file.write("[core]\n\tpager = less \\\n\tquotePath = true\n")
    async with ShellSandbox(tmp_path) as shell:
        assert (await shell.run("touch store/x")).repositories == ()
        done = await shell.run("sed -i 's/quotePath = true/quotePath = false/' store/config")
        assert "moved to store/config.refused" in done.repositories[0]
    assert "core.quotepath=false" in git(store, "config", "--list")
    assert "pager" not in (store / "config").read_text()


async def test_hooks_of_a_bare_repository_that_was_there_are_named_and_left_alone(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "store")
    (tmp_path / "store/hooks/post-receive").write_text("wanted")
    async with ShellSandbox(tmp_path) as shell:
        assert (await shell.run("touch store/x")).repositories == ()
        done = await shell.run("echo changed >store/hooks/post-receive; git -C store config core.editor evil")
    named, moved = done.repositories
    assert "config sets core.editor): moved to store/config.refused" in moved
    assert "post-receive is a hook): look at it before you use git there" in named
    assert (tmp_path / "store/hooks/post-receive").read_text() == "changed\n"


async def test_parts_of_a_new_repository_that_are_links_are_moved(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    async with ShellSandbox(tmp_path) as shell:
        done = await shell.run(
            "git init -q inner; rm -rf inner/.git/info; cd inner/.git; ln -s ../../source info; ln -s x remotes"
        )
        assert "info is a link to ../../source, remotes is a link to x" in done.repositories[0]
        assert (await shell.run("echo x >source/attributes; cat source/attributes")).output == "x\n"


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


async def test_what_settings_of_a_bare_repository_name_is_protected(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "store")
    named = {"include.path": "../shared", "includeIf.gitdir:/.path": "../missing", "core.hooksPath": "scripts/hooks"}
    named |= {"core.bare": "false", "core.worktree": ".."}
    for name, value in named.items():
        git(tmp_path / "store", "config", name, value)
    (tmp_path / "shared").write_text("whole\n")
    (tmp_path / "scripts/hooks").mkdir(parents=True)
    async with ShellSandbox(tmp_path) as shell:
        tried = ("shared", "missing", "scripts/hooks/post-receive", "scripts/free")
        done = await shell.run("; ".join(f"echo evil >{name}" for name in tried))
    assert "git would run or obey missing, which the command left there, as missing: moved" in done.repositories[0]
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {path for path in found if not path.startswith("store")} == {"shared", "missing.refused", "scripts/free"}
    assert (tmp_path / "shared").read_text() == "whole\n"
    with pytest.raises(FileAccessRefused, match="other programs run"):
        FileAccess(tmp_path).check("shared", Access.WRITE)


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
    '[branch "x"]\n\tremote = origin': True,
    '[branch "x"]\n\tremote = ext::x': False,
    '[branch "x"]\n\tpushRemote = -x': False,
    "[extensions]\n\tpartialClone = ext::x": False,
}


@each_case("text", SETTINGS, ids=map(repr, SETTINGS))
def test_settings(text: str) -> None:
    assert all(is_harmless(each, "/w/.git", "/w") for each in parse_settings(text)) is SETTINGS[text]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a" * 900_000, ("a" * 900_000,)),
        ("/" * 900_000, ("/" * 900_000,)),
        ("sh -c '. ./tools/x.sh && ../y/. z/'", ("sh", "-c", "./tools/x.sh", "../y")),
    ],
)
def test_the_files_that_a_setting_names_are_found_in_linear_time(
    value: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "config").write_text(f"[core]\n\tsshCommand = {value}\n")
    (named,) = find_named_paths(str(tmp_path / "config"), "/tree")
    assert set(named.words) >= {posixpath.join("/tree", word) for word in words}
