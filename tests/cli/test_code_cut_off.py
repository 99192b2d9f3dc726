"""A turn of `ferrule code` that was cut off: what is said when it is resumed, and how it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from openai_server import KEY, calls, says, server
from screens import CTRL_D, ENTER, Screen
from scripted_http import Reply, ScriptedServer, json_reply
from server_thread import serve_in_thread
from terminals import COMMAND, environment, ferrule
from test_code_terminal import leave, opened, run

from ferrule.store import Store

NOWHERE = ("-m", "openai:m", "--base-url", "http://127.0.0.1:1/v1")
WORDS = "touch made"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def home(project: Path) -> dict[str, str]:
    folder = str(project.parent / "home")
    return {"XDG_DATA_HOME": folder, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder, "OPENAI_API_KEY": KEY}


def end_at_question(project: Path, number: signal.Signals) -> None:
    """End the program by a signal while it asks about a call."""
    with opened(project, run(WORDS)) as (screen, _):
        screen.type("make it", ENTER)
        screen.wait_for("[y]es")
        os.kill(screen.process.pid, number)
        screen.wait_for_end()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_call_that_was_not_decided_on_is_named_and_asked_about_again(project: Path, number: signal.Signals) -> None:
    end_at_question(project, number)
    with opened(project, says("It is made."), arguments=("--continue",), columns=150) as (screen, scripted):
        screen.wait_for("the last turn was cut off at: bash touch made (not run); Enter goes on, or ask something else")
        assert not scripted.requests
        screen.type(ENTER)
        screen.wait_for("[y]es")
        screen.type("y", ENTER)
        screen.wait_for("It is made.")
        assert (project / "made").exists()
        leave(screen)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_ends_a_turn_without_a_terminal_and_what_it_did_is_saved(
    project: Path, number: signal.Signals
) -> None:
    scripted = server(run("touch started; sleep 300"))
    with serve_in_thread(lambda: scripted) as address:
        # What runs the tests may have been told to ignore a signal, as `nohup` is.
        command = ["env", "--default-signal", *COMMAND, "code", "-p", "--yes", "go"]
        command += ["-m", "openai:m", "--base-url", f"{address}/v1"]
        with subprocess.Popen(
            command, cwd=project, env=environment(home(project)), stderr=subprocess.PIPE, text=True
        ) as process:
            deadline = time.monotonic() + 60
            while not (project / "started").exists():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(number)
            stderr = process.communicate(timeout=300)[1]
    assert process.returncode == 128 + number
    assert "Traceback" not in stderr, stderr
    assert "--continue` goes on with it" in stderr
    with Store(project.parent / "home" / "ferrule" / "conversations.db", create=False) as store:
        (saved,) = store.list(folder=str(project))
        assert store.load(saved.id).conversation.messages[-1].result.status == "cancelled"


def test_another_question_goes_along_with_what_was_not_run(project: Path) -> None:
    end_at_question(project, signal.SIGKILL)
    scripted = server(says("Another answer."))
    with serve_in_thread(lambda: scripted) as address:
        model = ("-m", "openai:m", "--base-url", f"{address}/v1")
        done = ferrule("code", "-p", "--continue", "what now?", *model, folder=project, **home(project))
    assert done.returncode == 0, done
    assert "the last turn was cut off at: bash touch made (not run)" in done.stderr
    (request,) = scripted.requests
    told, asked = request.body["messages"][-2:]
    assert "not run: the program ended before this call" in told["content"]
    assert asked["content"] == "what now?"
    assert not (project / "made").exists()


def ask_in_vain(project: Path, *arguments: str) -> None:
    done = ferrule("code", "-p", "is anybody there?", *arguments, *NOWHERE, folder=project, **home(project))
    assert done.returncode == 3, done
    assert "--continue` goes on with it" in done.stderr


def list_asked(scripted: ScriptedServer) -> list[str]:
    messages = scripted.requests[-1].body["messages"]
    return [one["content"] for one in messages if one["role"] == "user"]


@pytest.mark.slow
def test_a_question_that_could_not_be_sent_is_kept_and_sent_once(project: Path) -> None:
    ask_in_vain(project)
    ask_in_vain(project, "--continue")
    with opened(project, says("I am."), arguments=("--continue",), columns=120) as (screen, scripted):
        screen.wait_for("› is anybody there?", "the last question has no answer yet; Enter goes on")
        screen.type(ENTER)
        screen.wait_for("I am.")
        assert list_asked(scripted) == ["is anybody there?"]
        leave(screen)


@pytest.mark.slow
def test_a_question_that_failed_at_the_prompt_is_tried_again_with_enter(project: Path) -> None:
    with Screen("code", *NOWHERE, folder=project, columns=120, **home(project)) as screen:
        screen.type("hello", ENTER)
        screen.wait_for("the last question has no answer yet; Enter tries again")
        screen.type(ENTER)
        screen.wait_for("the last question has no answer yet; Enter tries again", count=2)
        screen.type("hello", ENTER)
        screen.wait_for("the last question has no answer yet; Enter tries again", count=3)
        screen.type(CTRL_D)
        assert screen.wait_for_end() == 0
    with opened(project, says("Hello."), arguments=("--continue",), columns=120) as (screen, scripted):
        screen.wait_for("the last question has no answer yet")
        screen.type("really", ENTER)
        screen.wait_for("  Hello.")
        assert list_asked(scripted) == ["hello", "really"]
        leave(screen)


def test_a_question_that_the_provider_refuses_is_not_kept(project: Path) -> None:
    refused = json_reply(400, {"error": {"message": "this image is damaged"}})
    with opened(project, refused, says("Fine.")) as (screen, scripted):
        screen.type("look", ENTER)
        screen.wait_for("this image is damaged")
        screen.type("how are you?", ENTER)
        screen.wait_for("  Fine.")
        assert list_asked(scripted) == ["how are you?"]
        leave(screen)


def test_leaving_says_which_background_jobs_are_stopped(project: Path) -> None:
    script = (run("sleep 600", background=True), says("It runs."))
    with opened(project, *script, arguments=("--yes",)) as (screen, _):
        screen.type("start it", ENTER)
        screen.wait_for("  It runs.")
        screen.type(CTRL_D)
        assert screen.wait_for_end() == 0
        assert "stopped, as the program ends: job_1" in screen.text


def test_a_resumed_session_knows_what_the_model_read(project: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (project / name).write_text("one\n")
    reads = calls(("call_1", "read_file", '{"path": "a.txt"}'), ("call_2", "read_file", '{"path": "b.txt"}'))
    run_question(project, reads, says("I read both."), arguments=("read them",))
    (project / "a.txt").write_text("mine\n")
    write = calls(("call_3", "write_file", '{"path": "b.txt", "content": "two\\n"}'))
    scripted = run_question(project, write, says("Written."), arguments=("--continue", "now write b"))
    told = str(scripted.requests[0].body["messages"][-2:])
    assert "1 file that you read was changed by somebody else" in told
    assert "- a.txt: changed" in told
    assert (project / "b.txt").read_text() == "two\n"


def test_a_conversation_that_was_compacted_keeps_what_the_model_read(project: Path) -> None:
    (project / "b.txt").write_text("one\n")
    read = calls(("call_1", "read_file", '{"path": "b.txt"}'))
    scripted = server(read, says("I read it."), says("Two."), says("Three."), says("A summary."))
    with serve_in_thread(lambda: scripted) as address:
        model = ("-m", "openai:m", "--base-url", f"{address}/v1")
        lines = "read it\n2?\n3?\n/compact\n"
        done = ferrule("code", *model, folder=project, typed=lines, **home(project))
    assert "messages were replaced by a summary" in done.stderr, done
    write = calls(("call_2", "write_file", '{"path": "b.txt", "content": "two\\n"}'))
    run_question(project, write, says("Written."), arguments=("--continue", "now write b"))
    assert (project / "b.txt").read_text() == "two\n"


def run_question(project: Path, *answers: Reply, arguments: tuple[str, ...]) -> ScriptedServer:
    """Ask one question without a terminal; files may be written."""
    scripted = server(*answers)
    with serve_in_thread(lambda: scripted) as address:
        model = ("-m", "openai:m", "--base-url", f"{address}/v1", "--profile", "accept-edits")
        done = ferrule("code", "-p", *arguments, *model, folder=project, **home(project))
    assert done.returncode == 0, done
    return scripted
