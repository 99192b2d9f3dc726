"""What a call would write is worked out once, and anew if its file or what the model knows has changed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ferrule.coding.files.change_plans import Call, ChangePlan
from ferrule.coding.files.tools import FileTools
from ferrule.coding.workspace import Workspace
from ferrule.errors import ToolRetry

KEY = ("edit_file", ["a.txt", [{"old": "one", "new": "two"}]])


class Editor:
    """Plans one edit of `a.txt` with the real tools, and counts how often."""

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(folder)
        self.tools = FileTools(self.workspace)
        self.cache = self.tools._plans
        self.count = 0

    def plan(self) -> list[ChangePlan]:
        self.count += 1
        return [self.tools._plan_editing("a.txt", [{"old": "one", "new": "two"}], "key")]

    def make(self) -> list[ChangePlan]:
        return self.cache.make(self.make_call(KEY))

    def make_call(self, key: tuple[str, Any]) -> Call:
        return Call(key, ["a.txt"], self.plan)


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    (tmp_path / "a.txt").write_text("one\n")
    time.sleep(0.05)  # so that every later change alters the file's times
    editor = Editor(tmp_path)
    editor.tools.read_file("a.txt")
    return editor


def test_intent_check_and_run_share_a_plan(editor: Editor) -> None:
    first = editor.make()
    assert editor.make() is first
    assert editor.cache.take(editor.make_call(KEY)) is first
    assert editor.count == 1
    assert editor.cache.take(editor.make_call(KEY)) is None


@pytest.mark.parametrize("change", ["content", "same content", "gone", "link", "mode", "read again by the model"])
def test_a_change_makes_the_plan_anew(editor: Editor, change: str) -> None:
    first = editor.make()
    path = editor.workspace.folder / "a.txt"
    if change == "content":
        path.write_text("one, changed\n")
    elif change == "same content":
        path.write_text("one\n")
    elif change == "mode":
        path.chmod(0o755)
    elif change == "read again by the model":
        path.write_text("one more\n")
        editor.tools.read_file("a.txt")
    else:
        path.unlink()
        if change == "link":
            (editor.workspace.folder / "other.txt").write_text("one\n")
            path.symlink_to("other.txt")
    if change in ("content", "gone"):
        with pytest.raises(ToolRetry):
            editor.make()
    else:
        assert editor.make() is not first
    assert editor.count == 2


def test_a_change_with_the_times_set_back_is_noticed(editor: Editor) -> None:
    editor.make()
    path = editor.workspace.folder / "a.txt"
    before = path.stat()
    path.write_text("One\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ToolRetry, match="has changed since you read it"):
        editor.make()


def test_a_file_changed_just_before_is_planned_again(editor: Editor) -> None:
    path = editor.workspace.folder / "a.txt"
    path.write_text("one!\n")
    editor.tools.read_file("a.txt")
    first = editor.make()
    assert first[0].change.status is None or time.time_ns() - path.stat().st_ctime_ns > 20_000_000
    if first[0].change.status is None:
        assert editor.make() is not first


def test_few_plans_are_kept(editor: Editor) -> None:
    for number in range(30):
        editor.cache.make(editor.make_call(("write_file", [str(number)])))
    assert editor.cache.take(editor.make_call(("write_file", ["0"]))) is None
    assert editor.cache.take(editor.make_call(("write_file", ["29"]))) is not None
