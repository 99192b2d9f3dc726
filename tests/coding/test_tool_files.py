"""The tool files of a project: found without running them, identified by content, loaded only unchanged."""

from pathlib import Path

import pytest

from ferrule.coding import tool_files
from ferrule.coding.tool_files import find_tool_files
from ferrule.errors import RegistryError, SettingsError

GREET = '''
from pathlib import Path
from ferrule import tool
from words import WORD

Path(__file__).with_name("ran.txt").touch()


@tool
def greet(name: str) -> str:
    """Greet somebody."""
    return f"{WORD}, {name}"
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / ".ferrule" / "tools"
    folder.mkdir(parents=True)
    (folder / "greet_tool.py").write_text(GREET.replace("Path(__file__)", f"Path({str(tmp_path)!r}, 'x')"))
    (folder / "words.py").write_text("WORD = 'hello'\n")
    return tmp_path


def test_they_are_found_without_running_them(project: Path) -> None:
    found = find_tool_files(project)
    assert found is not None
    assert found.names == ("greet_tool.py",)
    assert not (project / "ran.txt").exists()


def test_loaded_they_are_tools_of_the_project(project: Path) -> None:
    found = find_tool_files(project)
    assert found is not None
    (one,) = found.load()
    assert (one.name, one.origin, one("Ada")) == ("greet", "project", "hello, Ada")
    assert (project / "ran.txt").exists()


def test_loading_changes_nothing_that_was_trusted(project: Path) -> None:
    found = find_tool_files(project)
    assert found is not None
    found.load()
    assert find_tool_files(project) == found


@pytest.mark.parametrize("name", ["words.py", "greet_tool.py", "new.py", "__pycache__/words.cpython-311.pyc", ".hid/x"])
def test_any_change_of_any_file_is_another_content(project: Path, name: str) -> None:
    found = find_tool_files(project)
    assert found is not None
    changed = found.folder / name
    changed.parent.mkdir(exist_ok=True)
    changed.write_text("WORD = 'bye'\n")
    assert find_tool_files(project) != found
    with pytest.raises(RegistryError, match="has changed since it was trusted"):
        found.load()
    assert not (project / "ran.txt").exists()


def test_a_file_that_moved_is_another_content(project: Path) -> None:
    found = find_tool_files(project)
    folder = project / ".ferrule" / "tools"
    (folder / "words.py").rename(folder / "other.py")
    assert find_tool_files(project) != found


def test_the_content_is_the_same_elsewhere(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / ".ferrule").mkdir()
    copied = elsewhere / ".ferrule" / "tools"
    copied.mkdir()
    for path in (project / ".ferrule" / "tools").iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
    first, second = find_tool_files(project), find_tool_files(elsewhere)
    assert first is not None
    assert second is not None
    assert first.digest == second.digest


@pytest.mark.parametrize("link", ["tools/words.py", "tools/deep", "tools", ""])
def test_links_are_refused_since_their_target_can_change(project: Path, tmp_path: Path, link: str) -> None:
    place = project / ".ferrule" / link
    target = tmp_path / "target"
    if place.exists():
        place.rename(target)
    else:
        target.mkdir()
    place.symlink_to(target)
    with pytest.raises(SettingsError, match=r"is a link"):
        find_tool_files(project)


def test_a_folder_that_is_too_large_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_files, "MOST_BYTES", 1 << 20)
    (project / ".ferrule" / "tools" / "data.bin").write_bytes(b"x" * (1 << 20))
    with pytest.raises(SettingsError, match="more than 1 MB of files; keep data elsewhere"):
        find_tool_files(project)


def test_without_tool_files_there_is_nothing_to_trust(tmp_path: Path) -> None:
    assert find_tool_files(tmp_path) is None
    (tmp_path / ".ferrule" / "tools").mkdir(parents=True)
    (tmp_path / ".ferrule" / "tools" / "notes.md").write_text("no tool")
    assert find_tool_files(tmp_path) is None


def test_a_file_that_cannot_be_imported_costs_no_other(project: Path) -> None:
    (project / ".ferrule" / "tools" / "broken_tool.py").write_text("import absent_module\n")
    found = find_tool_files(project)
    assert found is not None
    registry = found.load()
    assert registry.names == ("greet",)
    assert "absent_module" in str(registry.problems[0])
