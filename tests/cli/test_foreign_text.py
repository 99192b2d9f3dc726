"""What others wrote, shown on a terminal by each command that shows any: it moves and hides nothing there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from terminals import Terminal

from ferrule.conversation import Conversation, Message, Text, ToolCall, ToolResult, assistant, user
from ferrule.formats.conversation_json import dumps
from ferrule.store import Store

HOSTILE = "\x1b]8;;http://x/\x07\x9b2J\u202e\u2066\u200b\U000e0041\x85"
FAMILY = "👨\u200d👩\u200d👧"
SAID = f"[red]{HOSTILE}[/red] {FAMILY}"
OWN = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")

TOOL = f"""
from ferrule import tool
from ferrule.errors import ToolFailed

SAID = {SAID!r}

@tool(read_only=True, description=SAID)
def say(name: str = "") -> str:
    if name:
        raise ToolFailed(name + SAID)
    return SAID
"""

CALLED = (
    f'<tool_call>{{"name": "say", "arguments": {{"name": "{SAID}"}}}}</tool_call><tool_call>{SAID}</tool_call>'.replace(
        "\x1b", "\\u001b"
    ).replace("\x07", "\\u0007")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "say_tool.py").write_text(TOOL)
    broken = folder / "broken"
    broken.mkdir()
    (broken / f"{HOSTILE.replace('/', '')}_tool.py").write_text("import nothing_of_this_name")
    (folder / "reply.txt").write_text(f"{SAID}<think>{SAID}</think>{CALLED}")
    talk = Conversation(
        (
            user(SAID),
            assistant(SAID, ToolCall("c1", f"say{HOSTILE}", '{"name": "x"}')),
            Message("tool", (ToolResult("c1", "say", (Text(SAID),)),)),
            assistant(SAID),
        )
    )
    with Store(folder / "kept.db") as store:
        (folder / "name").write_text(store.save(talk))
    (folder / "said.json").write_text(dumps(Conversation((user(SAID), assistant(SAID)))))
    return folder


# Each with what it must show, so that none passes by showing nothing.
COMMANDS = [
    (("tools", "."), "\\u202e"),
    (("tools", ".", "--json"), "\\u202e"),
    (("tools", "check", "broken"), "\\u202e"),
    (("call", "--yes", "--tools", ".", "say"), FAMILY),
    (("call", "--yes", "--tools", ".", "--json", "say"), "\\u202e"),
    (("call", "--yes", "--tools", ".", "say", "--name", "it: "), FAMILY),
    (("parse", "reply.txt", "--dialect", "hermes"), FAMILY),
    (("parse", "reply.txt", "--dialect", "hermes", "--json"), "\\u202e"),
    (("render", "said.json", "--tokenizer", "embedded"), FAMILY),
    (("history", "--store", "kept.db"), "\\u202e"),
    (("history", "show", "NAME", "--store", "kept.db"), FAMILY),
    (("ask", SAID, "--model", "echo"), FAMILY),
    (("ask", SAID, "--model", "echo", "--json"), "\\u202e"),
    (("parse", HOSTILE.replace("\0", ""), "--dialect", "hermes"), "\\u202e"),
]


@pytest.mark.parametrize(
    ("words", "shown"), COMMANDS, ids=lambda one: " ".join(one)[:20] if isinstance(one, tuple) else ""
)
def test_nothing_moves_or_hides(
    words: tuple[str, ...], shown: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    words = tuple((folder / "name").read_text() if word == "NAME" else word for word in words)
    with Terminal(*words) as terminal:
        terminal.ended()
        plain = OWN.sub("", terminal.shown)
    assert shown in plain
    left = set(plain) & set(HOSTILE.replace("http://x/", "")) - set("]8;2J")
    assert left == set(), plain
