"""Text of others on a terminal: nothing in it moves the cursor, turns the line or hides, and emoji stay whole."""

from __future__ import annotations

import json

import pytest

from ferrule._util.terminal_text import escape_json, escape_line, escape_text

HIDDEN = [
    "\0", "\x07", "\x08", "\r", "\x1b", "\x7f", "\x85", "\x9b", "\u00ad", "\u061c", "\u200b", "\u200e", "\u200f",
    "\u202a", "\u202e", "\u2028", "\u2029", "\u2060", "\u2066", "\u2069", "\ufeff", "\U000e0001", "\U000e0041",
    "\U000e0100", "\u3164", "\ud800", "\ue000",
]  # fmt: skip


@pytest.mark.parametrize("character", HIDDEN)
def test_what_moves_the_cursor_or_hides_is_written_as_its_escape(character: str) -> None:
    escape = character.encode("unicode_escape", "surrogatepass").decode()
    for text in (character, f"a{character}b", f"👩{character}", f"\n{character}\t"):
        assert escape_text(text) == text.replace(character, escape)
        assert character not in escape_line(text)
    assert json.loads(escape_json([character])) == [character]


@pytest.mark.parametrize(
    "character",
    [one for one in HIDDEN if one >= "\x7f" and one not in "\u3164\ue000\U000e0100"],
)
def test_json_stays_json_and_turns_no_line(character: str) -> None:
    assert character not in escape_json({"a": character})


WRITTEN = [
    "several\nlines\twith tabs\n",
    "grün 猫 e\u0301 \u00a0 \u3000",
    "👨\u200d👩\u200d👧\u200d👦 👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈 1\ufe0f\u20e3 ©\ufe0f \U0001fae8",
    "می\u200cخواهم ක්\u200dෂ",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_what_people_write_stays(text: str) -> None:
    assert escape_text(text) == text
    shown = ""
    for piece in text:  # as it streams
        shown += escape_text(piece, shown)
    assert shown == text


@pytest.mark.parametrize(
    "text", ["a\u200db", "a\ufe0f", "👩\u200d\u200d", "❤\ufe0f\ufe0f", "x\u200cy", "\u200d", " \ufe0f"]
)
def test_what_joins_nothing_is_written_as_its_escape(text: str) -> None:
    assert escape_text(text) != text
    assert "\\u" in escape_text(text)
