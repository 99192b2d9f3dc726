"""Shows text on a terminal as it comes, wrapped at words; a Markdown block is rendered once it is complete.

A block is shown as written at first, so that nothing has to be waited for, and is then replaced by its rendering.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_RUNS = re.compile(r"\n|[^\S\n]+|\S+")
_FENCES = ("```", "~~~")
_JOINER = "\u200d"


def measure_width(text: str) -> int:
    """The most columns that a text may take: terminals that don't join emoji show each one of a family."""
    if text.isascii():
        return len(text)
    from rich.cells import get_character_cell_size

    return sum(map(get_character_cell_size, text))


def truncate(text: str, width: int) -> str:
    """The beginning of a text that takes at most `width` columns, ending in `…` if it isn't all."""
    if measure_width(text) <= width:
        return text
    while text and measure_width(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


class StreamedText:
    """One text, such as an answer. What is written to it must be escaped for a terminal already.

    With `is_markdown`, complete blocks are rendered; `style` is for a text that isn't Markdown. `margin` stands before
    each line.
    """

    def __init__(self, console: Console, *, is_markdown: bool, style: str = "", margin: str = "") -> None:
        self._console = console
        self._is_markdown = is_markdown
        self._style = style
        self._margin = margin
        self._is_fenced = False
        self._source = ""
        self._lines = [""]
        self._width = self._find_width()
        self._newlines = 0
        self._spaces = ""
        self._word = ""

    def write(self, text: str) -> None:
        """Show more of the text. The last word is shown once it is complete."""
        for run in _RUNS.findall(text):
            if run == "\n":
                self._end_line()
            elif run.isspace():
                self._show_word()
                self._spaces += run.replace("\t", "    ")
            else:
                self._add_to_word(run)
            self._source += run
        sys.stdout.flush()

    def finish(self, is_cut_off: bool = False) -> None:
        """Show the rest, and end the last line; a text that is cut off stays as it was written."""
        self._end_block(is_cut_off)
        self._print("\n")
        sys.stdout.flush()

    def _find_width(self) -> int:
        # Not the last column: terminals differ in what comes after it.
        return max(4, self._console.width - 1 - len(self._margin))

    def _end_line(self) -> None:
        self._show_word()
        if not self._newlines and self._source.rpartition("\n")[2].lstrip().startswith(_FENCES):
            self._is_fenced = not self._is_fenced
        self._newlines += 1
        self._spaces = ""

    def _add_to_word(self, run: str) -> None:
        if not self._word and self._newlines:
            self._begin_line()
        for character in run:
            # Scripts of wide characters have no spaces: a line may end before each of them.
            is_wide = not character.isascii() and measure_width(character) == 2
            if is_wide and self._word and not self._word.endswith(_JOINER):
                self._show_word()
            self._word += character
            if len(self._word) > self._width:
                self._show_word()

    def _begin_line(self) -> None:
        is_new_block = self._newlines > 1 and not self._spaces and not self._is_fenced and self._source.strip()
        if is_new_block:
            self._end_block()
            self._print("\n\n")
        elif self._source.strip():
            self._show_newlines(self._newlines)
        self._newlines = 0

    def _show_newlines(self, count: int) -> None:
        self._print("\n" * count)
        self._lines += [""] * count

    def _show_word(self) -> None:
        """Show the word with the spaces before it, on the next line if this one has no room for it."""
        if not self._word:
            return
        if self._lines[-1] and measure_width(self._lines[-1] + self._spaces + self._word) > self._width:
            self._show_newlines(1)
            self._spaces = ""
        text, self._spaces, self._word = self._spaces + self._word, "", ""
        while measure_width(text) > self._width:
            head = text[: max(1, self._width // 2)] if not text.isascii() else text[: self._width]
            self._show(head)
            self._show_newlines(1)
            text = text[len(head) :]
        self._show(text)

    def _show(self, text: str) -> None:
        self._print(text if self._lines[-1] or not text else f"{self._margin}{text}")
        self._lines[-1] += text

    def _print(self, text: str) -> None:
        if self._style and text.strip():
            self._console.print(text, style=self._style, end="", markup=False, emoji=False)
        else:
            sys.stdout.write(text)

    def _end_block(self, is_cut_off: bool = False) -> None:
        """Replace the block by its rendering, unless it has scrolled out of reach or was wrapped for another width."""
        self._show_word()
        source, shown = self._source, self._lines
        is_reachable = len(shown) < self._console.height and self._width == self._find_width()
        if self._is_markdown and is_reachable and not is_cut_off and source.strip():
            from ferrule.session.terminal.markdown import render_markdown

            rendered = render_markdown(source, self._console, self._width)
            if any(line.spans for line in rendered) or [line.plain for line in rendered] != shown:
                up = f"\x1b[{len(shown) - 1}A" if len(shown) > 1 else ""
                sys.stdout.write(f"\r{up}\x1b[J")
                for number, line in enumerate(rendered):
                    sys.stdout.write(self._margin if line.plain else "")
                    self._console.print(line, end="\n" if number < len(rendered) - 1 else "")
        self._source, self._lines, self._newlines, self._spaces = "", [""], 0, ""
        self._width = self._find_width()
