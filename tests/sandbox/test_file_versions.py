"""Nothing trusts a time that a program can set: neither a search of the workspace nor what is kept of files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ferrule.coding.files.records import FileRecords
from ferrule.sandbox.file_access import FileAccess
from ferrule.sandbox.file_versions import is_settled, read_clock
from ferrule.sandbox.git.control_files import find_named_paths
from ferrule.sandbox.git.state import is_committed_since, read_git_state
from ferrule.sandbox.git.tracked_files import TrackedFiles
from ferrule.sandbox.hidden_paths import HIDDEN, HiddenPaths
from ferrule.sandbox.paths import LinkFollower
from ferrule.sandbox.python import PythonSandbox
from ferrule.sandbox.shell import ShellSandbox

linux = pytest.mark.skipif(sys.platform != "linux", reason="the sandboxes are Linux's")
SECOND = 1_000_000_000


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True)


def settle() -> None:
    """Wait until the clock for files has moved on, so that what has changed until now may be kept."""
    time.sleep(0.05)


@contextmanager
def kept_times(*paths: Path) -> Iterator[None]:
    """Give files and folders the times back that they had before."""
    times = [(path, path.stat()) for path in paths]
    yield
    for path, status in times:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


PLANT = "git init -q {0}; git -C {0} config core.fsmonitor evil; echo only-for-its-owner >{0}/.env"

# A folder that is moved in, with all its folders as old as those in its place.
MOVED_IN = (
    "mkdir -p made/deep; {made}; touch -r below/deep made/deep; touch -r below made; touch -r . stamp; "
    "mv below stolen; mv made below; touch -r stamp ."
)


@linux
@pytest.mark.parametrize(
    "line",
    [
        "touch -r below stamp; {plant}; touch -r stamp below",
        MOVED_IN,
    ],
)
async def test_what_a_command_makes_is_found_whatever_times_it_sets(tmp_path: Path, line: str) -> None:
    (tmp_path / "below/deep").mkdir(parents=True)
    settle()
    line = line.format(plant=PLANT.format("below"), made=PLANT.format("made/deep"))
    async with ShellSandbox(tmp_path, tier="full") as shell:
        await shell.run("true")
        done = await shell.run(line)
        assert "config sets core.fsmonitor" in "; ".join(done.repositories), done
        seen = await shell.run("find . -name .env -exec cat {} +; echo x >>$(find . -name config)")
        assert "only-for-its-owner" not in seen.output
    assert "evil" not in "".join(path.read_text() for path in tmp_path.rglob("config"))
    assert "x\n" not in [path.read_text()[-2:] for path in tmp_path.rglob("config")]


@linux
async def test_the_search_follows_what_links_and_environments_become(tmp_path: Path) -> None:
    """What a folder is known to hold depends on files elsewhere, which leave its times as they are."""
    for name in ("first", "second", "third"):
        (tmp_path / "kept" / name).mkdir(parents=True)
        (tmp_path / "kept" / name / "secrets").write_text(f"secret of the {name}\n")
    (tmp_path / "kept/current").symlink_to("first")
    (tmp_path / "app/.envs").mkdir(parents=True)
    (tmp_path / "app/.envs/pyvenv.cfg").touch()
    (tmp_path / "app/.envs/token").write_text("secret of the environment\n")
    (tmp_path / "app/.env").symlink_to("../kept/current/secrets")
    settle()
    async with ShellSandbox(tmp_path, tier="full") as shell:
        assert "of the first" not in (await shell.run("cat kept/*/secrets")).output
        with kept_times(tmp_path / "app", tmp_path / "app/.envs"):
            (tmp_path / "kept/current").unlink()
            (tmp_path / "kept/current").symlink_to("second")
            (tmp_path / "app/.envs/pyvenv.cfg").unlink()
        seen = (await shell.run("cat kept/*/secrets app/.envs/token")).output
        assert "of the second" not in seen
        assert "of the environment" not in seen
        assert "of the third" in seen
        plant = "git init -q app/.envs2; touch app/.envs2/pyvenv.cfg; git -C app/.envs2 config core.pager evil"
        assert "core.pager" in (await shell.run(plant)).repositories[0]


def test_hidden_places_outside_are_found_in_a_folder_whose_time_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    hidden = HiddenPaths.parse(HIDDEN, "/nowhere")
    settle()
    assert f"{tmp_path}/.ssh" not in hidden.find_existing(LinkFollower())
    with kept_times(tmp_path):
        (tmp_path / ".ssh").mkdir()
    assert f"{tmp_path}/.ssh" in hidden.find_existing(LinkFollower())


def test_settings_of_git_are_read_again_after_a_change_of_the_same_length(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("[core]\n\thooksPath = one\n")
    settle()
    assert [named.hooks for named in find_named_paths(str(config), "/tree")] == [("/tree/one",)]
    with kept_times(config):
        config.write_text("[core]\n\thooksPath = two\n")
    assert [named.hooks for named in find_named_paths(str(config), "/tree")] == [("/tree/two",)]


def test_tracked_files_are_read_again_after_a_change_of_the_same_length(tmp_path: Path) -> None:
    top, kept, index = tmp_path / "top", tmp_path / "kept", tmp_path / "top/.git/index"
    kept.mkdir()
    git(tmp_path, "init", "-q", "top")
    versions = []
    for content in ("one\n", "two\n"):
        (top / ".env").write_text(content)
        git(top, "add", "-f", ".env")
        versions.append(index.read_bytes())
    index.write_bytes(versions[0])
    settle()
    tracked = TrackedFiles(str(kept), str(top))
    assert Path(tracked.find_copies([f"{top}/.env"])[f"{top}/.env"]).read_text() == "one\n"
    with kept_times(index):
        index.write_bytes(versions[1])
    assert Path(tracked.find_copies([f"{top}/.env"])[f"{top}/.env"]).read_text() == "two\n"


@pytest.mark.parametrize("reference", ["refs/tags/later", "refs/heads/feature/one"])
def test_a_reference_is_noticed_whatever_times_are_set(tmp_path: Path, reference: str) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    git(tmp_path, "update-ref", "refs/heads/feature/one", "HEAD")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "second")
    before = read_git_state(str(tmp_path))
    assert not is_committed_since(str(tmp_path), before)
    with kept_times(*(path for path in (tmp_path / ".git").rglob("*") if path.exists())):
        git(tmp_path, "update-ref", reference, "HEAD")
    assert is_committed_since(str(tmp_path), before)


@linux
async def test_a_file_that_a_run_changes_is_returned_whatever_time_it_sets() -> None:
    async with PythonSandbox(packages=()) as sandbox, await sandbox.session() as session:
        await session.run("open('a.txt', 'w').write('one')")
        settle()
        code = "import os\nstatus = os.stat('a.txt')\nopen('a.txt', 'r+').write('two')\n"
        run = await session.run(code + "os.utime('a.txt', ns=(status.st_atime_ns, status.st_mtime_ns))")
        assert run.error is None
        assert run.files["a.txt"] == b"two"
        assert (await session.run("1")).files == {}


def test_a_file_that_was_just_changed_is_hashed_again_although_its_time_is_old(tmp_path: Path) -> None:
    files = FileRecords(FileAccess(tmp_path))
    path = tmp_path / "a.txt"
    path.write_text("one")
    now = time.time_ns() + 60 * SECOND  # later than any moment of this test
    for changed, is_relied_on in ((now, False), (now - 600 * SECOND, True)):
        times = {"st_mtime_ns": SECOND, "st_ctime_ns": changed}
        files.remember(str(path), "digest", os.stat_result(tuple(path.stat()), times))
        record = files.get(str(path))
        assert record is not None
        assert (record.signature is not None) is is_relied_on


@pytest.mark.parametrize(
    ("changed", "read", "expected"),
    [
        (5 * SECOND + 1, 5 * SECOND + 1, False),
        (5 * SECOND + 1, 5 * SECOND + 20_000_001, False),
        (5 * SECOND + 1, 5 * SECOND + 20_000_002, True),
        (5 * SECOND, 6 * SECOND + 999, False),  # a file system that keeps whole seconds, or even ones
        (5 * SECOND, 7 * SECOND + 1, True),
        (6 * SECOND + 1, 5 * SECOND, False),  # the clock was set back
    ],
)
def test_a_change_within_a_step_of_the_clock_is_not_relied_on(changed: int, read: int, expected: bool) -> None:
    assert is_settled(changed, read) is expected


def test_no_file_changes_before_the_clock_that_its_changes_are_compared_with(tmp_path: Path) -> None:
    """That of `time.time` is ahead of the kernel's for files: by more than a step of it on a busy virtual machine."""
    for number in range(200):
        now = read_clock()
        (tmp_path / str(number)).touch()
        assert (tmp_path / str(number)).stat().st_ctime_ns >= now
