"""What `ferrule chat` looks like: a banner, Markdown, words that aren't broken, and the lines typed before."""

from __future__ import annotations

import re
from pathlib import Path

from terminals import Terminal, ferrule

from ferrule import __version__

FAMILY = "👨‍👩‍👧‍👦"
CLEARED = re.compile(r"\r(?:\x1b\[\d+A)?\x1b\[J")


def say(text: str, **changes: str) -> str:
    """What a chat shows when the model says this, from the end of the question to the next prompt."""
    with Terminal("chat", "--model", "echo", **changes) as terminal:
        terminal.expect("› ")
        terminal.type(f"{text}\r")
        terminal.expect("\r\n")
        # Not the end of what is shown: the answer may have come in the same read.
        start = terminal.shown.index("\r\n", terminal.shown.index("› ")) + 2
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0
        return terminal.shown[start:]


def test_a_chat_begins_with_its_model_and_tools_on_a_terminal_only() -> None:
    with Terminal("chat", "--model", "echo") as terminal:
        terminal.expect(f"ferrule {__version__}, model echo, tools: calculator\r\n")
        terminal.expect("/help lists the commands, Ctrl-D ends\r\n")
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0
    assert ferrule("chat", "--model", "echo", typed="Hello\n").stdout == "Hello\n"
    with Terminal("chat", "--model", "echo", "--json") as terminal:
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0
        assert "tools:" not in terminal.shown


def test_markdown_is_rendered_in_place_of_its_source() -> None:
    shown = say("Some **bold** words, <b>html</b> and ![a picture](http://host/x.png)")
    *_, rendered = CLEARED.split(shown)
    assert "\x1b[1mbold\x1b[0m" in rendered
    assert "<b>html</b>" in rendered, "nothing is hidden"
    assert "http://host/x.png" in rendered


def test_plain_text_is_shown_once() -> None:
    shown = say("Nothing special, 2 * 3 * 4 = 24.")
    assert shown.count("Nothing special") == 1
    assert not CLEARED.search(shown)


def test_without_colours_markdown_has_its_form() -> None:
    shown = say("- an item with `code`", NO_COLOR="1")
    assert " • an item with code" in re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert not re.search(r"\x1b\[(?:\d+;)*[34]\d", shown)


def test_a_dumb_terminal_gets_the_text_as_written() -> None:
    shown = say("**bold** words", TERM="dumb")
    assert "**bold** words" in shown
    assert not CLEARED.search(shown)


def test_twenty_columns_break_lines_at_words_and_no_line_is_wider() -> None:
    shown = say("Supercalifragilisticexpialidocious words, a family too", COLUMNS="20")
    assert shown.splitlines()[:4] == ["Supercalifragilisti", "cexpialidocious", "words, a family too", "› "]


def test_wide_characters_break_anywhere_and_a_family_stays_together() -> None:
    shown = say("你好世界你好世界你好世界" + FAMILY, COLUMNS="20")
    assert shown.splitlines()[:2] == ["你好世界你好世界你", "好世界" + FAMILY]


def test_an_encoding_without_our_signs_gets_ascii() -> None:
    with Terminal("chat", "--model", "echo", PYTHONIOENCODING="ascii") as terminal:
        terminal.expect("> ")
        terminal.type("12 x 3\r")
        terminal.expect("12 x 3\r\n12 x 3\r\n> ")
        terminal.type("\x04")
        assert terminal.ended() == 0
    with Terminal("parse", "-", "--dialect", "hermes", PYTHONIOENCODING="ascii") as terminal:
        terminal.type('<tool_call>{"name": "f", "arguments": {"a": "3 \\u00d7 4 \\u2192 \\u4f60"}}</tool_call>\r\x04')
        terminal.expect("> f  3 x 4 -> \\u4f60")
        assert terminal.ended() == 0


def test_typed_lines_come_back_in_the_next_chat(tmp_path: Path) -> None:
    with Terminal("chat", "--model", "echo", XDG_STATE_HOME=str(tmp_path)) as terminal:
        terminal.expect("› ")
        terminal.type("a line to remember\r")
        terminal.expect("a line to remember\r\n")
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0
    kept = tmp_path / "ferrule" / "chat_history"
    assert kept.read_text().splitlines()[-1] == "a line to remember"
    assert kept.stat().st_mode & 0o777 == 0o600
    with Terminal("chat", "--model", "echo", XDG_STATE_HOME=str(tmp_path)) as terminal:
        terminal.expect("› ")
        terminal.type("\x1b[A")
        terminal.expect("a line to remember")
        terminal.type("\r")
        terminal.expect("a line to remember")
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0


def test_a_chat_works_where_no_history_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "ferrule").write_text("not a folder")
    with Terminal("chat", "--model", "echo", XDG_STATE_HOME=str(tmp_path)) as terminal:
        terminal.expect("› ")
        terminal.type("Hello\r")
        terminal.expect("Hello\r\nHello")
        terminal.expect("› ")
        terminal.type("\x04")
        assert terminal.ended() == 0
