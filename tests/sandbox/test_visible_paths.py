"""What a view holds: real paths, the links on the way to them, and nothing that nobody chose."""

import sys
from pathlib import Path

import pytest

from ferrule.sandbox.visible_paths import VisiblePaths, find_python_paths


def test_links_are_followed_one_by_one(tmp_path):
    real = tmp_path.resolve()
    (real / "one" / "inner").mkdir(parents=True)
    (real / "two").symlink_to("one")
    (real / "three").symlink_to(real / "two" / "inner")
    (real / "up").symlink_to("one/inner/../../one")
    paths, links = VisiblePaths((real / "three", real / "up")).plan()
    assert paths == [real / "one"]
    assert links == {
        real / "three": str(real / "two" / "inner"),
        real / "two": "one",
        real / "up": "one/inner/../../one",
    }


def test_what_lies_below_another_path_is_not_shown_twice(tmp_path):
    real = tmp_path.resolve()
    (real / "a" / "b").mkdir(parents=True)
    (real / "ab").mkdir()
    paths, _ = VisiblePaths((real / "a" / "b", real / "a", real / "ab")).plan()
    assert paths == [real / "a", real / "ab"]


def test_missing_paths_and_loops_are_left_out(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert VisiblePaths((tmp_path / "nothing", tmp_path / "loop")).plan()[0] == []


def test_a_relative_path_and_the_root_are_refused(tmp_path):
    with pytest.raises(ValueError, match="absolute"):
        VisiblePaths((Path("here"),)).plan()
    (tmp_path / "root").symlink_to("/")
    with pytest.raises(ValueError, match="whole root"):
        VisiblePaths((tmp_path / "root",)).plan()


def test_python_sees_its_library_and_its_packages():
    paths, _ = find_python_paths().plan()
    for needed in (Path(sys.executable), Path(pytest.__file__), Path(Path.__module__ and __import__("os").__file__)):
        assert any(path in (needed.resolve(), *needed.resolve().parents) for path in paths)


def test_python_does_not_see_the_script_s_folder_or_the_home(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    paths, _ = find_python_paths().plan()
    for hidden in (tmp_path.resolve(), Path.home() / ".ssh", Path("/etc/passwd"), Path("/proc")):
        assert not any(path in (hidden, *hidden.parents) for path in paths)


def test_more_is_seen_where_it_is_named(tmp_path):
    assert tmp_path.resolve() in find_python_paths([tmp_path]).plan()[0]
