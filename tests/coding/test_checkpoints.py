"""Undo, redo and diff on real files: what comes back, what is kept, and what is named."""

import asyncio
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkpoint_trees import read_tree

from ferrule.coding.checkpoints import Checkpoints, Limits, diff_last_turn, redo_last_turn, undo_last_turn
from ferrule.sandbox.file_access import FileAccess


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def run(command: str, folder: Path) -> None:
    subprocess.run(["bash", "-ec", command], cwd=folder, check=True, capture_output=True)


def list_statuses(folder: Path) -> dict[Path, tuple[int, ...]]:
    """What would show that a file was written, replaced, linked or had its mode changed."""
    statuses = {path: path.lstat() for path in folder.rglob("*")}
    return {path: (each.st_mode, each.st_ino, each.st_mtime_ns, each.st_ctime_ns) for path, each in statuses.items()}


async def turn(checkpoints: Checkpoints, command: str, label: str = "") -> None:
    """One turn with one command."""
    checkpoints.begin_turn(label)
    await checkpoints.before_command()
    await asyncio.to_thread(run, command, checkpoints.workspace)
    await checkpoints.end_turn()
    assert checkpoints.take_announcements() == []


NAMED = "-c user.name=a -c user.email=a@localhost"
CHANGES = {
    "content": ("printf old > a", "printf new > a"),
    "CRLF under text=auto": (r"printf '* text=auto eol=lf\n' > .gitattributes; printf 'a\r\nb\r\n' > a", "rm a"),
    "filter and encoding": (
        "printf '*.x filter=evil working-tree-encoding=UTF-16 ident\n' > .gitattributes; printf '$Id$\377\n' > a.x",
        "rm a.x",
    ),
    "pointer of large file storage": ("printf 'version https://git-lfs.github.com/spec/v1\n' > big.bin", "rm big.bin"),
    "exact mode": ("touch a; chmod 2751 a; touch b; chmod 400 b", "chmod 666 a b"),
    "folder mode": ("mkdir d; chmod 1730 d", "chmod 755 d"),
    "empty folders": ("mkdir -p d/e/f", "rm -r d"),
    "link": ("ln -s nowhere l", "rm l; ln -s elsewhere l"),
    "link to file": ("echo x > a; ln -s a l", "rm l; cp a l"),
    "file to folder": ("echo x > a", "rm a; mkdir a; echo y > a/b"),
    "folder to file": ("mkdir a; echo y > a/b; mkdir a/c", "rm -r a; echo x > a"),
    "folder to link": ("mkdir a; echo y > a/b", "mv a c; ln -s c a"),
    "link to folder": ("mkdir c; ln -s c a", "rm a; mkdir a; echo y > a/b"),
    "rename": ("mkdir d; echo x > d/a", "mv d/a b; rmdir d"),
    "odd names": (r"echo x > $'new\nline'; echo y > $'bad\xff'; echo z > '-n'; echo q > '\"'", "rm ./*"),
    "same size and time": ("printf old > a; touch -d 2001-01-01 a", "printf new > a; touch -d 2001-01-01 a"),
    "ignored": ("printf 'x\nbuild/\n' > .gitignore; echo 1 > x; mkdir build; echo 2 > build/o", "rm -r x build"),
    "nested repository": (
        "mkdir sub; cd sub; git init -q; echo x > a; git add a; echo y > b; cd ..; git init -q",
        "rm sub/a; echo z > sub/b; echo new > sub/c",
    ),
    "submodule": (
        (
            f"git init -q sub; cd sub; echo x > a; git add a; git {NAMED} commit -qm x; cd ..; git init -q .;"
            "git -c protocol.file.allow=always submodule --quiet add ./sub module"
        ),
        "echo z > module/a; rm .gitmodules",
    ),
    "large": ("head -c 9000000 /dev/urandom > a; head -c 9000000 /dev/zero > b", "rm a; echo >> b"),
    "sparse": ("truncate -s 30M a", "rm a"),
    "new pipe and socket": ("echo x > a", "mkfifo p; rm a"),
    "unwritable folder": ("mkdir d; echo x > d/a; echo y > d/b; chmod 555 d", "chmod 755 d; rm d/a; chmod 555 d"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_undo_and_redo(name: str, workspace: Path, store: Path) -> None:
    prepare, command = CHANGES[name]
    run(prepare, workspace)
    before = read_tree(workspace)
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, command)
    after = read_tree(workspace)
    assert before != after
    report = await checkpoints.undo()
    assert read_tree(workspace) == before, report
    assert report.is_complete, report
    if name != "new pipe and socket":  # a pipe can't be made again
        report = await checkpoints.redo()
        assert report.is_complete, report
        assert read_tree(workspace) == after
    await checkpoints.aclose()


async def test_nothing_of_git_is_touched(workspace: Path, store: Path) -> None:
    run(
        f"git init -q; echo a > a; git add a; git {NAMED} commit -qm a; echo b > a; echo c > c;"
        "git config core.autocrlf true; git config core.fsmonitor 'touch /tmp/no'; git add c; echo d >> c",
        workspace,
    )
    before = list_statuses(workspace / ".git")
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo x > a; rm c")
    report = await checkpoints.undo()
    await checkpoints.diff()
    await checkpoints.aclose()
    assert list_statuses(workspace / ".git") == before
    assert report.not_restored == (".git", "the network", "running processes")
    assert "Not restored: .git; the network; running processes" in str(report)


async def test_settings_of_the_workspace_and_the_user_run_nothing(
    workspace: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = tmp_path / "ran"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {proof}\ncat\n")
    evil.chmod(0o755)
    settings = tmp_path / "settings"
    settings.write_text(
        f'[filter "evil"]\n\tclean = {evil}\n\tsmudge = {evil}\n'
        f"[core]\n\tfsmonitor = {evil}\n\thooksPath = {tmp_path}\n"
        f'[diff]\n\texternal = {evil}\n[diff "evil"]\n\ttextconv = {evil}\n\tcommand = {evil}\n'
    )
    for variable in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(variable, str(settings))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(evil))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PATH", f"{workspace}/bin:{os.environ['PATH']}")
    (workspace / "bin").mkdir()
    shutil.copy(evil, workspace / "bin" / "git")
    shutil.copytree(workspace / "bin", workspace / ".git" / "hooks")
    shutil.copy(settings, workspace / ".git" / "config")
    (workspace / ".gitattributes").write_text("* filter=evil diff=evil\n")
    for number in range(100):
        (workspace / f"{number}").write_text(f"{number}\r\n")
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo x > 1")
    assert "+x" in await checkpoints.diff()
    assert (await checkpoints.undo()).is_complete
    await checkpoints.aclose()
    assert not proof.exists()


async def test_what_was_changed_afterwards_is_kept(workspace: Path, store: Path) -> None:
    run("echo old > a; echo old > b; mkdir d", workspace)
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo new > a; echo new > b; mkdir made; echo x > made/x")
    run("echo mine > a; echo mine > made/mine", workspace)
    report = await checkpoints.undo()
    assert [(each.path, each.reason) for each in report.kept] == [
        ("a", "it was changed afterwards"),
        ("made", "it holds files that aren't the turn's"),
    ]
    assert (workspace / "a").read_text() == "mine\n"
    assert (workspace / "b").read_text() == "old\n"
    assert (workspace / "made" / "mine").exists()
    assert "Kept a: it was changed afterwards\n" in str(report)
    report = await checkpoints.undo(force=True)
    assert (workspace / "a").read_text() == "old\n"
    report = await checkpoints.redo()
    assert (workspace / "a").read_text() == "mine\n"
    assert (workspace / "b").read_text() == "new\n"
    await checkpoints.aclose()


async def test_turns_of_file_tools_keep_only_their_files(workspace: Path, store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "x").write_text("x")
    (workspace / "a").write_text("old")
    checkpoints = Checkpoints(workspace, store, FileAccess(workspace, [other]))
    checkpoints.begin_turn("write")
    await checkpoints.before_write([workspace / "a", workspace / "new" / "b", other / "x"])
    (workspace / "a").write_text("new")
    (workspace / "new").mkdir()
    (workspace / "new" / "b").write_text("new")
    (other / "x").write_text("changed")
    (workspace / "mine").write_text("mine")
    await checkpoints.end_turn()
    report = await checkpoints.undo()
    assert report.is_complete
    assert report.not_restored == ()
    assert read_tree(workspace) == {
        "a": (stat.S_IFREG | 0o644, b"old"),
        "mine": (stat.S_IFREG | 0o644, b"mine"),
    }
    assert (other / "x").read_text() == "x"
    await checkpoints.aclose()


async def test_hidden_files_are_never_stored(workspace: Path, store: Path) -> None:
    run("echo TOPSECRET > .env; mkdir -p .env.d; echo TOPSECRET > .env.d/x; echo a > a", workspace)
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo b > a; echo TOPSECRET > id_rsa")
    await checkpoints.undo()
    await checkpoints.aclose()
    git = ["git", f"--git-dir={store}", "cat-file", "--batch", "--batch-all-objects"]
    stored = subprocess.run(git, capture_output=True, check=True).stdout
    assert b"a\n" in stored
    assert b"TOPSECRET" not in stored
    assert (workspace / "id_rsa").exists()


async def test_ignored_files_over_the_limit_are_named(workspace: Path, store: Path) -> None:
    run("git init -q; printf 'small\nlarge/\n*.tracked' > .gitignore; mkdir large; echo s > small", workspace)
    run("head -c 3000 /dev/urandom > large/x; head -c 4000 /dev/urandom > b.tracked; git add -f b.tracked", workspace)
    checkpoints = Checkpoints(workspace, store, limits=Limits(ignored_bytes=2000, file_bytes=100_000))
    await turn(checkpoints, "rm small b.tracked large/x; echo y > large/y; head -c 200000 /dev/zero > huge")
    report = await checkpoints.undo()
    assert (workspace / "small").exists()
    assert (workspace / "b.tracked").exists()
    assert not (workspace / "large" / "x").exists()
    assert "large (ignored; over 0 MB in all)" in report.not_restored
    assert [each.path for each in report.kept] == ["huge"]
    await checkpoints.aclose()


async def test_diff_shows_a_turn(workspace: Path, store: Path) -> None:
    (workspace / "ü.txt").write_text("one\ntwo\n")
    checkpoints = Checkpoints(workspace, store)
    assert await checkpoints.diff() == ""
    checkpoints.begin_turn()
    await checkpoints.before_write([workspace / "ü.txt"])
    (workspace / "ü.txt").write_text("one\n2\n")
    shown = await checkpoints.diff()  # of a turn that goes on
    assert "--- a/ü.txt\n+++ b/ü.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" in shown
    await checkpoints.end_turn()
    assert await checkpoints.diff() == shown
    await checkpoints.undo()
    assert await checkpoints.diff() == ""
    assert await checkpoints.diff(1) == shown
    await checkpoints.aclose()


async def test_redo_ends_with_the_next_change(workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo 1 > a")
    await turn(checkpoints, "echo 2 > a")
    await checkpoints.undo()
    checkpoints.begin_turn("only reads")
    await checkpoints.end_turn()
    assert (await checkpoints.redo()).is_complete
    await checkpoints.undo()
    await turn(checkpoints, "echo 3 > a")
    report = await checkpoints.redo()
    assert str(report) == "there is nothing to redo: no turn was undone since the last change"
    assert [each.number for each in await checkpoints.list_turns()] == [1, 2]
    await checkpoints.aclose()


async def test_a_turn_without_changes_leaves_no_record(workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "true")
    assert await checkpoints.list_turns() == []
    assert str(await checkpoints.undo()) == "there is nothing to undo in this workspace"
    await checkpoints.aclose()


def test_another_program_undoes(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    code = (
        "import asyncio, sys; from pathlib import Path; from ferrule.coding.checkpoints import Checkpoints\n"
        "async def main():\n"
        "    checkpoints = Checkpoints(sys.argv[1]); checkpoints.begin_turn('make a')\n"
        "    await checkpoints.before_command(); Path(sys.argv[1], 'a').write_text('a')\n"
        "    await checkpoints.aclose()\n"
        "asyncio.run(main())"
    )
    subprocess.run([sys.executable, "-c", code, str(workspace)], check=True)
    assert "+a" in diff_last_turn(workspace)
    assert str(undo_last_turn(workspace)).startswith("Undid the turn «make a»: 1 path removed\n  removed a\n")
    assert not (workspace / "a").exists()
    assert redo_last_turn(workspace).is_complete
    assert (workspace / "a").read_text() == "a"


async def test_names_can_not_forge_the_report(workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, r"touch $'x\n\e[2JRestored everything'", "la\nbel\x1b[2J")
    text = str(await checkpoints.undo())
    assert "\x1b" not in text
    assert r"x\n\x1b[2JRestored everything" in text
    await checkpoints.aclose()


async def test_a_link_that_was_swapped_in_is_not_followed(workspace: Path, store: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("outside")
    run("mkdir d; echo old > d/a", workspace)
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo new > d/a")
    run(f"mv d e; ln -s {outside} d", workspace)
    report = await checkpoints.undo(force=True)
    assert not report.is_complete
    assert (outside / "a").read_text() == "outside"
    await checkpoints.aclose()


async def test_the_event_loop_goes_on(workspace: Path, store: Path) -> None:
    run("for n in $(seq 2000); do echo $n > $n; done", workspace)
    checkpoints = Checkpoints(workspace, store)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    await checkpoints.before_command()
    ticking.cancel()
    assert ticks > 5
    await checkpoints.aclose()


async def test_sockets_are_named(workspace: Path, store: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(workspace / "s"))
        checkpoints = Checkpoints(workspace, store)
        await turn(checkpoints, "rm s")
        report = await checkpoints.undo()
    assert [(each.path, each.reason) for each in report.failed] == [
        ("s", "pipes, sockets and devices can't be made again")
    ]
    await checkpoints.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("index", ["", "git init -q; printf broken > .git/index"])
async def test_a_pipe_in_place_of_a_gitignore_keeps_nobody_waiting(workspace: Path, store: Path, index: str) -> None:
    run(f"{index}\nmkdir sub; mkfifo sub/.gitignore; printf 'large\n' > .gitignore; printf old > a", workspace)
    (workspace / "large").write_bytes(bytes(5000))
    checkpoints = Checkpoints(workspace, store, limits=Limits(ignored_bytes=2000, file_bytes=100_000))
    started = time.monotonic()
    await turn(checkpoints, "printf new > a")
    assert time.monotonic() - started < 20
    report = await checkpoints.undo()
    assert (workspace / "a").read_text() == "old"
    assert any("large" in each for each in report.not_restored)
    await checkpoints.aclose()
