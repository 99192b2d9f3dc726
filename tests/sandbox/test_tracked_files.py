"""Hidden files that git tracks: commands see and commit no change of theirs, and results say what is hidden."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.sandbox.git.tracked_files import TrackedFiles
from ferrule.sandbox.installation import Installation
from ferrule.sandbox.shell import ShellSandbox
from ferrule.sandbox.shell.hidden_hints import find_named_files
from ferrule.sandbox.shell.protected_paths import ProtectedPaths

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")

AS_SOMEBODY = "git -c user.name=n -c user.email=n@example.org "


def git(folder: Path, line: str) -> str:
    done = subprocess.run(f"{AS_SOMEBODY}{line}", shell=True, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository that tracks secrets: one changed since, one that can be executed, one in a folder."""
    for name in ("sub", ".env.d"):
        (tmp_path / name).mkdir()
    for name in (".env", "sub/prod.key", ".env.d/inner", "module.py"):
        (tmp_path / name).write_text(f"first {name}\n")
    (tmp_path / "sub/prod.key").chmod(0o755)
    git(tmp_path, "init -q")
    git(tmp_path, "add -A")
    git(tmp_path, "commit -q -m first")
    (tmp_path / ".env").write_text("secret\n")
    return tmp_path


async def test_git_sees_no_change_and_commits_none(repository: Path) -> None:
    async with ShellSandbox(repository) as shell:
        assert (await shell.run("git status --short")).output.splitlines()[-1:] != [" M .env"]
        for line in ("add -A", "commit -qam second", "commit -q --allow-empty -am third"):
            done = await shell.run(f"echo more >>module.py; {AS_SOMEBODY}{line}", writable=[".git"])
            assert done.exit_code == 0, done.output
        assert "secret" not in (await shell.run("cat .env sub/prod.key; git diff HEAD")).output
    assert git(repository, "diff --stat HEAD~2 HEAD -- .env sub .env.d") == ""
    assert git(repository, "ls-files -s -- .env sub .env.d").count("\n") == 3
    assert (repository / ".env").read_text() == "secret\n"


async def test_programs_read_what_is_committed(repository: Path) -> None:
    async with ShellSandbox(repository) as shell:
        assert (await shell.run("cat .env")).output == "first .env\n"
        assert (await shell.run("test -x sub/prod.key; echo x >.env")).exit_code != 0
        git(repository, "rm -q --cached sub/prod.key")
        assert "first" not in (await shell.run("cat sub/prod.key")).output
        git(repository, "add .env")
        assert (await shell.run("git show :.env; cat .env")).output == "secret\n" * 2


async def test_stash_and_branches_work(repository: Path) -> None:
    git(repository, "rm -q -r --cached .env.d")
    git(repository, "commit -q -m second")
    async with ShellSandbox(repository) as shell:
        line = f"echo more >>module.py && {AS_SOMEBODY}stash -q && git checkout -q -b other && git stash pop -q"
        done = await shell.run(line, writable=[".git"])
    assert (done.exit_code, done.output) == (0, "")
    assert (repository / ".env").read_text() == "secret\n"
    assert "more" in (repository / "module.py").read_text()


async def test_what_git_converts_is_not_shown(repository: Path) -> None:
    """Git would convert the shown content once more, as it does with an encrypted file."""
    (repository / ".gitattributes").write_text(".env filter=crypt\n*.key text\n")
    git(repository, "add .gitattributes")
    async with ShellSandbox(repository) as shell:
        assert "Permission denied" in (await shell.run("cat .env")).output
        assert (await shell.run("cat sub/prod.key")).output == "first sub/prod.key\n"
        done = await shell.run("git add -A", writable=[".git"])
    assert done.exit_code != 0
    assert "first .env" in git(repository, "show :.env")


async def test_a_worktree_and_a_nested_repository(repository: Path) -> None:
    git(repository, "init -q nested")
    (repository / "nested/.env").write_text("nested\n")
    git(repository / "nested", "add .env")
    git(repository, "worktree add -q tree")
    async with ShellSandbox(repository) as shell:
        assert (await shell.run("cat nested/.env tree/.env")).output == "nested\nfirst .env\n"
        assert "deleted" not in (await shell.run("git -C nested status; git -C tree status")).output


@pytest.mark.parametrize("program", ["core.fsmonitor", "filter.x.smudge", "core.sshCommand"])
async def test_reading_the_index_runs_nothing(repository: Path, program: str) -> None:
    git(repository, f"config {program} 'touch {repository}/ran;'")
    async with ShellSandbox(repository) as shell:
        assert (await shell.run("cat .env")).output == "first .env\n"
    assert not (repository / "ran").exists()


async def test_a_result_says_once_what_is_hidden(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("secret\n")
    (tmp_path / "id_rsa").write_text("secret\n")
    (tmp_path / ".env.d").mkdir()
    async with ShellSandbox(tmp_path) as shell:
        assert (await shell.run("echo .env")).hint == ""
        done = await shell.run("cat .env")
        assert ".env is hidden, since secrets may be there: no command can open it." in done.hint
        assert "The user can show it by ShellSandbox(visible=['.env'])" in done.hint
        assert (await shell.run("cat .env")).hint == ""
        assert "id_rsa is hidden" in (await shell.run("echo ' M id_rsa'")).hint
        assert ".env.d is hidden" in (await shell.run("ls .env.d")).hint
    async with ShellSandbox(tmp_path, visible=[".env"]) as shell:
        assert (await shell.run("cat .env")).output == "secret\n"


def test_long_lines_are_searched_in_linear_time(tmp_path: Path) -> None:
    """What a failed build prints may be a megabyte in one line; anything slower would take hours."""
    for line in ("if(process.env.DEBUG)" * 50_000, " " * 1_000_000 + ".envy"):
        assert find_named_files(["/w/.env"], f"{line}\n", failed=True) == []
        assert find_named_files(["/w/.env"], f"{line}\n", failed=False) == []
        assert find_named_files(["/w/.env"], f"{line}\n M .env", failed=False) == ["/w/.env"]
    paths = ProtectedPaths(str(tmp_path), (), Installation((), ()), ())
    assert paths.make_hint(".git/" * 200_000 + " Permission denied") == ""
    assert "git's settings" in paths.make_hint(".git/" * 200_000 + "config: Permission denied")


def test_a_change_of_the_index_makes_copies_of_what_changed_alone(repository: Path) -> None:
    tracked = TrackedFiles(str(repository.parent), str(repository))
    hidden = [str(repository / name) for name in (".env", "sub/prod.key", ".env.d/inner", "module.py")]
    first = tracked.find_copies(hidden)
    assert [Path(first[path]).read_text() for path in hidden] == [
        f"first {path[len(str(repository)) + 1 :]}\n" for path in hidden
    ]
    git(repository, "add .env")
    second = tracked.find_copies(hidden)
    assert {path for path in hidden if first[path] != second[path]} == {hidden[0]}
    assert Path(second[hidden[0]]).read_text() == "secret\n"
    git(repository, "update-index --chmod=-x sub/prod.key")
    third = tracked.find_copies(hidden)
    assert [Path(each[hidden[1]]).stat().st_mode & 0o777 for each in (second, third)] == [0o555, 0o444]


def test_a_git_that_takes_too_long_copies_nothing(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("slow")
    (folder / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr("ferrule.sandbox.git.tracked_files._SECONDS", 0.1)
    assert TrackedFiles(str(folder), str(repository)).find_copies([str(repository / ".env")]) == {}
