"""Whole sessions of `ferrule code` over a real repository: fixed and undone, killed and resumed, and with bad input."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from openai_server import KEY, calls, says, server
from screens import CTRL_D, ENTER, Screen
from scripted_http import Reply, ScriptedServer
from server_thread import serve_in_thread
from terminals import COMMAND, assert_refused, environment, ferrule

from ferrule.store import Store

BROKEN = "def add(first, second):\n    return first - second\n"
TEST = "from numbers_of import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a mistake, a test that shows it, and changes that nobody has committed."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "numbers_of.py").write_text(BROKEN)
    (folder / "test_numbers.py").write_text(TEST)
    (folder / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    (folder / "notes.txt").write_bytes(b"not committed\r\n")
    return folder


def home(project: Path) -> dict[str, str]:
    place = str(project.parent / "home")
    return {"XDG_DATA_HOME": place, "XDG_STATE_HOME": place, "XDG_CONFIG_HOME": place, "OPENAI_API_KEY": KEY}


def call(call_id: str, name: str, **arguments: Any) -> Reply:
    return calls((call_id, name, json.dumps(arguments)))


def read_tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of everything but what git and Python keep for themselves."""
    skipped = (".git", "__pycache__", ".pytest_cache")
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not set(path.relative_to(folder).parts) & {*skipped}
    }


def results(scripted: ScriptedServer) -> list[str]:
    return [json.dumps(one["content"]) for one in scripted.requests[-1].body["messages"] if one["role"] == "tool"]


def test_a_session_reads_edits_tests_and_fixes_and_its_undo_restores_every_byte(project: Path) -> None:
    edit = {"old": "first - second", "new": "first + second"}
    run_tests = f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider"
    script = (
        call("call_1", "search", pattern="def add"),
        call("call_2", "read_file", path="numbers_of.py"),
        call("call_3", "bash", command=run_tests, timeout=60),
        call("call_4", "edit_file", path="numbers_of.py", edits=[edit]),
        call("call_5", "bash", command=run_tests, timeout=60),
        says("`add` subtracted; it adds now, and the test passes."),
    )
    before, scripted = read_tree(project), server(*script)
    with serve_in_thread(lambda: scripted) as address:
        asked = ("code", "-p", "fix the test", "-m", "openai:m", "--base-url", f"{address}/v1", "--profile", "auto")
        done = ferrule(*asked, folder=project, **home(project))
    assert done.returncode == 0, done.stderr
    assert "it adds now" in done.stdout
    found = results(scripted)
    assert "numbers_of.py:1:" in found[0]
    assert "1 failed" in found[2]
    assert "1 passed" in found[4]
    assert "first + second" in (project / "numbers_of.py").read_text()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=project, capture_output=True, text=True, check=True)
    undone = ferrule("code", "undo", "--yes", folder=project, **home(project))
    assert undone.returncode == 0, undone.stdout
    assert "Undid the turn «fix the test»" in undone.stdout
    assert read_tree(project) == before
    assert " M numbers_of.py" in status.stdout
    redone = ferrule("code", "redo", "--yes", folder=project, **home(project))
    assert redone.returncode == 0, redone.stdout
    assert "+    return first + second" in ferrule("code", "diff", folder=project, **home(project)).stdout


def test_a_killed_session_is_resumed_and_no_call_runs_twice(project: Path) -> None:
    script = (
        call("call_1", "write_file", path="made.txt", content="whole\n"),
        call("call_2", "bash", command="echo once >> count.txt; echo started; sleep 600", timeout=600),
        says("It may have run."),
    )
    scripted = server(*script)
    with serve_in_thread(lambda: scripted) as address:
        model = ("-m", "openai:m", "--base-url", f"{address}/v1", "--profile", "auto")
        process = subprocess.Popen(
            [*COMMAND, "code", "-p", "work", "--json", *model],
            cwd=project,
            env=environment(home(project)),
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdout is not None
        journal = project.parent / "home" / "ferrule" / "code"
        # The second call is in the journal once it has started, and the command has run once its file is there.
        while not (project / "count.txt").exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert any("call_2" in one.read_text() for one in journal.glob("*.jsonl"))
        with Screen("code", "--continue", *model, folder=project, **home(project)) as screen:
            screen.wait_for("resumed", "the last turn was cut off at: bash ", "(it had begun", "Enter goes on")
            assert len(scripted.requests) == 2
            screen.type(ENTER)
            screen.wait_for("It may have run.")
            screen.type(CTRL_D)
            assert screen.wait_for_end() == 0
    found = results(scripted)
    assert "File created: made.txt" in found[0]
    assert "unknown" in found[1]
    assert (project / "count.txt").read_text() == "once\n"
    assert (project / "made.txt").read_text() == "whole\n"


def test_what_compaction_leaves_out_stays_in_the_store(project: Path) -> None:
    script = (says("One."), says("Two."), says("Three."), says("The summary."), says("Four."))
    scripted = server(*script)
    with (
        serve_in_thread(lambda: scripted) as address,
        Screen("code", "-m", "openai:m", "--base-url", f"{address}/v1", folder=project, **home(project)) as screen,
    ):
        for question, answer in (("1?", "One."), ("2?", "Two."), ("3?", "Three.")):
            screen.type(question, ENTER)
            screen.wait_for(answer)
        screen.type("/compact", ENTER)
        screen.wait_for("4 messages were replaced by a summary")
        screen.type("4?", ENTER)
        screen.wait_for("Four.")
        screen.type(CTRL_D)
        assert screen.wait_for_end() == 0
    sent = [str(one["content"]) for one in scripted.requests[-1].body["messages"]]
    assert any("The summary." in one for one in sent)
    assert not any("One." in one for one in sent)
    with Store(project.parent / "home" / "ferrule" / "conversations.db", create=False) as store:
        last, whole = store.list(folder=str(project))
        texts = [one.text for one in store.load(whole.id).conversation.messages]
        assert texts[1:] == ["1?", "One.", "2?", "Two.", "3?", "Three."]
        assert store.load(last.id).conversation.messages[-1].text == "Four."


def test_a_project_file_counts_only_once_it_is_trusted(project: Path) -> None:
    (project / "ferrule.toml").write_text(
        '[[policy.rules]]\naction = "allow"\ncommand = "touch made"\n\n'
        '[[tools]]\nname = "say"\ndescription = "Say it."\ncommand = ["echo", "said"]\n'
    )
    quiet = ferrule("code", "-p", "hi", "-m", "echo", folder=project, **home(project))
    assert "ferrule.toml is not trusted" in quiet.stderr
    script = (call("call_1", "bash", command="touch made"), says("Done."))
    with (
        serve_in_thread(lambda: server(*script)) as address,
        Screen("code", "-m", "openai:m", "--base-url", f"{address}/v1", folder=project, **home(project)) as screen,
    ):
        screen.wait_for("offers the tool say, which runs: echo said", "Trust it? [y]es, [n]o:")
        screen.type("y", ENTER)
        screen.wait_for(
            "\n ask · openai:m"
        )  # the prompt reads now: what is typed while the terminal changes hands can be lost
        screen.type("/tools", ENTER)
        screen.wait_for("Say it.")
        screen.type("make it", ENTER)
        screen.wait_for("Done.")
        assert (project / "made").exists()
        screen.type(CTRL_D)
        assert screen.wait_for_end() == 0


def test_a_no_to_trust_is_remembered_until_the_file_changes(project: Path) -> None:
    path = project / "ferrule.toml"
    path.write_text('[[tools]]\nname = "say"\ndescription = "Say it."\ncommand = ["echo", "said"]\n')

    def start(answer: str = "") -> str:
        with Screen("code", "-m", "echo", folder=project, **home(project)) as screen:
            if answer:
                screen.wait_for("Trust it? [y]es, [n]o:")
                screen.type(answer, ENTER)
            screen.wait_for("\n ask · echo")
            screen.type("hello", ENTER)
            shown = screen.wait_for("› hello")
            screen.type(CTRL_D)
            assert screen.wait_for_end() == 0
        return shown

    start("n")
    shown = start()
    assert "Trust it?" not in shown
    assert "ferrule policy trust" in " ".join(shown.split())
    path.write_text(path.read_text() + "\n# changed\n")
    start("n")
    assert ferrule("policy", "trust", "--yes", folder=project, **home(project)).stdout.endswith("trusted\n")


def test_a_damaged_project_file_or_store_is_one_line(project: Path) -> None:
    (project / "ferrule.toml").write_text("[policy\n")
    done = ferrule("code", "-p", "hi", "-m", "echo", folder=project, **home(project))
    assert_refused(done, "ferrule.toml: not TOML", "nothing runs without its rules")
    (project / "ferrule.toml").unlink()
    store = project.parent / "home" / "ferrule" / "conversations.db"
    store.parent.mkdir(parents=True, exist_ok=True)
    store.write_bytes(b"not a database" * 100)
    done = ferrule("code", "-p", "hi", "-m", "echo", folder=project, **home(project))
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert "this conversation is not saved" in done.stderr
    assert "not a store of conversations" in done.stderr
    done = ferrule("code", "-p", "hi", "-m", "echo", "--store", store, folder=project, **home(project))
    assert (done.returncode, done.stdout) == (2, "")
    nowhere = {**home(project), "XDG_STATE_HOME": "/proc/nowhere", "XDG_DATA_HOME": "/proc/nowhere"}
    done = ferrule("code", "-p", "hi", "-m", "echo", folder=project, **nowhere)
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert "calls are not recorded" in done.stderr


def test_a_dumb_terminal_and_a_pipe_get_lines(project: Path) -> None:
    with Screen("code", "-m", "echo", folder=project, **{**home(project), "TERM": "dumb"}) as screen:
        screen.wait_for("›")
        screen.type("hello", ENTER)
        screen.wait_for("hello\n  hello")
        screen.type("/policy auto", ENTER)
        screen.wait_for("profile auto")
        screen.type(CTRL_D)
        assert screen.wait_for_end() == 0
    done = ferrule("code", "-m", "echo", typed="/policy nothing\nhello\n", folder=project, **home(project))
    assert (done.returncode, done.stdout) == (1, "hello\n")
    assert "/policy nothing: expected one of plan" in done.stderr


def test_a_disk_that_is_full_costs_the_saving_not_the_session(project: Path) -> None:
    full = project.parent / "full"
    full.symlink_to("/dev/full")
    done = ferrule("code", "-p", "hi", "-m", "echo", "--journal", full, folder=project, **home(project))
    assert (done.returncode, done.stdout) == (0, "hi\n")
    script = (call("call_1", "bash", command="touch made"), says("Done."))
    with serve_in_thread(lambda: server(*script)) as address:
        model = ("-m", "openai:m", "--base-url", f"{address}/v1", "--profile", "auto")
        done = ferrule("code", "-p", "work", *model, "--journal", full, folder=project, **home(project))
    assert done.returncode == 2
    assert "No space left" in done.stderr.splitlines()[-1]
    assert not (project / "made").exists(), "a call that can't be recorded isn't run"
