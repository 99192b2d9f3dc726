"""Text of others on a terminal: nothing in it moves the cursor, turns the line or hides, and emoji stay whole."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from unicodedata import category, combining

import pytest

from ferrule._util.terminal_text import escape_json, escape_line, escape_text
from ferrule._util.unicode_tables import DEFAULT_IGNORABLE_CODE_POINT, PREPENDED_CONCATENATION_MARK
from ferrule.pages.elements import show_hidden

sys.path.append(str(Path(__file__).parents[2] / "docs"))

from write_unicode_tables import INSTALLED, TABLE, write_tables

from tables import each_case

HIDDEN = [
    "\0", "\x07", "\x08", "\r", "\x1b", "\x7f", "\x85", "\x9b", "\u00ad", "\u061c", "\u200b", "\u200e", "\u200f",
    "\u202a", "\u202e", "\u2028", "\u2029", "\u2060", "\u2066", "\u2069", "\ufeff", "\U000e0001", "\U000e0041",
    "\U000e0100", "\u3164", "\ud800", "\ue000", "\u180b", "\u180e", "\u180f", "\u034f", "\u2065", "\ufff0",
    "\U0001bca0", "\U0001d173", "\U000e0fff", "\u0334", "\u0336", "\u20d2", "\u20eb", "\u0489", "\u1abe",
    "\u20dd", "\u20e3", "\ua670", "\u1cd4",
]  # fmt: skip


@each_case("character", HIDDEN)
def test_what_moves_the_cursor_or_hides_is_written_as_its_escape(character: str) -> None:
    escape = character.encode("unicode_escape", "surrogatepass").decode()
    for text in (character, f"a{character}b", f"👩{character}", f"\n{character}\t"):
        assert escape_text(text) == text.replace(character, escape)
        assert character not in escape_line(text)
    assert json.loads(escape_json([character])) == [character]


def test_no_ignorable_overlaying_or_enclosing_character_passes_in_any_form() -> None:
    every = "".join(map(chr, range(0x110000)))
    ignorable = re.findall(f"[{DEFAULT_IGNORABLE_CODE_POINT}]", every)
    assert len(ignorable) == 4174
    covering = [one for one in every if combining(one) == 1 or category(one) == "Me"]
    unprintable = [one for one in every if category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    hidden = {*ignorable, *covering, *unprintable} - set(re.findall(f"[{PREPENDED_CONCATENATION_MARK}]", every))
    text = "a".join(hidden)
    assert not hidden & set(escape_line(text))
    for shown in (escape_text(text), escape_json(text), show_hidden(text)):
        assert not (hidden - {"\n", "\t"}) & set(shown)


@pytest.mark.skipif(not INSTALLED.exists(), reason="the Unicode Character Database is missing")
def test_the_table_is_what_the_database_says() -> None:
    assert TABLE.read_text("utf-8") == write_tables(INSTALLED), "write it: python docs/write_unicode_tables.py"


WRITTEN = [
    "several\nlines\twith tabs\n",
    "grün 猫 e\u0301 \u00a0 \u3000",
    "👨\u200d👩\u200d👧\u200d👦 👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈 1\ufe0f\u20e3 ©\ufe0f \U0001fae8",
    "می\u200cخواهم ක්\u200dෂ",
    "ᠮᠣᠩᠭᠣᠯ ᠪᠦᠷ\u180b ᠠᠴᠠ\u180eᠠ ᠭ\u180f",
    "a \u2260 b, a =\u0338 b, 2\u20e3 ३\u1cd4 \U00016ad0\U00016af0 الله\u06dd cafe\u0301\u0323",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_what_people_write_stays(text: str) -> None:
    assert escape_text(text) == text
    shown = ""
    for piece in text:  # as it streams
        shown += escape_text(piece, shown)
    assert shown == text == show_hidden(text)
    assert escape_json(text) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize("text", ["e\u0301 =\u0338", "क\u0903\u1ce2 \U00016ad0\U00016af0", "לָ مُ"])
def test_marks_of_ordinary_writing_stay_in_a_line(text: str) -> None:
    assert escape_line(text) == text


@each_case(
    "text",
    [
        *("a\u200db", "a\ufe0f", "👩\u200d\u200d", "❤\ufe0f\ufe0f", "x\u200cy", "\u200d", " \ufe0f"),
        *("a\u180b", "ᠠ\u180b\u180b", "a\u1cd4", "क\u0338", "ᚠ\U00016af0", "a\ufe0f\u20e3", "⚠\u20e3", "=\u0337"),
    ],
)
def test_what_joins_nothing_is_written_as_its_escape(text: str) -> None:
    assert escape_text(text) != text
    assert "\\u" in escape_text(text).lower()
