"""What is typed or piped into `ask` and `chat`: it arrives as it was written, or is refused."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from terminals import COMMAND, Terminal, assert_refused, environment, ferrule

JAPANESE = "日本語で答えて"


@pytest.mark.parametrize("variables", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "xx_YY.UTF-8"}])
def test_characters_typed_in_a_plain_locale_arrive(variables: dict[str, str], tmp_path: Path) -> None:
    with Terminal("chat", "--model", "echo", "--store", tmp_path / "kept.db", **variables) as terminal:
        terminal.expect("› ")
        terminal.type(f"{JAPANESE}\r")
        terminal.expect("\r\n")
        assert JAPANESE in terminal.expect("› ")
        terminal.type("hé\r")
        terminal.expect("\r\n")
        assert "hé" in terminal.expect("› ")
        terminal.type("/quit\r")
        assert terminal.ended() == 0
    shown = ferrule("history", "search", JAPANESE, "--store", tmp_path / "kept.db").stdout
    assert JAPANESE in shown


def test_tab_lists_no_files() -> None:
    with Terminal("chat", "--model", "echo") as terminal:
        terminal.expect("› ")
        terminal.type("\t\thi\r")
        terminal.expect("hi\r\n")
        terminal.expect("› ")
        assert "pyproject.toml" not in terminal.shown


def test_bytes_typed_that_are_not_utf_8_are_refused_by_name() -> None:
    # With standard output in a pipe the line isn't read by readline, which leaves such bytes out.
    master, slave = pty.openpty()
    os.write(master, b"caf\xe9\rhello\r\x04")
    done = subprocess.run(
        [*COMMAND, "chat", "--model", "echo"], stdin=slave, capture_output=True, env=environment({"LC_ALL": "C"}),
        timeout=300, check=True,
    )  # fmt: skip
    os.close(slave)
    os.close(master)
    assert done.stdout == b"hello\n"
    assert b"that line is not UTF-8 text" in done.stderr


def test_piped_text_comes_before_the_question(tmp_path: Path) -> None:
    done = ferrule("ask", "Summarize this.", "--model", "echo", typed="The ferrule binds.\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "The ferrule binds.\n\nSummarize this.\n", "")
    assert ferrule("ask", "Hello", "--model", "echo").stdout == "Hello\n"
    (tmp_path / "notes.txt").write_text("From a file.\n")
    with (tmp_path / "notes.txt").open() as notes:
        redirected = subprocess.run(
            [*COMMAND, "ask", "What?", "--model", "echo"], stdin=notes, capture_output=True, text=True,
            env=environment(), check=True,
        )  # fmt: skip
    assert redirected.stdout == "From a file.\n\nWhat?\n"


def test_a_person_is_asked_at_the_terminal_also_if_the_question_is_piped(waiter: str, waiting_folder: Path) -> None:
    with Terminal("ask", "-", "--model", waiter, "--tools", waiting_folder, piped="Wait.\n") as terminal:
        terminal.expect("this session (every call of wait)?")
        terminal.type("y\r")
        terminal.expect("▸ wait  seconds=1  →  waited")
        terminal.expect("I waited.")
        assert terminal.ended() == 0


def test_piped_text_is_sent_once_where_it_is_an_attachment() -> None:
    done = ferrule("ask", "What?", "-a", "-", "--model", "echo", typed="only once\n")
    assert done.stdout.count("only once") == 1


def test_a_pipe_that_brings_nothing_is_left_with_a_notice() -> None:
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [*COMMAND, "ask", "Hello", "--model", "echo"], stdin=reading, capture_output=True, text=True,
            env=environment(), timeout=300, check=True,
        )  # fmt: skip
    finally:
        os.close(reading)
        os.close(writing)
    assert done.stdout == "Hello\n"
    assert done.stderr.startswith("ferrule: nothing came on standard input for 5 seconds")


def test_piped_bytes_and_arguments_that_are_not_utf_8_are_refused() -> None:
    assert_refused(ferrule("ask", "What?", "--model", "echo", typed=b"\xff\xfe"), "standard input", "UTF-8")
    done = subprocess.run([*COMMAND, "ask", b"caf\xe9", "--model", "echo"], capture_output=True, env=environment(),
        stdin=subprocess.DEVNULL, check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"ferrule: the question is not UTF-8 text\n"
