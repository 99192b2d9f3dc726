"""`ferrule chat`, through a pipe and on a terminal: a conversation that goes on whatever happens to one answer."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import time
from pathlib import Path

import openai_server
import pytest
from terminals import COMMAND, Terminal, assert_refused, environment, ferrule, interrupted

from absent_path import NOWHERE
from ferrule.cli.errors import is_outage
from ferrule.errors import ProviderError

QUESTION = "What is 123456 * 789?"


def test_lines_of_a_pipe_are_one_conversation(reckoner: str) -> None:
    done = ferrule("chat", "--model", reckoner, typed=f"{QUESTION}\n\nAnd half of it?\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "▸ calculator  123456 * 789  →  97406784",
        "123,456 × 789 is 97,406,784.",
        "▸ calculator  97406784 / 2  →  48703392",
        "Half of it is 48,703,392.",
    ]


def test_what_was_read_before_is_not_read_again(reckoner: str) -> None:
    done = ferrule("chat", "--model", reckoner, "--json", typed=f"{QUESTION}\nAnd half of it?\n")
    ends = [event for line in done.stdout.splitlines() if (event := json.loads(line))["event"] == "finished"]
    assert [end["reason"] for end in ends] == ["done", "done"]
    # Two messages of the second turn, of which only the new question and one result are new to the engine.
    assert ends[1]["tokens"]["prompt"] - ends[1]["tokens"]["cached"] < 60


def test_a_saved_conversation_can_be_rendered(reckoner: str, tmp_path: Path) -> None:
    saved = tmp_path / "conversation.json"
    done = ferrule("chat", "--model", reckoner, typed=f"{QUESTION}\n/save {saved}\n")
    assert done.stderr == f"ferrule: saved 4 messages in {saved}\n"
    rendered = ferrule("render", saved, "--tokenizer", reckoner.removeprefix("local:"))
    assert "⟦<|python_start|>123456 * 789<|python_end|>⟧<|output_start|>97406784<|output_end|>" in rendered.stdout
    assert list(tmp_path.iterdir()) == [saved]


def test_new_begins_another_conversation_and_quit_ends(reckoner: str) -> None:
    done = ferrule("chat", "--model", reckoner, typed=f"{QUESTION}\n/new\n{QUESTION}\n/quit\n{QUESTION}\n")
    assert done.stdout == 2 * "▸ calculator  123456 * 789  →  97406784\n123,456 × 789 is 97,406,784.\n"


def test_what_is_wrong_with_one_line_does_not_end_the_chat(reckoner: str) -> None:
    lines = ("/save", f"/save {NOWHERE}/at/all", "/save --format nanochat", "/save --frmat x y", QUESTION)
    done = ferrule("chat", "--model", reckoner, typed="\n".join(lines))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "ferrule: /save needs a file name: /save FILE or /save --format FORMAT FILE",
        f"ferrule: {NOWHERE}/at/all: there is no folder '{NOWHERE}/at'; make it first",
        "ferrule: /save needs a file name: /save FILE or /save --format FORMAT FILE",
        "ferrule: /save has no option --frmat; write /save FILE or /save --format FORMAT FILE",
    ]
    assert done.stdout.endswith("123,456 × 789 is 97,406,784.\n")


def test_a_piped_chat_fails_if_an_answer_failed(chatterer: str) -> None:
    done = ferrule("chat", "--model", chatterer, "--max-tokens", "5", typed="Hello\n/new\n")
    assert (done.returncode, done.stderr) == (1, "ferrule: stopped: the answer reached its limit of tokens\n")


def test_a_provider_that_is_not_reached_has_an_exit_status_of_its_own() -> None:
    with socket.socket() as held:  # bound, and not listening
        held.bind(("127.0.0.1", 0))
        options = ("--model", "compatible:some-model", "--base-url", f"http://127.0.0.1:{held.getsockname()[1]}/v1")
        done = ferrule("ask", "Hello", *options)
        assert (done.returncode, done.stdout) == (3, ""), done
        chat = ferrule("chat", *options, "--json", typed="Hello\n")
        last = json.loads(chat.stdout.splitlines()[-1])
        assert (chat.returncode, last["reason"]) == (1, "error")
        assert chat.stderr == f"ferrule: {last['error']}\n"
    assert ferrule("ask", "Hello", "--model", "compatible:some-model").returncode == 2


@pytest.mark.parametrize(
    ("status", "is_one"), [(None, True), (500, True), (503, True), (429, True), (401, False), (404, False)]
)
def test_an_outage_is_what_may_work_later(status: int | None, is_one: bool) -> None:
    assert is_outage(ProviderError("it failed", status)) is is_one


async def test_an_empty_answer_is_said_to_be_one() -> None:
    async with openai_server.server(openai_server.says(""), judge=openai_server.lenient) as server:
        command = ("ask", "Hi", "-m", "vllm:m", "--base-url", f"{server.url}/v1")
        done = await asyncio.to_thread(ferrule, *command)
    assert (done.stdout.strip(), done.stderr) == ("", "ferrule: the answer is empty\n")


def test_quit_ends_whatever_follows_it() -> None:
    done = ferrule("chat", "--model", "echo", typed="/quit now\nHello\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_unknown_command_is_named_and_a_path_is_a_question() -> None:
    lines = ("/sav x", "/etc/hosts what is it?", "/tmp what is there?", " /sav x", "/frobnicate")
    done = ferrule("chat", "--model", "echo", typed="\n".join(lines))
    rest = "/help lists the commands, and a space before it makes it a question"
    assert done.stderr.splitlines() == [
        f"ferrule: unknown command /sav; did you mean /save? {rest}",
        f"ferrule: unknown command /frobnicate; {rest}",
    ]
    assert done.stdout.splitlines() == ["/etc/hosts what is it?", "/tmp what is there?", " /sav x"]


def test_help_lists_the_commands_on_stderr() -> None:
    done = ferrule("chat", "--model", "echo", typed="/help\n")
    assert done.stdout == ""
    listed = [line.split()[0] for line in done.stderr.splitlines()]
    assert listed == ["/new", "/save", "/save", "/quit", "/help", "Ctrl-C"]


def test_a_line_that_is_not_utf_8_is_refused(reckoner: str) -> None:
    assert_refused(ferrule("chat", "--model", reckoner, typed=b"\xff\n"), "standard input", "UTF-8")


def test_a_conversation_on_a_terminal(reckoner: str) -> None:
    with Terminal("chat", "--model", reckoner) as terminal:
        terminal.expect("› ")
        terminal.type(f"{QUESTION}\r")
        terminal.expect("123,456 × 789 is 97,406,784.")
        terminal.expect("› ")
        terminal.type("And half of it?\r")
        terminal.expect("▸ calculator  97406784 / 2  →  48703392")
        terminal.expect("Half of it is 48,703,392.")
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0


def test_control_c_stops_the_answer_and_nothing_else(chatterer: str) -> None:
    with Terminal("chat", "--model", chatterer) as terminal:
        for question in ("Hello", "Once more"):
            terminal.expect("› ")
            terminal.type(f"{question}\r")
            terminal.expect(f"{question}\r\n")
            terminal.type("\x03")
        terminal.expect("› ")
        time.sleep(0.5)  # readline shows its prompt before it minds signals
        terminal.type("\x03")
        terminal.expect("› ")
        terminal.type("/quit\r")
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.shown


def test_control_c_keeps_what_was_written(chatterer: str, tmp_path: Path) -> None:
    saved = tmp_path / "conversation.json"
    with Terminal("chat", "--model", chatterer, "--store", tmp_path / "kept.db", "--json") as terminal:
        terminal.expect("› ")
        terminal.type("Hello\r")
        for _ in range(3):
            terminal.expect('"event": "text"')
        terminal.type("\x03")
        terminal.expect('"reason": "cancelled"')
        terminal.expect("› ")
        terminal.type(f"/save {saved}\r")
        terminal.expect("saved 2 messages")
        terminal.type("/quit\r")
        assert terminal.ended() == 0
    question, answer = json.loads(saved.read_text())["messages"]
    assert (question["role"], answer["role"]) == ("user", "assistant")
    assert "2 messages" in ferrule("history", "--store", tmp_path / "kept.db").stdout


def test_control_c_while_a_tool_runs_leaves_a_conversation_that_goes_on(waiter: str, waiting_folder: Path) -> None:
    with Terminal("chat", "--model", waiter, "--tools", waiting_folder, "--yes", "--json") as terminal:
        terminal.expect("› ")
        terminal.type("Wait.\r")
        terminal.expect('"event": "progress"')
        terminal.type("\x03")
        terminal.expect('"reason": "cancelled"')
        terminal.expect("› ")
        terminal.type("/new\r")
        terminal.expect("› ")
        terminal.type("Wait.\r")
        terminal.expect('"answer": "I waited."')
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0


def test_control_c_while_a_tool_runs_shows_that_the_call_was_cancelled(waiter: str, waiting_folder: Path) -> None:
    with Terminal("chat", "--model", waiter, "--tools", waiting_folder, "--yes") as terminal:
        terminal.expect("› ")
        terminal.type("Wait.\r")
        terminal.expect("▸ wait  seconds=1    … ")
        terminal.type("\x03")
        terminal.expect("▸ wait  seconds=1  →  cancelled\r\n")
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0


def test_the_last_event_has_the_id_of_the_saved_conversation(tmp_path: Path) -> None:
    store = tmp_path / "kept.db"
    options = ("chat", "--model", "echo", "--json")
    kept = ferrule(*options, "--store", store, typed="One\nTwo\n/new\nThree\n")
    ends = [event for line in kept.stdout.splitlines() if (event := json.loads(line))["event"] == "finished"]
    first, again, other = (end["conversation"] for end in ends)
    assert first == again != other
    listed = json.loads(ferrule("history", "list", "--json", "--store", store).stdout)
    assert {one["id"] for one in listed} == {first, other}
    assert '"conversation"' not in ferrule(*options, typed="One\n").stdout


def test_a_person_is_asked_and_the_prompt_gets_its_line_back(waiter: str, waiting_folder: Path) -> None:
    with Terminal("chat", "--model", waiter, "--tools", waiting_folder) as terminal:
        terminal.expect("› ")
        terminal.type("Wait.\r")
        terminal.expect("▸ wait asks to run")
        terminal.expect("this session (every call of wait)?")
        terminal.type("\x03")
        terminal.expect("› ")
        terminal.type("/new\r")
        terminal.expect("› ")
        terminal.type("Wait.\r")
        terminal.expect("this session (every call of wait)?")
        terminal.type("y\r")
        terminal.expect("▸ wait  seconds=1  →  waited")
        terminal.expect("I waited.")
        terminal.expect("› ")
        terminal.type("/quit\r")
        assert terminal.ended() == 0


def test_always_holds_for_the_whole_chat(waiter: str, waiting_folder: Path) -> None:
    with Terminal("chat", "--model", waiter, "--tools", waiting_folder) as terminal:
        for answer in ("a\r", ""):
            terminal.expect("› ")
            terminal.type("Wait.\r")
            if answer:
                terminal.expect("this session (every call of wait)?")
                terminal.type(answer)
            assert "asks to run" not in terminal.expect("▸ wait  seconds=1  →  waited")
            terminal.expect("› ")
            terminal.type("/new\r")
        terminal.expect("› ")
        terminal.type("/quit\r")
        assert terminal.ended() == 0


def test_control_c_ends_a_chat_that_reads_a_pipe(chatterer: str) -> None:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, "chat", "--model", chatterer], env=environment(), **streams) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        process.stdout.read(3)
        assert interrupted(process) == (130, "")
