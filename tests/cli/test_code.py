"""`ferrule code` without a terminal: one question, lines, JSON, and the conversations of a folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from openai_server import KEY, calls, says, server
from scripted_http import Reply
from server_thread import serve_in_thread
from terminals import assert_refused, ferrule

from ferrule.cli.code import _check_system
from ferrule.errors import SettingsError
from ferrule.store import Store


def code(folder: Path, *arguments: str | Path, typed: str = "", **changes: str) -> subprocess.CompletedProcess[str]:
    """Run `ferrule code` in a folder, with the user's own files beside it."""
    home = folder.parent / "home"
    kept = {"XDG_DATA_HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    return ferrule("code", *arguments, typed=typed, folder=folder, **{**kept, **changes})


def answered(folder: Path, *arguments: str | Path, script: tuple[Reply, ...], typed: str = ""):
    """The same, with a model that gives these replies."""
    with serve_in_thread(lambda: server(*script)) as address:
        return code(
            folder, *arguments, "-m", "openai:m", "--base-url", f"{address}/v1", typed=typed, OPENAI_API_KEY=KEY
        )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_the_embedded_model_is_refused_with_how_to_choose_one(project: Path) -> None:
    assert_refused(code(project, "-p", "hi"), "--model", "FERRULE_MODEL", "configuration file")


def test_a_system_without_a_sandbox_is_refused_with_what_to_do() -> None:
    with pytest.raises(SettingsError, match="Subsystem for Linux"):
        _check_system("win32")
    for platform in ("linux", "darwin"):
        _check_system(platform)


def test_one_question_is_answered_and_kept(project: Path) -> None:
    done = code(project, "-p", "hello", "-m", "echo")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    with Store(project.parent / "home" / "ferrule" / "conversations.db", create=False) as store:
        (kept,) = store.list(folder=str(project))
        first = store.load(kept.id).conversation.messages[0]
    assert first.role == "system"
    assert f"Workspace: {project}" in first.text


def test_a_piped_text_is_the_question_or_comes_before_it(project: Path) -> None:
    assert code(project, "-p", "-m", "echo", typed="from the pipe").stdout == "from the pipe\n"
    assert code(project, "-p", "Explain.", "-m", "echo", typed="a log").stdout == "a log\n\nExplain.\n"
    assert_refused(code(project, "-p", "-m", "echo"), "-p needs a question")


def test_the_last_conversation_of_this_folder_goes_on(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    assert code(project, "-p", "one", "-m", "echo").returncode == 0
    assert code(other, "-p", "two", "-m", "echo").returncode == 0
    done = code(other, "-C", project, "-p", "three", "-m", "echo", "--continue")
    assert "3 messages: one" in done.stderr
    nowhere = project.parent / "third"
    nowhere.mkdir()
    assert_refused(code(nowhere, "-p", "four", "-m", "echo", "--continue"), f"no conversation about {nowhere}")


def test_what_needs_approval_is_refused_and_the_model_goes_on(project: Path) -> None:
    script = (calls(("call_1", "bash", json.dumps({"command": "touch made"}))), says("I could not."))
    done = answered(project, "-p", "make it", "--json", script=script)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (result,) = (one for one in events if one["event"] == "result")
    assert result["status"] == "denied"
    assert events[-1]["reason"] == "done"
    assert events[-1]["answer"] == "I could not."
    assert "--profile" in done.stderr
    assert not (project / "made").exists()


def test_a_profile_allows_it(project: Path) -> None:
    script = (calls(("call_1", "bash", json.dumps({"command": "touch made"}))), says("Done."))
    done = answered(project, "-p", "make it", "--profile", "auto", script=script)
    assert done.returncode == 0, done.stderr
    assert (project / "made").exists()


def test_wrong_options_are_one_line(project: Path) -> None:
    assert_refused(code(project, "-p", "x", "-m", "echo", "--profile", "free"), "expected one of plan, ask")
    assert_refused(code(project, "-C", project / "none", "-p", "x", "-m", "echo"), "none: No such file")
    assert_refused(code(project, "-p", "x", "-m", "echo", "--add-dir", "none"), "none")


def test_lines_are_answered_one_by_one_without_a_terminal(project: Path) -> None:
    assert code(project, "-m", "echo", typed="a\nb\n").stdout == "a\nb\n"
