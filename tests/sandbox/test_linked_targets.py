"""What programs run or obey is protected by every name that leads to it: through links, settings and hard links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ferrule.errors import FileAccessRefused
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.access_plan import Access

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

TIERS = pytest.mark.parametrize("tier", ["full", "container"])


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True)


def make_repository(folder: Path) -> None:
    """A repository without hooks, and a folder of tools."""
    folder.mkdir()
    git(folder, "init", "-q")
    shutil.rmtree(folder / ".git/hooks")
    (folder / "tools").mkdir()
    (folder / "tools/kept").write_text("whole\n")


def link_folder_of_hooks(top: Path) -> list[str]:
    (top / ".git/hooks").symlink_to("../tools")
    return [".git/hooks/pre-commit", "tools/pre-commit", "tools/kept"]


def link_folder_of_hooks_by_a_link(top: Path) -> list[str]:
    (top / "passed").symlink_to(top / "tools")
    (top / ".git/hooks").symlink_to("../passed")
    return ["passed", "passed/pre-commit", "tools/pre-commit"]


def link_hook(top: Path) -> list[str]:
    (top / ".git/hooks").mkdir()
    (top / ".git/hooks/pre-commit").symlink_to("../../tools/kept")
    return [".git/hooks/pre-commit", "tools/kept"]


def link_missing_hook(top: Path) -> list[str]:
    (top / ".git/hooks").mkdir()
    (top / ".git/hooks/pre-commit").symlink_to("../../tools/missing")
    return [".git/hooks/pre-commit", "tools/missing"]


def link_hook_in_a_missing_folder(top: Path) -> list[str]:
    (top / ".git/hooks").mkdir()
    (top / ".git/hooks/pre-commit").symlink_to("../../later/pre-commit")
    return [".git/hooks/pre-commit", "later/pre-commit"]


def give_hook_another_name(top: Path) -> list[str]:
    (top / ".git/hooks").mkdir()
    os.link(top / "tools/kept", top / ".git/hooks/pre-commit")
    return [".git/hooks/pre-commit", "tools/kept"]


def link_settings(top: Path) -> list[str]:
    (top / ".git/config").rename(top / "shared")
    (top / ".git/config").symlink_to("../shared")
    return [".git/config", "shared"]


def give_settings_another_name(top: Path) -> list[str]:
    os.link(top / ".git/config", top / "tools/config")
    return [".git/config", "tools/config"]


def link_attributes(top: Path) -> list[str]:
    shutil.rmtree(top / ".git/info")
    (top / ".git/info").symlink_to("../tools")
    return [".git/info/attributes", "tools/attributes"]


def name_hooks_by_a_link(top: Path) -> list[str]:
    (top / "passed").symlink_to("tools")
    git(top, "config", "core.hooksPath", "passed")
    return ["passed", "passed/pre-commit", "tools/pre-commit"]


def name_hooks_that_are_links(top: Path) -> list[str]:
    (top / "hooks").mkdir()
    (top / "hooks/pre-commit").symlink_to("../tools/kept")
    git(top, "config", "core.hooksPath", "hooks")
    return ["hooks/pre-commit", "tools/kept"]


def name_the_top_as_folder_of_hooks(top: Path) -> list[str]:
    git(top, "config", "core.hooksPath", ".")
    (top / "pre-commit").write_text("whole\n")
    return ["pre-commit", "post-checkout"]


def include_settings_that_name_hooks(top: Path) -> list[str]:
    git(top, "config", "include.path", "../one")
    (top / "one").write_text("[include]\n\tpath = two\n")
    (top / "two").write_text("[core]\n\thooksPath = tools\n")
    return ["one", "two", "tools/pre-commit"]


def include_missing_settings(top: Path) -> list[str]:
    git(top, "config", "include.path", "../one.gitconfig")
    git(top, "config", "--add", "include.path", "../two")
    git(top, "config", "--add", "include.path", "three")
    return ["one.gitconfig", "two", ".git/three"]


def name_scripts_in_a_script(top: Path) -> list[str]:
    git(top, "config", "core.fsmonitor", """sh -c 'exec "$(pwd)"/tools/kept; :'""")
    return ["tools/kept"]


def link_settings_of_an_editor(top: Path) -> list[str]:
    (top / ".vscode").mkdir()
    (top / ".vscode/tasks.json").symlink_to("../tools/kept")
    return [".vscode/tasks.json", "tools/kept"]


def link_settings_in_a_folder_of_others(top: Path) -> list[str]:
    (top / "below/.config/mise").mkdir(parents=True)
    (top / "below/.config/mise/config.toml").symlink_to("../../../tools/kept")
    return ["below/.config/mise/config.toml", "below/.config/mise/new.toml", "tools/kept"]


def link_a_folder_of_settings(top: Path) -> list[str]:
    (top / ".hg").symlink_to("tools")
    (top / "tools/hgrc").write_text("whole\n")
    return [".hg/hgrc", "tools/hgrc"]


def link_folder_of_an_editor_below(top: Path) -> list[str]:
    (top / "below").mkdir()
    (top / "below/.vscode").symlink_to("../tools")
    return ["below/.vscode/tasks.json", "tools/tasks.json", "tools/kept"]


def give_settings_of_an_agent_another_name(top: Path) -> list[str]:
    (top / "below").mkdir()
    os.link(top / "tools/kept", top / "below/.mcp.json")
    return ["below/.mcp.json", "tools/kept"]


def link_the_repository(top: Path) -> list[str]:
    (top / ".git").rename(top / "stored")
    (top / "passed").symlink_to("stored")
    (top / ".git").symlink_to("passed")
    return [".git/config", "stored/config", "passed/config", "passed", "stored/hooks/pre-commit"]


def link_the_file_that_names_the_repository(top: Path) -> list[str]:
    (top / ".git").rename(top / "stored")
    (top / "named").write_text("gitdir: stored\n")
    (top / ".git").symlink_to("named")
    return [".git", "named", "stored/config"]


def point_to_a_missing_repository(top: Path) -> list[str]:
    (top / "below").mkdir()
    (top / "node_modules").mkdir()
    (top / "below/.git").write_text("gitdir: ../node_modules/stored\n")
    return ["node_modules/stored/config"]


PLACES: list[Callable[[Path], list[str]]] = [
    *(link_folder_of_hooks, link_folder_of_hooks_by_a_link, link_hook, link_missing_hook),
    *(link_hook_in_a_missing_folder, give_hook_another_name, link_settings, give_settings_another_name),
    *(link_attributes, name_hooks_by_a_link, name_hooks_that_are_links, name_the_top_as_folder_of_hooks),
    *(include_settings_that_name_hooks, include_missing_settings, link_settings_of_an_editor),
    *(link_folder_of_an_editor_below, give_settings_of_an_agent_another_name, link_the_repository),
    *(name_scripts_in_a_script, link_settings_in_a_folder_of_others, link_a_folder_of_settings),
    *(link_the_file_that_names_the_repository, point_to_a_missing_repository),
]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    make_repository(folder)
    return folder


@pytest.mark.parametrize("place", PLACES)
def test_file_tools_write_none_of_it(top: Path, place: Callable[[Path], list[str]]) -> None:
    names = place(top)
    access = FileAccess(top)
    for name in names:
        with pytest.raises(FileAccessRefused, match=r"protected|can be read but not changed"):
            access.check(name, Access.WRITE)
    access.check("free.txt", Access.WRITE)


WAYS = [("full", ()), ("full", (".git",)), ("container", ()), ("container", (".git",))]


@pytest.mark.parametrize(
    ("tier", "writable", "places"),
    [
        *((*way, PLACES[number::4]) for number, way in enumerate(WAYS)),
        *(pytest.param(*way, PLACES, marks=pytest.mark.slow) for way in WAYS),
    ],
    ids=[f"{way[0]}-{'git' if way[1] else 'none'}-{kind}" for kind in ("sample", "all") for way in WAYS],
)
async def test_commands_change_none_of_it(
    tmp_path: Path, tier: str, writable: tuple[str, ...], places: list[Callable[[Path], list[str]]]
) -> None:
    wrong = []
    for place in places:
        top = tmp_path / place.__name__
        make_repository(top)
        names = [top / name for name in place(top)]
        if (top / ".git").is_symlink():
            writable = ()  # only folders can be named
        before = [path.read_text() if path.is_file() else "" for path in names]
        tries = [f"mkdir -p {path.parent}; echo evil >{path}; rm -rf {path}; echo evil >{path}" for path in names]
        async with ShellSandbox(top, tier=tier) as shell:
            line = f"mkdir aside; ({'; '.join(tries)}) 2>&1; mv tools aside/; mv passed aside/; mv .git/hooks .git/x"
            done = await shell.run(line, writable=writable)
            git(top, "status")  # which nothing in the way of commands disturbs
        if [path.read_text() if path.is_file() else "" for path in names] != before:
            wrong.append((place.__name__, done))
        for made in top.rglob("*.refused"):
            assert str(made.relative_to(top)) in "; ".join(done.repositories), done
    assert wrong == []


@TIERS
async def test_what_a_command_creates_where_git_would_find_it_is_disarmed_and_named(top: Path, tier: str) -> None:
    link_missing_hook(top)
    async with ShellSandbox(top, tier=tier) as shell:
        done = await shell.run("echo evil >tools/missing; echo fine >tools/other")
    assert "git would run or obey tools/missing, which the command left there" in done.repositories[0]
    assert "as .git/hooks/pre-commit: moved to tools/missing.refused" in done.repositories[0]
    assert done.appeared == ()
    assert not (top / "tools/missing").exists()
    assert (top / "tools/missing.refused").read_text() == "evil\n"
    assert (top / "tools/other").read_text() == "fine\n"


async def test_a_command_that_is_refused_is_told_why(top: Path) -> None:
    link_hook(top)
    async with ShellSandbox(top) as shell:
        done = await shell.run("echo evil >tools/kept")
    assert "tools/kept can't be changed by commands, since git or another program runs or obeys it" in done.hint


async def test_a_link_that_a_command_puts_on_the_way_is_disarmed(top: Path) -> None:
    link_hook_in_a_missing_folder(top)
    (top / "tests").mkdir()
    (top / "tests/pre-commit").write_text("whole\n")
    async with ShellSandbox(top) as shell:
        for line in (
            "ln -s tests later",
            "ln -s nowhere later",
            "ln -s /usr/bin bin; ln -s bin later",
            "ln -s /tmp later",
        ):
            done = await shell.run(line)
            assert "later, which the command left there, as .git/hooks/pre-commit: moved to" in done.repositories[0]
            assert not (top / "later").is_symlink()
    assert not (top / ".git/hooks/pre-commit").exists()
    assert (top / "tests/pre-commit").read_text() == "whole\n"


@TIERS
async def test_in_a_folder_of_a_repository_its_hooks_and_settings_count(top: Path, tier: str) -> None:
    (top / ".git/hooks").mkdir()
    (top / ".git/hooks/pre-commit").symlink_to("../../tools/kept")
    git(top, "config", "core.hooksPath", "tools/hooks")
    (top / "tools/hooks").mkdir()
    with pytest.raises(FileAccessRefused):
        FileAccess(top / "tools").check("hooks/post-checkout", Access.WRITE)
    async with ShellSandbox(top / "tools", tier=tier) as shell:
        await shell.run("true")
        await shell.run("echo evil >kept; echo evil >hooks/post-checkout; mv hooks x; echo fine >free")
    assert (top / "tools/kept").read_text() == "whole\n"
    assert list((top / "tools/hooks").iterdir()) == []
    assert not (top / "tools/x").exists()


async def test_links_lead_into_added_folders_too(top: Path, tmp_path: Path) -> None:
    added = tmp_path / "added"
    added.mkdir()
    (added / "pre-commit").write_text("whole\n")
    (top / ".git/hooks").symlink_to(added)
    with pytest.raises(FileAccessRefused):
        FileAccess(top, [added]).check(added / "pre-commit", Access.WRITE)
    async with ShellSandbox(top, added=[added]) as shell:
        await shell.run(f"echo evil >{added}/pre-commit; echo evil >{added}/post-commit")
    assert (added / "pre-commit").read_text() == "whole\n"
    assert not (added / "post-commit").exists()


async def test_the_user_s_own_settings_count(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings").write_text("[include]\n\tpath = more\n")
    (tmp_path / "more").write_text("[core]\n\thooksPath = tools\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    with pytest.raises(FileAccessRefused):
        FileAccess(top).check("tools/pre-commit", Access.WRITE)
    (tmp_path / "more").unlink()
    (tmp_path / "more").symlink_to(top / "tools/kept")
    with pytest.raises(FileAccessRefused):
        FileAccess(top).check("tools/kept", Access.WRITE)


async def test_the_hooks_of_worktrees_and_submodules_count(top: Path, tmp_path: Path) -> None:
    git(top, "commit", "-q", "--allow-empty", "-m", "first")
    git(top, "worktree", "add", "-q", str(tmp_path / "tree"))
    git(top, "submodule", "--quiet", "add", str(top), "part")
    (tmp_path / "tree/tools").mkdir()
    for hooks, kept in (
        (top / ".git/hooks", tmp_path / "tree/tools"),
        (top / ".git/modules/part/hooks", top / "tools"),
    ):
        shutil.rmtree(hooks, ignore_errors=True)
        hooks.symlink_to(kept)
    for folder in (tmp_path / "tree", top):
        with pytest.raises(FileAccessRefused):
            FileAccess(folder).check("tools/pre-commit", Access.WRITE)
        async with ShellSandbox(folder) as shell:
            done = await shell.run("echo evil >tools/pre-commit", writable=[".git"])
            assert done.exit_code != 0
            commit = "git -c user.name=n -c user.email=n@example.org commit --allow-empty -m second"
            assert (await shell.run(commit, writable=[".git"])).exit_code == 0


async def test_no_command_locks_a_folder_by_a_link_to_it(top: Path) -> None:
    (top / "source").mkdir()
    access = FileAccess(top)
    access.take_snapshot()
    async with ShellSandbox(top) as shell:
        await shell.run("true")
        links = (
            "ln -s ../source below/.vscode; mkdir below/.idea; ln -s ../../source below/.idea/x; ln -s .. below/.zed"
        )
        await shell.run(f"mkdir below; {links}; git init -q inner; ln -s ../../source inner/.git/remotes")
        done = await shell.run("echo x >source/file; ln source/file source/other; cat source/other")
        assert done.output == "x\n"
    access.check("source/file", Access.WRITE)
    with pytest.raises(
        FileAccessRefused, match=r"below/\.vscode/tasks\.json, which leads to source/tasks\.json, is prot"
    ):
        access.check("below/.vscode/tasks.json", Access.WRITE)


def test_where_a_bare_repository_s_hooks_lead_is_not_written_by_file_tools(top: Path) -> None:
    git(top, "init", "-q", "--bare", "stored")
    shutil.rmtree(top / "stored/hooks")
    (top / "stored/hooks").mkdir()
    (top / "stored/hooks/post-receive").symlink_to("../../tools/kept")
    with pytest.raises(FileAccessRefused):
        FileAccess(top).check("tools/kept", Access.WRITE)
