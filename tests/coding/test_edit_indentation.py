"""Edits and patches whose lines match only without regard to indentation: indented like the file, or refused."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.coding.files.edits import apply_edits
from ferrule.coding.files.patch_notation import parse_patch
from ferrule.coding.files.patches import patch_text
from ferrule.coding.files.text_files import TextFile
from ferrule.errors import ToolFailed
from tables import each_case

FILE = "class A:\n    def f(self):\n        if x:\n            return 1\n        return 2\n"
TABS = FILE.replace("    ", "\t")
UNCLEAR = None

EDITS = {
    "all lines without indentation, one changed": (
        FILE,
        "class A:\ndef f(self):\nif x:",
        "class A:\ndef f(self):\nif y:",
        FILE.replace("if x", "if y"),
    ),
    "one of the inner lines becomes two": (
        FILE,
        "class A:\ndef f(self):\nif x:\nreturn 1",
        "class A:\ndef f(self):\nif x:\nlog()\nreturn 2",
        FILE.replace("return 1", "log()\n            return 2"),
    ),
    "the new lines are indented like the file": (
        FILE,
        "class A:\ndef f(self):\nif x:\nreturn 1",
        "class A:\n    def f(self):\n        if y:\n            return 1",
        FILE.replace("if x", "if y"),
    ),
    "the first line was quoted from its first letter on": (
        FILE,
        "def f(self):\n        if x: \n            return 1",
        "def f(self):\n        if x:\n            return 3",
        FILE.replace("return 1", "return 3"),
    ),
    "indented by two spaces for each level": (
        FILE,
        "class A:\n  def f(self):\n    if x:\n      return 1",
        "class A:\n  def f(self):\n    if x:\n      while y:\n        return 1",
        FILE.replace("            return 1", "            while y:\n                return 1"),
    ),
    "spaces where the file has tabs": (
        TABS,
        "    def f(self):\n        if x:",
        "    def f(self):\n        if x:\n            log()",
        TABS.replace("if x:\n", "if x:\n\t\t\tlog()\n"),
    ),
    "a line is wrapped": (
        FILE,
        "  if x:\n      return 1",
        "  if z:\n      if x:\n          return 1",
        FILE.replace(
            "        if x:\n            return 1", "        if z:\n            if x:\n                return 1"
        ),
    ),
    "a line that stays keeps its quotes and the white space at its end": (
        "x = “a” \n  y = 1\n",
        'x = "a"\ny = 1',
        'x = "a"\ny = 2',
        "x = “a” \n  y = 2\n",
    ),
    "a line between two of different depth": (FILE, "if x:\nreturn 1", "if x:\nlog()\nreturn 1", UNCLEAR),
    "several lines of different depth become others": (FILE, "if x:\nreturn 1", "while y:\nlog()\nreturn 3", UNCLEAR),
    "a line after the last one": (FILE, "class A:\ndef f(self):", "class A:\ndef f(self):\nlog()", UNCLEAR),
    "an indentation that was not quoted": (
        FILE,
        "class A:\n def f(self):\n    if x:",
        "class A:\n def f(self):\n  log()\n    if x:",
        UNCLEAR,
    ),
}


@each_case("name", EDITS)
def test_new_lines_are_indented_like_those_that_they_replace(name: str) -> None:
    text, old, new, expected = EDITS[name]
    if expected is UNCLEAR:
        with pytest.raises(ToolFailed, match=r"that of `new` is unclear: quote `old` as it is at lines \d") as raised:
            apply_edits(TextFile(text), [{"old": old, "new": new}])
        assert f"-{old.splitlines()[-1]}" in raised.value.reason
        return
    edited = apply_edits(TextFile(text), [{"old": old, "new": new}])
    assert edited.file.text == expected
    assert "matched only after ignoring" in edited.notes[0]
    if "class" in text:
        ast.parse(edited.file.text)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6), st.data())
def test_a_line_that_changes_stays_where_it_is(depths: list[tuple[int, int]], data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, len(depths) - 1))
    real, quoted = ([f"{' ' * depth[side]}line {number}" for number, depth in enumerate(depths)] for side in (0, 1))
    new = [line.replace("line", "LINE") if number == changed else line for number, line in enumerate(quoted)]
    edited = apply_edits(TextFile("\n".join(real)), [{"old": "\n".join(quoted), "new": "\n".join(new)}])
    assert edited.file.text == "\n".join(real).replace(f"line {changed}", f"LINE {changed}")


PATCHES = {
    "one line for one": (" class A:\n def f(self):\n-if x:\n+if y:", FILE.replace("if x", "if y")),
    "between two of the same depth": (
        " if x:\n return 1\n-return 2\n+return 3",
        FILE.replace("return 2", "return 3"),
    ),
    "between two of different depth": (" def f(self):\n if x:\n+log()\n return 1", UNCLEAR),
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_is_indented_like_the_file(name: str) -> None:
    hunk, expected = PATCHES[name]
    [patch] = parse_patch(f"*** Begin Patch\n*** Update File: a.py\n@@\n{hunk}\n*** End Patch")
    if expected is UNCLEAR:
        with pytest.raises(ToolFailed, match="that of the new ones is unclear: quote lines 2 to 4"):
            patch_text(TextFile(FILE), patch.hunks)
    else:
        assert patch_text(TextFile(FILE), patch.hunks).file.text == expected
