"""Removing what a hostile program left: deep, closed, full of links, and nothing else."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from contained import OPEN_PYTHON, SOURCE, needs_linux, open_paths

from ferrule.sandbox.temporary_folders import remove_tree

pytestmark = needs_linux

_HOSTILE = """
import os, sys
os.chdir(sys.argv[1])
os.mkdir("full")
for name in ("a", "b"):
    os.mkdir("full/" + name)
    open("full/" + name + "/file", "w").close()
    os.symlink(sys.argv[2], "full/" + name + "/link")
    os.chmod("full/" + name, 0o000)
os.chmod("full", 0o500)
for _ in range(3000):
    os.mkdir("deep")
    os.chdir("deep")
    os.symlink(sys.argv[2], "link")
os.chdir(sys.argv[1])
sys.path.append(sys.argv[3])
from pathlib import Path
from ferrule.sandbox.temporary_folders import remove_tree
if os.geteuid():
    remove_tree(Path(sys.argv[1]))
"""


@pytest.fixture
def folders():
    with tempfile.TemporaryDirectory() as own:  # not pytest's, whose folders are closed to other users
        Path(own).chmod(0o755)
        hostile, outside = Path(own, "hostile"), Path(own, "outside")
        hostile.mkdir()
        outside.mkdir()
        (outside / "kept").write_text("kept")
        yield hostile, outside
        assert (outside / "kept").read_text() == "kept"


def test_it_removes_any_depth_and_mode_and_follows_no_link(folders):
    hostile, outside = folders
    subprocess.run([sys.executable, "-I", "-c", _HOSTILE, hostile, outside, SOURCE], check=True)
    remove_tree(hostile)
    assert not hostile.exists()


def test_an_ordinary_user_does_it_too(folders):
    if os.geteuid() != 0 or not Path(OPEN_PYTHON).exists():
        pytest.skip("root and an interpreter for all are needed to become another user")
    hostile, outside = folders
    os.chown(hostile, 65534, 65534)
    done = subprocess.run(
        [OPEN_PYTHON, "-I", "-c", _HOSTILE, hostile, outside, open_paths()[0]],
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        check=False,
    )
    assert "hostile" in done.stderr.decode()  # all is gone but the folder itself, which lies in root's
    assert list(hostile.iterdir()) == []


def test_a_folder_that_is_not_there_is_no_error(tmp_path):
    remove_tree(tmp_path / "nothing")


def test_a_link_in_its_place_is_not_followed(folders):
    hostile, outside = folders
    hostile.rmdir()
    hostile.symlink_to(outside)
    with pytest.raises(OSError, match="hostile"):
        remove_tree(hostile)
