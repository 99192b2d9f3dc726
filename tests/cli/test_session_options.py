"""The options that `ask` and `chat` share: what they send, what they offer, and what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import openai_server
import pytest
from terminals import assert_refused, ferrule

from ferrule.conversation import Conversation, Image
from ferrule.store import Store

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16
KEY = "test-key"
TOOLS = '''\
"""Two tools, one of which only reads."""

from ferrule import tool


@tool(read_only=True)
def shout(text: str) -> str:
    """Shout a text."""
    return text.upper()


@tool
def whisper(text: str) -> str:
    """Whisper a text."""
    return text.lower()
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "voices.py"
    path.write_text(TOOLS)
    return path


def kept(path: Path) -> list[Conversation]:
    with Store(path) as store:
        return [store.load(one.id).conversation for one in store.list()]


@pytest.mark.parametrize("command", ["ask", "chat", "models", "call", "history list"])
def test_the_short_help_is_the_help(command: str) -> None:
    assert ferrule(*command.split(), "-h").stdout == ferrule(*command.split(), "--help").stdout != ""


def test_a_new_conversation_begins_with_the_system_text(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    options = ("-m", "echo", "-s", "Be brief.", "--store", path)
    assert ferrule("ask", "One", *options).stdout == "One\n"
    assert ferrule("chat", *options, typed="Two\n/new\nThree\n").stdout == "Two\nThree\n"
    told = [[(one.role, one.text) for one in each.messages[:2]] for each in kept(path)]
    assert sorted(told) == [[("system", "Be brief."), ("user", name)] for name in ("One", "Three", "Two")]


async def test_attachments_go_with_the_first_question(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("The sky is green.\n")
    (tmp_path / "dot.png").write_bytes(PNG)
    files = ("-a", "notes.txt", "--attachment", "dot.png")
    async with openai_server.server(openai_server.says("Green."), openai_server.says("Yes.")) as server:
        options = ("-m", "openai:gpt-5", "--base-url", f"{server.url}/v1", "--no-tools", *files)
        done = await asyncio.to_thread(
            ferrule, "chat", *options, typed="What colour?\nSure?\n", folder=tmp_path, OPENAI_API_KEY=KEY
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Green.\nYes.\n", "")
    first, second = (request.body["messages"] for request in server.requests)
    question = first[0]["content"]
    assert [part["type"] for part in question] == ["text", "text", "image_url"]
    assert question[1]["text"].strip() == '<file name="notes.txt">\nThe sky is green.\n</file>'
    assert [second[0], second[2]["content"]] == [first[0], "Sure?"]
    assert not any("tools" in request.body for request in server.requests)


def test_an_image_for_a_model_that_reads_none_is_reported(reckoner: str, tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PNG)
    done = ferrule("ask", "What is 123456 * 789?", "-m", reckoner, "-a", tmp_path / "dot.png", "--max-tokens", "5")
    assert "not preserved  image: " in done.stdout
    assert Image(PNG).hash in done.stdout


def test_echo_reports_an_image_that_it_does_not_repeat(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PNG)
    done = ferrule("ask", "Hi", "-m", "echo", "-a", tmp_path / "dot.png")
    assert done.stdout.splitlines() == [f"not preserved  image: {Image(PNG).hash}", "Hi"]


async def test_documents_and_sound_are_sent_as_such_or_reported(tmp_path: Path) -> None:
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.7\n\xe2\xe3")
    (tmp_path / "voice").write_bytes(b"RIFF\0\0\0\0WAVEfmt ")
    files = ("-a", "report.pdf", "-a", "voice")
    async with openai_server.server(*[openai_server.says("Read.")] * 2, judge=openai_server.lenient) as server:
        asked = []
        for model in ("openai:gpt-5", "vllm:m"):
            options = ("-m", model, "--base-url", f"{server.url}/v1", "--no-tools", *files)
            asked.append(
                await asyncio.to_thread(ferrule, "ask", "What?", *options, folder=tmp_path, OPENAI_API_KEY=KEY)
            )
    assert [part["type"] for part in server.requests[0].body["messages"][0]["content"]] == [
        "text",
        "file",
        "input_audio",
    ]
    assert asked[0].stdout == "Read.\n"
    assert "not preserved  file: " in asked[1].stdout


def test_standard_input_can_be_attached() -> None:
    done = ferrule("ask", "Look:", "-m", "echo", "-a", "-", typed="piped\n")
    assert done.stdout == 'Look:\n\n<file name="standard input">\npiped\n</file>\n'
    assert_refused(ferrule("ask", "-", "-m", "echo", "-a", "-"), "question or an attachment")


def test_attachments_that_can_not_be_sent(tmp_path: Path) -> None:
    (tmp_path / "notes.docx").write_bytes(b"PK\x03\x04\0\xff")
    (tmp_path / "empty.txt").write_text("\n")
    for name, *words in (
        ("notes.docx", "notes.docx", "neither UTF-8 text nor an image, PDF, audio or video file"),
        ("empty.txt", "empty.txt", "empty"),
        ("missing.txt", "missing.txt", "No such file"),
        (".", "directory"),
        ("/dev/zero", "/dev/zero", "longer than 20 MB"),
        ("https://example.com/a.png", "addresses are not fetched"),
    ):
        assert_refused(ferrule("ask", "Hi", "-m", "echo", "-a", name, folder=tmp_path), *words)


def test_a_tool_file_is_trusted_and_what_is_not_read_only_still_asks(tools: Path) -> None:
    assert ferrule("call", "--tools", tools, "shout", "--text", "hi").stdout == "HI\n"
    done = ferrule("call", "--tools", tools, "whisper", "--text", "HI")
    assert (done.returncode, done.stdout) == (1, "")
    assert "denied" in done.stderr
    assert "shout  (from code, reads only)" in ferrule("tools", tools).stdout
    # In a folder, the same declaration only counts for those who trust it.
    tools.rename(tools.with_name("voices_tool.py"))
    assert "denied" in ferrule("call", "--tools", tools.parent, "shout", "--text", "hi").stderr


def test_a_tool_file_that_can_not_be_used(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "bare.py").write_text("answer = 42\n")
    (tmp_path / "notes.txt").write_text("no tool")
    for name, *words in (
        ("broken.py", "broken.py", "No module named 'nothing_of_this_name'", "line 1"),
        ("bare.py", "bare.py", "@tool"),
        ("notes.txt", "notes.txt", "not a Python file"),
        ("missing.py", "missing.py", "no such file or folder"),
    ):
        assert_refused(ferrule("ask", "Hi", "-m", "echo", "--tools", name, folder=tmp_path), *words)


def test_options_that_contradict_each_other(tools: Path) -> None:
    for options, words in (
        (("--no-tools", "--tools", tools), "--no-tools and --tools"),
        (("--no-tools", "--plugins"), "--no-tools and --plugins"),
        (("--no-tools", "--mcp", "true"), "--no-tools and --mcp"),
        (("--resume", "x", "--system", "y"), "--resume and --system"),
    ):
        assert_refused(ferrule("ask", "Hi", "-m", "echo", *options), f"{words} can't be used together")


def test_ask_resumes_a_conversation(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    done = ferrule("ask", "One", "-m", "echo", "--store", path)
    name = done.stderr.split()[-1]
    assert ferrule("ask", "Two", "-m", "echo", "--store", path, "--resume", name).stdout == "Two\n"
    (conversation,) = kept(path)
    assert [one.text for one in conversation.messages] == ["One", "One", "Two", "Two"]
    assert_refused(ferrule("ask", "Hi", "-m", "echo", "--store", path, "--resume", "nothing"), "nothing")
