"""`apply_patch` on folders of an input, a patch and what is expected; and patches made of random changes."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

import pytest
from called_tools import call_tool
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule._util.line_diff import find_changes
from ferrule.coding.files.patch_notation import parse_patch
from ferrule.coding.files.patches import patch_text
from ferrule.coding.files.text_files import TextFile
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.workspace import Workspace
from ferrule.errors import ToolFailed, ToolRetry
from ferrule.execution import Decision, Policy

SCENARIOS = sorted((Path(__file__).parent / "patch_scenarios").iterdir())


def copy(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name, data in read_all(source).items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)


def read_all(folder: Path) -> dict[str, bytes]:
    """All files below a folder; git keeps no empty one, so it may be missing."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def list_folders(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[path.name for path in SCENARIOS])
async def test_scenarios(scenario: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "proj"
    copy(scenario / "input", workspace)
    before = list_folders(workspace)
    patch = (scenario / "patch.txt").read_bytes().decode()
    result = await call_tool(make_file_tools(Workspace(workspace)), "apply_patch", patch=patch)
    error = scenario / "error.txt"
    if error.exists():
        assert result.is_error
        assert error.read_text().strip() in result.text
        assert read_all(workspace) == read_all(scenario / "input")
        assert list_folders(workspace) == before
    else:
        assert not result.is_error, result.text
        assert read_all(workspace) == read_all(scenario / "expected")
        notes = scenario / "notes.txt"
        assert not notes.exists() or notes.read_text().strip() in result.text
    assert not (tmp_path / "evil.txt").exists()


def test_there_are_as_many_scenarios_as_codex_has() -> None:
    assert len(SCENARIOS) >= 23


async def test_what_happened_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\ny\nx\ny\n")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n x\n-y\n+z\n*** Add File: b.txt\n+b\n*** End Patch"
    result = await call_tool(make_file_tools(Workspace(tmp_path)), "apply_patch", patch=patch)
    assert result.text == (
        "File updated: a.txt (8 bytes)\n"
        "[the hunk: its lines are also at 3; the first place, line 1, was changed]\n\n"
        "Diff:\n@@ -1,4 +1,4 @@\n x\n-y\n+z\n x\n y\n\n"
        "File created: b.txt (2 bytes)"
    )


async def test_a_moved_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("echo hi\n")
    (tmp_path / "run.sh").chmod(0o750)
    patch = "*** Begin Patch\n*** Update File: run.sh\n*** Move to: bin/run.sh\n@@\n-echo hi\n+echo ho\n*** End Patch"
    result = await call_tool(make_file_tools(Workspace(tmp_path)), "apply_patch", patch=patch)
    assert result.text.startswith("File moved: run.sh to bin/run.sh (8 bytes)")
    assert (tmp_path / "bin/run.sh").stat().st_mode & 0o777 == 0o750
    assert not (tmp_path / "run.sh").exists()


async def test_a_file_that_changes_before_the_last_write_takes_back_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All changes are prepared; then the second fails when it should take effect."""
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    inode = (tmp_path / "a.txt").stat().st_ino
    replace = os.replace

    def fail(source: Any, target: Any, **folders: Any) -> None:
        if target == "b.txt":
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target, **folders)

    monkeypatch.setattr(os, "replace", fail)
    patch = (
        "*** Begin Patch\n*** Add File: new/c.txt\n+c\n*** Update File: a.txt\n@@\n-a.txt\n+A\n"
        "*** Update File: b.txt\n@@\n-b.txt\n+B\n*** End Patch"
    )
    result = await call_tool(make_file_tools(Workspace(tmp_path)), "apply_patch", patch=patch)
    assert result.text == "error: Error writing b.txt: the disk failed; nothing was changed"
    assert read_all(tmp_path) == {"a.txt": b"a.txt\n", "b.txt": b"b.txt\n"}
    assert (tmp_path / "a.txt").stat().st_ino == inode
    assert list_folders(tmp_path) == []


async def test_a_patch_is_shown_before_it_is_applied(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "b.txt").write_text("b\n")
    seen = []

    class Approving:
        async def decide(self, request: Any) -> Decision:
            seen.append(request.intent)
            return Decision.allow()

    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+A\n*** Delete File: b.txt\n*** End Patch"
    tools = make_file_tools(Workspace(tmp_path))
    result = await call_tool(tools, "apply_patch", patch=patch, policy=Policy(profile="ask"), approver=Approving())
    assert not result.is_error, result.text
    assert [effect.target for effect in seen[0].effects] == [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    assert "-a\n+A" in str(seen[0].preview)
    assert "File deleted: b.txt" in str(seen[0].preview)


# Random changes

LINES = st.lists(st.sampled_from(["a", "b", "c", "  a", "", "x y", "+p", "-m", " s", "@@", "*** n", "é"]), max_size=14)


def write_patch(before: list[str], after: list[str]) -> str:
    """A patch of one hunk for each change, with as many lines before it as tell its place apart."""
    hunks: list[str] = []
    at = 0
    for a, b, c, d in find_changes(before, after):
        start = next((s for s in range(a, at - 1, -1) if a > s or b > a if find(before, before[s:b], at) == s), None)
        if start is None:  # an insertion at the start, or between lines that don't tell the place apart
            return write_whole(before, after)
        hunks += ["@@", *(f" {line}" for line in before[start:a]), *(f"-{line}" for line in before[a:b])]
        hunks += [f"+{line}" for line in after[c:d]]
        at = b
    return "\n".join(["*** Begin Patch", "*** Update File: a.txt", *hunks, "*** End Patch"])


def write_whole(before: list[str], after: list[str]) -> str:
    lines = ["@@", *(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    return "\n".join(["*** Begin Patch", "*** Update File: a.txt", *lines, "*** End Patch"])


def find(lines: list[str], wanted: list[str], at: int) -> int | None:
    places = range(at, len(lines) - len(wanted) + 1)
    return next((place for place in places if lines[place : place + len(wanted)] == wanted), None)


@given(LINES, LINES, st.booleans(), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=400, deadline=None)
def test_a_difference_as_a_patch_gives_the_other_text(
    before: list[str], after: list[str], has_end: bool, line_end: str
) -> None:
    if before == after or not before:
        return
    end = line_end if has_end else ""
    text, expected = line_end.join(before) + end, line_end.join(after) + (end if after else "")
    [patch] = parse_patch(write_patch(before, after))
    if line_end not in text:
        return  # then nothing says how its lines end
    if not has_end and "" in (before[-1], (after or [""])[-1]):
        return  # a last line without newline that is empty is none
    assert patch_text(TextFile(text), patch.hunks).file.raw == expected


@given(st.lists(st.booleans(), min_size=4, max_size=12), st.randoms())
@settings(deadline=None)
def test_hunks_in_any_order_give_the_same_text(changed: list[bool], chance: Any) -> None:
    before = [f"line {number}" for number in range(len(changed))]
    after = [f"new {line}" if is_changed else line for line, is_changed in zip(before, changed, strict=True)]
    if before == after:
        return
    [patch] = parse_patch(write_patch(before, after))
    chance.shuffle(patch.hunks)
    assert patch_text(TextFile("\n".join(before)), patch.hunks).file.raw == "\n".join(after)


@given(st.text(max_size=200))
def test_any_text_is_a_patch_or_refused_in_words(text: str) -> None:
    for body in (
        text,
        f"*** Begin Patch\n{text}\n*** End Patch",
        f"*** Begin Patch\n*** Update File: a\n{text}\n*** End Patch",
    ):
        with contextlib.suppress(ToolRetry, ToolFailed):
            for patch in parse_patch(body):
                patch_text(TextFile("a\nb\n"), patch.hunks)


@pytest.mark.parametrize("text", ["<<EOF\n" + "\n" * 300_000 + "x", "cat" + " " * 300_000, "<<" + "E" * 300_000])
def test_a_heredoc_without_its_end_is_read_in_linear_time(text: str) -> None:
    with pytest.raises(ToolRetry, match="has no line"):
        parse_patch(text)
