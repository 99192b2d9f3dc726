"""Text on a terminal as it comes: whatever the pieces, the screen ends up the same, and no line is too wide."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from ferrule.session.terminal.streamed_text import StreamedText, measure_width, truncate

FAMILY = "👨‍👩‍👧‍👦"
ANSWER = f"""# Heading
Some **bold** text with `code`, and a [link](https://example.com/x).
The second line <b>html</b> &#8238; stays.

- one item
- two {FAMILY} family

  still two

3. third

```python
def f():

    return "a long line of code that doesn't fit into twenty columns"
```

| a | b |
|---|---|
| 1 | 你好世界你好世界你好世界 |

你好世界你好世界你好世界 2 * 3 * 4 = 24"""

_MOVES = re.compile(r"\x1b\[(\d*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


def replay(written: str) -> list[str]:
    """The lines of a terminal of unlimited height after this was written to it."""
    lines, row = [""], 0
    for number, action, returned, ended, text in _MOVES.findall(written):
        if action == "A":
            row -= int(number)
            assert row >= 0
        elif action == "J":
            del lines[row + 1 :]
            lines[row] = ""
        elif ended:
            row += 1
            if row == len(lines):
                lines.append("")
        elif text:
            lines[row] += text
        assert not returned or "\x1b[J" in written
    return [line.rstrip() for line in lines]


def show(text: str, size: int, width: int, capsys: pytest.CaptureFixture[str], height: int = 100) -> str:
    console = Console(
        force_terminal=True, color_system=None, width=width, height=height, soft_wrap=True, highlight=False
    )
    streamed = StreamedText(console, is_markdown=True)
    for start in range(0, len(text), size):
        streamed.write(text[start : start + size])
    streamed.finish()
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [12, 20, 80])
def test_the_screen_is_the_same_whatever_the_pieces(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    whole = replay(show(ANSWER, len(ANSWER), width, capsys))
    for size in (1, 3, 7):
        assert replay(show(ANSWER, size, width, capsys)) == whole
    assert max(measure_width(line.replace("─", "")) for line in whole if FAMILY[0] not in line) < width
    shown = re.sub(r"\s+", "", "".join(whole))
    for piece in (
        "Heading",
        "bold",
        "https://example.com/x",
        "<b>html</b>",
        "&#8238;",
        "stilltwo",
        "你好世界" * 3,
        "2*3*4=24",
    ):
        assert piece in shown, piece
    for lost in ("**", "```", "# "):
        assert lost not in "".join(whole)


def test_a_line_end_stays_one_and_a_heading_is_not_centred(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(show("# Title\n\nRoses are red\nviolets are *blue*", 4, 60, capsys)) == [
        "Title", "", "Roses are red", "violets are blue", "",
    ]  # fmt: skip


def test_a_block_taller_than_the_terminal_stays_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    written = show("\n".join(["*line*"] * 12), 5, 60, capsys, height=8)
    assert "\x1b[J" not in written
    assert written.count("*line*") == 12


def test_an_answer_that_is_cut_off_stays_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    streamed = StreamedText(Console(force_terminal=True, width=60), is_markdown=True)
    streamed.write("some **bo")
    streamed.finish(is_cut_off=True)
    assert capsys.readouterr().out == "some **bo\n"


def test_a_line_is_cut_by_the_most_columns_it_may_take() -> None:
    assert truncate("short", 10) == "short"
    assert truncate("a longer text", 8) == "a longe…"
    assert measure_width(truncate(FAMILY * 5, 10)) <= 10
