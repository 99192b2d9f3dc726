"""What is hidden and protected, name by name, and that no command can have every later one refused."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ferrule.errors import FileAccessRefused, SandboxUnavailable
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.hidden_paths import UNRESERVED
from ferrule.sandbox.shell import HIDDEN, PROTECTED, ShellSandbox
from ferrule.sandbox.shell.access_plan import Access

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

TIERS = pytest.mark.parametrize("tier", ["full", "container"])
PAGE = Path(__file__).parents[2] / "docs/sandbox.md"
SECRET = "only-for-its-owner"
KEY = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nfor everybody\n"

HIDDEN_FILES = {
    **dict.fromkeys((".env", ".env.local", ".ENV", ".Env.Production", "id_rsa", "ID_RSA", "id_ed25519.pub"), SECRET),
    **dict.fromkeys((".npmrc", ".pypirc", ".netrc", ".git-credentials", "credentials.json", ".htpasswd"), SECRET),
    **dict.fromkeys(("server.key", "SERVER.KEY", "store.p12", "store.pfx", "store.jks", "vault.kdbx"), SECRET),
    **dict.fromkeys(("terraform.tfstate", "terraform.tfstate.backup", "prod.tfstate.d/state", "x.TFSTATE"), SECRET),
    "key.pem": KEY,
    "KEY.PEM": KEY,
    "bundle.pem": CERTIFICATE * 1000 + KEY,  # some 40 KB in
    "long.pem": CERTIFICATE * 30_000,  # which nobody reads to its end
}
SHOWN_FILES = {
    "certificates.pem": CERTIFICATE * 1000,
    "environment.py": "for everybody",
    ".envs/pyvenv.cfg": "for everybody",
    "keys.txt": "for everybody",
    "tfstate.md": "for everybody",
}
INNER = {
    ".git": "hooks/pre-commit",
    ".husky": "pre-commit",
    ".ferrule": "policy.toml",
    ".vscode": "tasks.json",
    ".config/mise*": "config.toml",
    ".autoenv*": "",
    **dict.fromkeys((".exrc", ".vimrc", ".gvimrc", ".nvimrc", ".lvimrc", ".rvmrc", ".rprofile", ".renviron"), ""),
}
"""What is written in a protected place, for those that aren't a file if there is a dot in their name."""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make_place(folder: Path, name: str) -> tuple[Path, Path]:
    """A protected place of a name on the list, and a file in it, or itself."""
    place = folder / name.replace("*", "any")
    inner = INNER.get(name, "" if "." in place.name[1:] else "settings")
    return place, place / inner if inner else place


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "below/deep").mkdir(parents=True)
    return folder


@TIERS
@pytest.mark.parametrize("below", ["", "below/deep"])
async def test_hidden(workspace: Path, below: str, tier: str) -> None:
    folder = workspace / below
    for name, text in (HIDDEN_FILES | SHOWN_FILES).items():
        write(folder / name, text)
    async with ShellSandbox(folder if not below else workspace, tier=tier) as shell:
        for name in HIDDEN_FILES:
            shown = (await shell.run(f"cat '{folder / name}' | tail -c 100")).output
            assert SECRET not in shown, name
            assert "everybody" not in shown, name
        for name in SHOWN_FILES:
            assert "everybody" in (await shell.run(f"cat '{folder / name}'")).output, name


@TIERS
@pytest.mark.parametrize("below", ["", "below/deep"])
async def test_protected(workspace: Path, below: str, tier: str) -> None:
    places = [make_place(workspace / below, name) for name in PROTECTED]
    attempts = []
    for place, file in places:
        write(file, "whole ")
        attempts.append(
            f"echo x >>'{file}'; echo x >'{file}'; rm -rf '{place}'; mv '{place}' '{place}.old'; cat '{file}'"
        )
    async with ShellSandbox(workspace, tier=tier) as shell:
        done = await shell.run("\n".join(attempts), separate=True)
    assert done.output.split() == ["whole"] * len(places)
    assert [place for place, file in places if file.read_text() != "whole "] == []
    access = FileAccess(workspace)
    assert [file for _, file in places if can_write(access, file)] == []
    missing = [make_place(workspace / "missing", name) for name in PROTECTED]
    assert [file for _, file in missing if can_write(access, file)] == []


def can_write(access: FileAccess, path: Path) -> bool:
    try:
        access.check(path, Access.WRITE)
    except FileAccessRefused:
        return False
    return True


async def test_protected_though_it_is_not_there(workspace: Path) -> None:
    async with ShellSandbox(workspace, tier="full") as shell:
        for name in [name for name in PROTECTED if name not in UNRESERVED]:
            _, file = make_place(workspace, name)
            attempts = (
                f"mkdir -p {file.parent}; rmdir {name}; mv {name} x; ln -s below {name}; echo x >{file}; echo x >{name}"
            )
            done = await shell.run(f"({attempts}); :")
            assert (done.appeared == ()) is (name != "ferrule.toml"), name
    assert sorted(each.name for each in workspace.iterdir()) == ["below", "ferrule.toml"]


@TIERS
async def test_a_bundle_that_is_given_a_key_later(workspace: Path, tier: str) -> None:
    bundle = workspace / "below/bundle.pem"
    bundle.write_text(CERTIFICATE)
    async with ShellSandbox(workspace, tier=tier) as shell:
        assert "everybody" in (await shell.run("cat below/bundle.pem")).output
        with bundle.open("a") as file:  # so that its folder's time stays
            file.write(KEY)
        assert SECRET not in (await shell.run("cat below/bundle.pem")).output


def test_the_page_names_what_is_protected_and_what_is_hidden_in_the_workspace() -> None:
    page = PAGE.read_text(encoding="utf-8")
    protected, hidden = (
        page.partition(f"<!-- {name} -->")[2].partition("<!-- end -->")[0] for name in ("protected", "hidden")
    )
    rows = [line.split(" | ") for line in protected.splitlines() if line.startswith("| ") and "`" in line]
    named = [name.lower() for row in rows for name in re.findall(r"`([^`]+)`", row[1])]
    assert sorted(named) == sorted(PROTECTED)
    assert all(what.strip(" |") for *_, what in rows)
    reserved = re.search(r"^- Missing (.+) can't be created", page, re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", reserved[1])) == {*PROTECTED}.difference(UNRESERVED, ["ferrule.toml"])
    assert [name for name in HIDDEN if "/" not in name] == re.findall(r"`([^`]+)`", hidden)


def _many_repositories(folder: Path) -> None:
    for number in range(501):
        (folder / f"below/{number}/.git").mkdir(parents=True)


def _very_many_repositories(folder: Path) -> None:
    for number in range(1200):
        (folder / f"below/{number}/.git").mkdir(parents=True)


def _very_many_secrets(folder: Path) -> None:
    for number in range(1200):
        (folder / f"below/.env.{number}").touch()


def _dangling_links(folder: Path) -> None:
    for name in (".git", ".vscode", "ferrule.toml"):
        (folder / "below" / name).symlink_to("nowhere")


def _links_at_the_top(folder: Path) -> None:
    for name in (".git", ".vscode", ".mcp.json", ".venv"):
        if (folder / name).exists():  # what stands in for it, from the command before
            (folder / name).rmdir()
        (folder / name).symlink_to("nowhere")


def _links_to_folders(folder: Path) -> None:
    (folder / "below/.git").symlink_to("..")
    (folder / "below/.vscode").symlink_to("../source")
    (folder / "below/deep/.git").symlink_to("../../source")
    (folder / "below/deep/.idea").symlink_to("/")


def _pointers(folder: Path) -> None:
    (folder / "below/.git").write_text("gitdir: ..\n")
    (folder / "below/deep/.git").write_text(f"gitdir: {folder}/source\n")


def _pointers_that_are_no_text(folder: Path) -> None:
    """Of repositories that are named by files, and of files that name another repository: a pipe waits for a writer."""
    for number, text in enumerate((b"gitdir: a\0b", b"gitdir: ../piped", b"gitdir: ../endless", b"gitdir: ../null")):
        (folder / f"below/{number}").mkdir()
        (folder / f"below/{number}/.git").write_bytes(text)
    for name in ("piped", "endless", "null"):
        write(folder / "below" / name / "HEAD", "ref: refs/heads/main\n")
    os.mkfifo(folder / "below/piped/commondir")
    (folder / "below/endless/commondir").symlink_to("/dev/zero")
    (folder / "below/null/commondir").write_bytes(b"a\0b")


def _folders_that_nobody_can_search(folder: Path) -> None:
    for name, mode in (("shut", 0), ("listed", 0o600), ("entered", 0o100)):
        for place in (".git/config", "deep/.env"):
            write(folder / "below" / name / place, "x")
        (folder / "below" / name).chmod(mode)


def _odd_files(folder: Path) -> None:
    os.mkfifo(folder / "below/.git")
    os.mkfifo(folder / "below/x.pem")
    os.mkfifo(folder / "below/.env")


@TIERS
@pytest.mark.parametrize(
    "litter",
    [
        _many_repositories,
        _very_many_repositories,
        _very_many_secrets,
        _dangling_links,
        _links_at_the_top,
        _links_to_folders,
        _pointers,
        _pointers_that_are_no_text,
        _folders_that_nobody_can_search,
        _odd_files,
    ],
)
async def test_nothing_that_a_command_can_make_has_the_next_ones_refused(
    workspace: Path, litter: Callable[[Path], None], tier: str
) -> None:
    write(workspace / "source/file", "whole")
    async with ShellSandbox(workspace, tier=tier) as shell:
        await shell.run("true")
        litter(workspace)
        for _ in range(2):
            done = await shell.run("echo x >>source/file; echo ran")
            assert done.output == "ran\n"
    for closed in (workspace / "below").iterdir():
        if closed.is_dir():
            closed.chmod(0o700)  # so that it can be removed
    assert (workspace / "source/file").read_text() == "wholex\nx\n"


async def test_a_workspace_that_its_owner_is_shut_out_of_is_named(workspace: Path) -> None:
    async with ShellSandbox(workspace, tier="full") as shell:
        for mode in ("0500", "0400", "0300"):
            workspace.chmod(int(mode, 8))
            with pytest.raises(SandboxUnavailable, match=rf"whose mode is {mode}: .*chmod u\+rwx"):
                await shell.run("mkdir .vscode")
            workspace.chmod(0o700)
        for mode in ("0400", "0300"):  # a command's is opened again after it
            shut = await shell.run(f"chmod {mode} .")
            assert ". couldn't be listed after the command: its owner was given access again" in shut.repositories[0]
            assert workspace.stat().st_mode & 0o777 == 0o700
        assert (await shell.run("echo ran")).output == "ran\n"


@TIERS
async def test_of_very_many_repositories_each_is_protected(workspace: Path, tier: str) -> None:
    _very_many_repositories(workspace)
    async with ShellSandbox(workspace, tier=tier) as shell:
        await shell.run("echo x >below/7/.git/config; echo x >below/1199/.git/config; echo x >below/file")
    assert not list(workspace.rglob("config"))
    assert not (workspace / "below/file").exists()  # the folder that holds most of them is protected as a whole


@TIERS
async def test_links_are_protected_with_what_they_lead_to(workspace: Path, tier: str) -> None:
    write(workspace / "kept/git/HEAD", "ref: refs/heads/main\n")
    write(workspace / "kept/other/HEAD", "ref: refs/heads/main\n")
    write(workspace / "kept/settings/tasks.json", "whole")
    (workspace / ".git").symlink_to("kept/git")
    (workspace / "below/.git").symlink_to("../kept/other")
    (workspace / ".vscode").symlink_to("kept/settings")
    plant = (
        "echo x >.git/config; echo x >kept/other/config; echo x >.vscode/tasks.json; echo x >kept/settings/new;"
        "rm -f .git below/.git .vscode; ln -sfn below .git; mv .vscode x; mv kept moved; mkdir .git .vscode;"
        "cat .git/HEAD"
    )
    async with ShellSandbox(workspace, tier=tier) as shell:
        assert (await shell.run(plant)).output.endswith("ref: refs/heads/main\n")
    assert not list(workspace.rglob("config"))
    assert [(workspace / name).readlink().name for name in (".git", "below/.git", ".vscode")] == [
        "git",
        "other",
        "settings",
    ]
    assert [each.name for each in (workspace / "kept/settings").iterdir()] == ["tasks.json"]
    assert (workspace / "kept/settings/tasks.json").read_text() == "whole"


@pytest.fixture
async def shell(workspace: Path) -> AsyncIterator[ShellSandbox]:
    async with ShellSandbox(workspace, tier="full") as sandbox:
        yield sandbox


async def test_a_link_made_beside_a_command_is_pinned(shell: ShellSandbox, workspace: Path) -> None:
    """One that appears between two commands, in the copy of mounts that were made before it."""
    await shell.run("true")
    first = [mounted.launcher for mounted in shell._running._backend._launchers]
    (workspace / "below/.git").symlink_to("nowhere")
    assert "busy" in (await shell.run("rm below/.git; ln -s deep below/.git; mv below/.git x")).output
    assert [mounted.launcher for mounted in shell._running._backend._launchers] == first
    assert (workspace / "below/.git").readlink() == Path("nowhere")
