"""Cuts streamed Markdown into blocks, and renders those that are complete; the rest is shown as it is written."""

from __future__ import annotations

import io
from collections.abc import Iterable

from ferrule._util.terminal_text import escape_text

MARGIN = "  "
"""What stands before each line that a model has written: the program's own lines begin in the first column."""
_FENCES = ("```", "~~~")


class MarkdownBlocks:
    """One text, such as an answer. A block ends at an empty line outside of a fence."""

    def __init__(self) -> None:
        self._source = ""
        self._last = ""

    @property
    def rest(self) -> str:
        """What isn't complete yet, escaped for a terminal."""
        return self._source

    def write(self, text: str) -> list[str]:
        """Take a piece of the text; returns the blocks that are complete now."""
        self._source += escape_text(text, self._last)
        self._last = (self._last + text)[-2:]
        blocks, start, fence, place = [], 0, "", 0
        lines = self._source.split("\n")
        for line in lines[:-1]:
            place += len(line) + 1
            begins = line.lstrip()[:3]
            if begins in _FENCES and fence in ("", begins):
                fence = "" if fence else begins
            if not line.strip() and not fence:
                blocks.append(self._source[start:place].strip("\n"))
                start = place
        self._source = self._source[start:]
        return [block for block in blocks if block.strip()]

    def close(self) -> str:
        """Return the last block, complete or not."""
        rest, self._source, self._last = self._source.strip("\n"), "", ""
        return rest


def render_block(source: str, width: int, *, is_dim: bool = False) -> str:
    """Render a block for a terminal of this width, with the colours that its environment asks for."""
    from rich.console import Console
    from rich.text import Text

    from ferrule.session.terminal.markdown import render_markdown

    target = io.StringIO()
    width = max(4, width - 1 - len(MARGIN))  # not the last column: terminals differ in what comes after it
    console = Console(file=target, force_terminal=True, width=width + len(MARGIN), highlight=False)
    lines: Iterable[Text] = (
        Text(source, "dim").wrap(console, width, overflow="fold") if is_dim else render_markdown(source, console, width)
    )
    for line in lines:
        console.print(Text.assemble(MARGIN, line) if line.plain else line, soft_wrap=True)
    return target.getvalue()


def render_line(*parts: tuple[str, str], width: int, indent: str = MARGIN) -> str:
    """Render a line of escaped texts, each with its style; where the terminal ends it goes on after an indent."""
    from rich.console import Console
    from rich.text import Text

    target = io.StringIO()
    width = max(4 + len(indent), width - 1)
    console = Console(file=target, force_terminal=True, width=width, highlight=False)
    line = Text.assemble(*parts)
    first, *others = [line] if line.cell_len <= width else line.wrap(console, width - len(indent), overflow="fold")
    for one in (first, *(Text.assemble(indent, other) for other in others)):
        console.print(one, soft_wrap=True)
    return target.getvalue()
