"""What the model knows of files: by content, never by time; and that it is told of what changed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ferrule import model
from ferrule.agent.hooks import Hooks, RunState
from ferrule.coding.announcements import AnnouncementHook, NoticeHook
from ferrule.coding.files.records import ChangedFile, KnownFiles, hash_content
from ferrule.coding.workspace import Workspace
from ferrule.models.scripted import ScriptedModel


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "proj").mkdir()
    return Workspace(tmp_path / "proj")


def read(workspace: Workspace, name: str, content: bytes) -> Path:
    path = workspace.folder / name
    path.write_bytes(content)
    workspace.files.remember(str(path), hash_content(content), path.stat())
    return path


def test_a_change_is_announced_once(workspace: Workspace) -> None:
    path = read(workspace, "a.py", b"one\n")
    assert workspace.files.find_changed() == []
    path.write_bytes(b"two\n")
    assert workspace.files.find_changed() == [ChangedFile(str(path), "changed")]
    assert workspace.files.find_changed() == []
    path.unlink()
    (news,) = workspace.take_announcements()
    assert news.startswith("1 file that you read was changed by somebody else meanwhile")
    assert news.endswith("\n- a.py: deleted")
    assert workspace.take_announcements() == []


def test_other_times_are_no_change(workspace: Workspace) -> None:
    path = read(workspace, "a.py", b"one\n")
    os.utime(path, (1, 1))
    assert workspace.files.find_changed() == []
    path.write_bytes(b"two\n")
    path.write_bytes(b"one\n")
    assert workspace.files.find_changed() == []


def test_a_change_that_keeps_size_and_time_is_found(workspace: Workspace) -> None:
    path = read(workspace, "a.py", b"one\n")
    status = path.stat()
    path.write_bytes(b"two\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert workspace.files.find_changed() == [ChangedFile(str(path), "changed")]


def test_what_a_tool_wrote_is_no_change_by_somebody_else(workspace: Workspace) -> None:
    path = read(workspace, "a.py", b"one\n")
    path.write_bytes(b"two\n")
    workspace.files.remember_written(str(path), b"two\n")
    assert workspace.files.find_changed() == []
    record = workspace.files.get(str(path))
    assert record is not None
    assert (record.digest, record.origin) == (hash_content(b"two\n"), hash_content(b"one\n"))


def test_names_of_files_are_escaped(workspace: Workspace) -> None:
    path = read(workspace, "a\n\x1b[2Jb", b"one\n")
    path.write_bytes(b"other")
    (text,) = workspace.take_announcements()
    assert "\x1b" not in text
    assert "- a\\n\\x1b[2Jb: changed" in text


def test_the_model_reads_the_news_before_its_next_turn(workspace: Workspace) -> None:
    path = read(workspace, "a.py", b"one\n")
    path.write_bytes(b"other\n")
    run = asyncio.run(model(ScriptedModel("I see.")).chat("Go on.").hook(AnnouncementHook(workspace)).run())
    assert [message.role for message in run.conversation.messages] == ["user", "user", "assistant"]
    assert "a.py: changed" in run.conversation.messages[1].text


def test_the_person_is_told_before_the_model_answers(workspace: Workspace) -> None:
    path = read(workspace, "a.py", b"one\n")
    path.write_bytes(b"other\n")
    seen: list[str] = []
    hook = NoticeHook(workspace.files.take_notices, seen.append)

    class Answered(Hooks):
        async def after_message(self, state: RunState) -> None:
            seen.append("the model answers")

    chat = model(ScriptedModel("I see.")).chat("Go on.")
    asyncio.run(chat.hook(hook, AnnouncementHook(workspace), Answered()).run())
    assert seen == ["a.py was changed since the model read it; the model is told", "the model answers"]


def test_records_are_kept_with_their_conversation(workspace: Workspace, tmp_path: Path) -> None:
    path = read(workspace, "a.py", b"one\n")
    written = workspace.folder / "b.py"
    written.write_bytes(b"two\n")
    workspace.files.remember_written(str(written), b"two\n")
    kept = KnownFiles(tmp_path / "kept")
    kept.save("first", workspace.files)
    kept.load("other", workspace.files)
    assert workspace.files.list_records() == {}
    written.write_bytes(b"changed\n")
    kept.load("first", workspace.files)
    assert workspace.files.find_changed() == [ChangedFile(str(written), "changed")]
    assert workspace.files.get(str(path)).digest == hash_content(b"one\n")  # type: ignore[union-attr]


@pytest.mark.parametrize("damaged", [b"", b"[]", b"{", b'{"/a": 1}', b'{"/a": [1, 2]}', b"[" * 100_000])
def test_damaged_records_are_not_known(workspace: Workspace, tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "first.json").write_bytes(damaged)
    KnownFiles(tmp_path).load("first", workspace.files)
    assert workspace.files.list_records() == {}
