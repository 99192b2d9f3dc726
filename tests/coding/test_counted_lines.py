"""The lines that are counted are those of the file or the result, without notes and the end after the last newline."""

from __future__ import annotations

from pathlib import Path

import pytest
from called_tools import call_tool

from ferrule.coding.attached_files import load_attachment
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.search.tools import make_search_tools
from ferrule.coding.workspace import Workspace
from ferrule.conversation import Text
from ferrule.session.terminal.call_lines import summarize_lines


@pytest.mark.parametrize(("content", "shown"), [
    ("a\n", "1 line"), ("a", "1 line"), ("a\nb\n", "2 lines"), ("a\nb", "2 lines"), ("a\r\nb\r\n", "2 lines"),
    ("a\n\n", "2 lines"), ("", "[a.txt is empty]"),
])  # fmt: skip
async def test_lines_that_were_read(tmp_path: Path, content: str, shown: str) -> None:
    (tmp_path / "a.txt").write_bytes(content.encode())
    result = await call_tool(make_file_tools(Workspace(tmp_path)), "read_file", path="a.txt")
    assert summarize_lines(result, with_diff=True) == (shown, [])


async def test_lines_that_were_found(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n" * 30)
    tools = make_search_tools(Workspace(tmp_path))
    many = await call_tool(tools, "search", pattern="x", max_results=3)
    assert summarize_lines(many, with_diff=True) == ("3 lines", [])
    none = await call_tool(tools, "search", pattern="é")
    summary, below = summarize_lines(none, with_diff=True)
    assert summary == "No matches found for pattern 'é' in ."
    assert len(below) == 1


def test_lines_of_an_attached_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(("x" * 99 + "\n") * 600)
    attached = load_attachment("a.txt", Workspace(tmp_path))
    assert isinstance(attached, Text)
    assert "[cut after line 500 of 600: read the rest with read_file]" in attached.text
