"""What the user trusted, by content hash, in a file that only the user reads."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
import sys

import pytest

from ferrule.errors import SettingsError
from ferrule.session.trust import forget, hash_content, is_trusted, list_trusted, trust, was_trusted


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "ferrule" / "trust.json"


def test_exactly_the_content_that_was_trusted_is(tmp_path, file):
    path, digest = tmp_path / "ferrule.toml", hash_content(b"one")
    assert not is_trusted("project", path, digest)
    assert not file.exists()
    trust("project", path, digest)
    assert is_trusted("project", path, digest)
    assert not is_trusted("tools", path, digest)
    assert not is_trusted("project", tmp_path / "other.toml", digest)
    assert not is_trusted("project", path, hash_content(b"two"))
    assert was_trusted("project", path)
    trust("project", path, hash_content(b"two"))
    assert not is_trusted("project", path, digest)
    (listed,) = list_trusted()
    assert (listed.kind, listed.path, listed.digest) == ("project", str(path), hash_content(b"two"))
    assert forget("project", path)
    assert not forget("project", path)
    assert list_trusted() == ()


def test_only_the_user_can_read_it(tmp_path, file):
    trust("project", tmp_path / "x", "1")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in file.parent.iterdir()) == [".trust.json.lock", "trust.json"]


def test_a_path_is_the_real_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    trust("tools", tmp_path / "link" / "a_tool.py", "1")
    assert is_trusted("tools", tmp_path / "real" / "a_tool.py", "1")
    # Another folder put in the place of the link isn't what was trusted.
    (tmp_path / "other").mkdir()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("other")
    assert not is_trusted("tools", tmp_path / "link" / "a_tool.py", "1")


def test_contents_are_told_apart():
    assert hash_content(b"ab", b"c") != hash_content(b"a", b"bc") != hash_content(b"abc")


def test_names_with_any_bytes(tmp_path):
    path = tmp_path / "a \udcff\n b"
    trust("project", path, "1")
    assert is_trusted("project", path, "1")
    assert list_trusted()[0].path == str(path)


@pytest.mark.parametrize("data", [b"{", b"\xff", b"[]"])
def test_a_damaged_file_trusts_nothing_and_is_kept(tmp_path, file, data):
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    for use in (
        lambda: is_trusted("project", tmp_path, "1"),
        lambda: trust("project", tmp_path, "1"),
        lambda: forget("project", tmp_path),
    ):
        with pytest.raises(SettingsError, match=r"trust\.json: damaged: .*; delete the file"):
            use()
    assert file.read_bytes() == data


def test_an_entry_that_can_not_be_understood_trusts_nothing(tmp_path, file):
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({f"project {tmp_path}": "1", "project /b": {"digest": 1}}))
    assert not is_trusted("project", tmp_path, "1")
    assert list_trusted() == ()


def test_no_answer_of_several_processes_is_lost(tmp_path):
    code = (
        "import sys; from pathlib import Path; from ferrule.session.trust import trust\n"
        "for number in range(20): trust('project', Path(f'/p/{sys.argv[1]}/{number}'), '1')"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(one)]) for one in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert len(list_trusted()) == 60


@pytest.mark.skipif(sys.platform != "linux", reason="the shell sandbox is Linux's")
def test_no_contained_command_reads_or_writes_it(tmp_path, file):
    from ferrule.sandbox.shell import ShellSandbox

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    trust("project", workspace / "ferrule.toml", "1")
    before = file.read_bytes()

    async def run():
        async with ShellSandbox(workspace) as sandbox:
            return await sandbox.run(f"cat {file}; echo '{{}}' > {file}; mv {file} x; echo done; cat x", timeout=30)

    done = asyncio.run(run())
    assert "done" in done.output
    assert "digest" not in done.output
    assert file.read_bytes() == before
