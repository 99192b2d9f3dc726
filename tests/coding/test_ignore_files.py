"""Files such as .gitignore that are devices, pipes, huge or links to outside: bounded, and the answer says so."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from called_tools import call_tool

from ferrule.coding.search import ripgrep
from ferrule.coding.search.ripgrep import find_ripgrep
from ferrule.coding.search.tools import make_search_tools
from ferrule.coding.workspace import Workspace

pytestmark = pytest.mark.skipif(find_ripgrep() is None, reason="ripgrep is missing")


def make_device(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "a link to outside"


def make_pipe(path: Path) -> str:
    os.mkfifo(path)
    return "a pipe"


def make_huge(path: Path) -> str:
    with path.open("wb") as file:
        file.truncate(8 << 30)
    return "8.0 GB long"


def make_link_outside(path: Path) -> str:
    outside = path.parents[1] / "outside"
    outside.write_text("secret[\n")
    path.symlink_to(outside)
    return "a link to outside"


MAKERS = (make_device, make_pipe, make_huge, make_link_outside)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("needle\n")
    (folder / "sub" / "b.txt").write_text("needle\n")
    (folder / "ignored.txt").write_text("needle\n")
    return folder


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore"])
async def test_one_at_the_top(project: Path, make, name: str) -> None:  # type: ignore[no-untyped-def]
    what = make(project / name)
    other = ".gitignore" if name != ".gitignore" else ".ignore"
    (project / other).write_text("ignored.txt\n")
    tools = make_search_tools(Workspace(project))
    started = time.monotonic()
    found = await call_tool(tools, "search", pattern="needle")
    listed = await call_tool(tools, "list_files")
    assert time.monotonic() - started < 10
    note = f"[1 file that says what to ignore isn't read, so ignored files may be listed: {name} ({what})]"
    assert found.text.splitlines() == ["a.txt:1: needle", "sub/b.txt:1: needle", note]
    assert note in listed.text
    assert "ignored.txt" not in listed.text
    assert "secret" not in found.text


@pytest.mark.parametrize("make", [make_device, make_pipe])
async def test_one_deeper_is_found_when_ripgrep_is_not_done_soon(
    project: Path,
    make,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[no-untyped-def]
) -> None:
    monkeypatch.setattr(ripgrep, "_PATIENCE", 0.2)
    what = make(project / "sub" / ".gitignore")
    (project / ".gitignore").write_text("ignored.txt\n")
    tools = make_search_tools(Workspace(project))
    started = time.monotonic()
    found = await call_tool(tools, "search", pattern="needle")
    listed = await call_tool(tools, "list_files")
    assert time.monotonic() - started < 15
    assert found.text.splitlines()[:2] == ["a.txt:1: needle", "sub/b.txt:1: needle"]
    assert f"sub/.gitignore ({what})" in found.text
    assert f"sub/.gitignore ({what})" in listed.text
    assert "ignored.txt" not in listed.text


async def test_a_link_inside_is_respected(project: Path) -> None:
    (project / "shared-ignore").write_text("ignored.txt\n")
    (project / ".gitignore").symlink_to("shared-ignore")
    found = await call_tool(make_search_tools(Workspace(project)), "search", pattern="needle")
    assert found.text.splitlines() == ["a.txt:1: needle", "sub/b.txt:1: needle"]


async def test_a_faulty_line_is_not_quoted(project: Path) -> None:
    (project / ".gitignore").write_text("ignored.txt\nbroken[\n")
    found = await call_tool(make_search_tools(Workspace(project)), "search", pattern="needle")
    assert found.text.splitlines() == ["a.txt:1: needle", "sub/b.txt:1: needle"]


@pytest.mark.parametrize("tool", ["search", "list_files"])
async def test_a_pipe_is_not_searched(project: Path, tool: str) -> None:
    os.mkfifo(project / "pipe")
    arguments = {"pattern": "x"} if tool == "search" else {}
    result = await call_tool(make_search_tools(Workspace(project)), tool, path="pipe", **arguments)
    assert result.text == "error: pipe is a pipe, not a file or folder"
    whole = await call_tool(make_search_tools(Workspace(project)), tool, **arguments)
    assert not whole.is_error


async def test_without_ripgrep_git_does_not_wait_for_a_pipe(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.coding.search.listing.find_ripgrep", lambda: None)
    os.mkfifo(project / "sub" / ".gitignore")
    started = time.monotonic()
    listed = await call_tool(make_search_tools(Workspace(project)), "list_files")
    assert time.monotonic() - started < 10
    assert "sub/.gitignore (a pipe)" in listed.text
    assert "b.txt" in listed.text
