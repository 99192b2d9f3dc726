"""The store of checkpoints when something is wrong: the session goes on, and what can't be undone is said."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkpoint_trees import read_tree
from test_checkpoints import run, turn

from ferrule.coding.checkpoints import Checkpoints, Limits
from ferrule.coding.checkpoints.store import find_store_folder
from ferrule.coding.files.records import KnownFiles
from ferrule.coding.workspace import Workspace
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.git.objects import ObjectStore, hash_content
from ferrule.sandbox.shell.access_plan import Access


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a").write_text("old\n")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


async def test_a_damaged_store_is_said_once_and_stops_nothing(workspace: Path, store: Path) -> None:
    store.mkdir()
    (store / "something").write_text("else")
    checkpoints = Checkpoints(workspace, store)
    checkpoints.begin_turn()
    await checkpoints.before_write([workspace / "a"])
    await checkpoints.before_command()
    await checkpoints.end_turn()
    (said,) = checkpoints.take_announcements()
    assert said == (
        f"undo isn't available: the checkpoints in {store} are damaged; remove that folder to start anew. "
        "This turn can't be undone completely"
    )
    report = await checkpoints.undo()
    assert report.turn is None
    assert "remove that folder" in str(report)
    await checkpoints.aclose()


async def test_what_a_session_kept_before_the_store_was_made_is_no_damage(workspace: Path, store: Path) -> None:
    files = Workspace(workspace).files
    files.remember(str(workspace / "a"), hash_content(b"old\n"))
    KnownFiles(store / "known_files").save("first", files)
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo new > a")
    assert (await checkpoints.undo()).is_complete
    await checkpoints.aclose()


async def test_a_damaged_content_is_named_and_the_others_come_back(workspace: Path, store: Path) -> None:
    (workspace / "b").write_text("other\n")
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo new > a; echo new > b")
    oid = hash_content(b"old\n")
    path = store / "objects" / oid[:2] / oid[2:]
    path.chmod(0o600)
    path.write_bytes(b"damaged")
    report = await checkpoints.undo()
    assert [(each.path, each.reason) for each in report.failed] == [
        ("a", "its content in the store is damaged or missing")
    ]
    assert (workspace / "a").read_text() == "new\n"
    assert (workspace / "b").read_text() == "other\n"
    await checkpoints.aclose()


async def test_a_damaged_index_is_ignored(workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo new > a")
    await checkpoints.aclose()
    index = store / "index"
    index.write_bytes(index.read_bytes()[:-10] + b"0123456789")
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo newer > a")
    assert (await checkpoints.undo()).is_complete
    assert (workspace / "a").read_text() == "new\n"
    await checkpoints.aclose()


async def test_packs_that_are_gone_are_noticed(workspace: Path, store: Path) -> None:
    run("for n in $(seq 100); do echo $n > $n; done", workspace)
    before = read_tree(workspace)
    checkpoints = Checkpoints(workspace, store)
    await checkpoints.prepare()
    await checkpoints.aclose()
    shutil.rmtree(store / "objects" / "pack")
    (store / "objects" / "pack").mkdir()
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "rm *")
    assert (await checkpoints.undo()).is_complete
    assert read_tree(workspace) == before
    await checkpoints.aclose()


async def test_a_damaged_record_is_named(workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo 1 > a")
    await turn(checkpoints, "echo 2 > a")
    record = store / "turns" / "00000002.json"
    record.write_text(record.read_text()[:40])
    assert str(await checkpoints.undo()) == (
        f"the record of a turn, {record}, is damaged: remove it to undo the turns before it"
    )
    assert (workspace / "a").read_text() == "2\n"
    await checkpoints.aclose()


@pytest.mark.parametrize("text", ["[]", "{}", "null", '{"format": 2}', '{"format": 1, "before": 1, "changes": []}'])
async def test_a_record_of_anything_else_is_damaged(text: str, workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo 1 > a")
    (store / "turns" / "00000009.json").write_text(text)
    assert "is damaged" in str(await checkpoints.undo())
    await checkpoints.aclose()


async def test_without_git(workspace: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("mkdir d; for n in $(seq 100); do echo $n > d/$n; done; ln -s a l", workspace)
    before = read_tree(workspace)
    checkpoints = Checkpoints(workspace, store)
    monkeypatch.setenv("PATH", "/nonexistent")
    checkpoints.begin_turn()
    await checkpoints.before_command()
    shutil.rmtree(workspace / "d")
    (workspace / "a").write_text("new\n")
    await checkpoints.end_turn()
    assert "-old\n+new" in await checkpoints.diff()
    assert (await checkpoints.undo()).is_complete
    assert read_tree(workspace) == before
    assert checkpoints.take_announcements() == []
    await checkpoints.aclose()


async def test_a_session_in_the_middle_of_a_turn_is_not_undone_by_another(workspace: Path, store: Path) -> None:
    one, other = Checkpoints(workspace, store), Checkpoints(workspace, store)
    await turn(other, "echo 1 > a")
    one.begin_turn()
    await one.before_command()
    (workspace / "a").write_text("2\n")
    assert str(await other.undo()) == "another session is in the middle of a turn in this workspace: stop it first"
    await one.end_turn()
    assert (await other.undo()).is_complete
    assert (workspace / "a").read_text() == "1\n"
    await one.aclose()
    await other.aclose()


async def test_sessions_wait_for_each_other(workspace: Path, store: Path) -> None:
    """Sessions side by side, each with turns of its own files: all can be undone."""
    before = read_tree(workspace)

    async def write(name: str) -> None:
        checkpoints = Checkpoints(workspace, store)
        for number in range(5):
            checkpoints.begin_turn(f"{name} {number}")
            await checkpoints.before_write([workspace / name])
            (workspace / name).write_text(str(number))
            await checkpoints.end_turn()
        await checkpoints.aclose()
        assert checkpoints.take_announcements() == []

    await asyncio.gather(*(write(name) for name in "bcde"))
    checkpoints = Checkpoints(workspace, store)
    for _ in range(20):
        assert (await checkpoints.undo()).is_complete
    assert read_tree(workspace) == before
    await checkpoints.aclose()


async def test_a_full_disk_is_said_and_stops_nothing(workspace: Path, store: Path) -> None:
    (workspace / "large").write_bytes(os.urandom(300_000))
    code = (
        "import asyncio, resource, signal, sys; from ferrule.coding.checkpoints import Checkpoints\n"
        "async def main():\n"
        "    checkpoints = Checkpoints(sys.argv[1], __import__('pathlib').Path(sys.argv[2]))\n"
        "    checkpoints.begin_turn(); await checkpoints.before_write(['a'])\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "    await checkpoints.before_command(); await checkpoints.before_command(); await checkpoints.end_turn()\n"
        "    print(*checkpoints.take_announcements(), sep='\\n'); await checkpoints.aclose()\n"
        "asyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", code, workspace, store], capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"undo isn't available: the checkpoints in {store} can't be used (File too large)")
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo new > a")
    assert (await checkpoints.undo()).is_complete
    assert not list((store / "objects").glob("tmp_*"))
    await checkpoints.aclose()


async def test_old_turns_and_what_only_they_need_are_removed(workspace: Path, store: Path) -> None:
    limits = Limits(turns=2)
    checkpoints = Checkpoints(workspace, store, limits=limits)
    for number in range(5):
        await turn(checkpoints, f"echo {number} > a")
    await checkpoints.aclose()
    checkpoints = Checkpoints(workspace, store, limits=limits)
    await checkpoints.prepare()
    assert [each.number for each in await checkpoints.list_turns()] == [4, 5]
    for expected in ("3\n", "2\n"):
        assert (await checkpoints.undo()).is_complete
        assert (workspace / "a").read_text() == expected
    assert not ObjectStore(str(store), None).has(hash_content(b"old\n"))
    await checkpoints.aclose()
    git = ["git", f"--git-dir={store}", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]
    assert hash_content(b"old\n") not in subprocess.run(git, capture_output=True, text=True, check=True).stdout


async def test_turns_of_more_than_two_weeks_are_removed(workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo 1 > a")
    await turn(checkpoints, "echo 2 > a")
    record = store / "turns" / "00000001.json"
    data = json.loads(record.read_text())
    record.write_text(json.dumps({**data, "started": time.time() - 15 * 86400}))
    await checkpoints.prepare()
    assert [each.number for each in await checkpoints.list_turns()] == [2]
    await checkpoints.aclose()


async def test_the_store_is_bounded(workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store, limits=Limits(store_bytes=1_000_000))
    for _ in range(4):
        await turn(checkpoints, "head -c 600000 /dev/urandom > a")
    await checkpoints.prepare()
    size = sum(path.lstat().st_size for path in store.rglob("*"))
    assert size < 1_000_000
    await checkpoints.aclose()


async def test_the_store_of_a_workspace_that_is_gone_is_removed(tmp_path: Path) -> None:
    limits = Limits(days=0)
    for name in ("gone", "here"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("a")
        checkpoints = Checkpoints(tmp_path / name, tmp_path / "stores" / name, limits=limits)
        await checkpoints.prepare()
        await checkpoints.aclose()
        if name == "gone":
            shutil.rmtree(tmp_path / name)
    assert [path.name for path in (tmp_path / "stores").iterdir()] == ["here"]


async def test_a_store_in_the_workspace_is_left_out(workspace: Path) -> None:
    checkpoints = Checkpoints(workspace, workspace / "store")
    await turn(checkpoints, "echo new > a")
    assert [each.files for each in await checkpoints.list_turns()] == [1]
    assert (await checkpoints.undo()).is_complete
    await checkpoints.aclose()


def test_the_data_folder_is_hidden_wherever_it_is(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(workspace / "data"))
    store = find_store_folder(workspace)
    store.mkdir(parents=True)
    assert FileAccess(workspace).take_snapshot().decide(str(store / "objects")) is Access.HIDDEN


async def test_a_turn_without_a_checkpoint_is_not_taken_for_the_one_before(workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store)
    await turn(checkpoints, "echo 1 > a")
    objects, aside = store / "objects", store.with_name("aside")
    objects.rename(aside)
    objects.write_text("a file where the folder was")
    checkpoints.begin_turn()
    await checkpoints.before_write([workspace / "a"])
    (workspace / "a").write_text("2\n")
    await checkpoints.end_turn()
    (said,) = checkpoints.take_announcements()
    assert said.startswith(f"undo isn't available: the checkpoints in {store} can't be used (")
    objects.unlink()
    aside.rename(objects)
    report = await checkpoints.undo()
    assert not report.is_complete
    assert "The checkpoint isn't complete" in str(report) or "the last turn has no checkpoint" in str(report)
    assert (workspace / "a").read_text() == "2\n"
    await checkpoints.undo()
    assert (workspace / "a").read_text() == "2\n"  # it isn't as the first turn left it
    await checkpoints.undo(force=True)
    assert (workspace / "a").read_text() == "old\n"
    await checkpoints.aclose()
