"""Renders a model's Markdown on a terminal, by rich. What Markdown would hide is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement, TableElement
from rich.table import Table
from rich.text import Text

from ferrule._util.terminal_text import escape_line

# They show less than was written: HTML isn't shown at all, of an image and a reference the address isn't, and an
# entity may be a character that hides others.
_HIDING = ("html_block", "html_inline", "image", "reference", "entity")


class _PlainHeading(Heading):
    """A heading as a bold line: rich centres it, the first level in a box, which narrow terminals have no room for."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold")
        yield self.text


class _FoldedTable(TableElement):
    """A table whose cells are wrapped where they have no spaces; rich would cut them off."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    column.overflow = "fold"
            yield part


class TerminalMarkdown(Markdown):
    """Markdown that shows everything that was written: line ends, HTML, and the addresses of links and images."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _PlainHeading,
        "table_open": _FoldedTable,
    }

    def __init__(self, source: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        parser = MarkdownIt().enable(["strikethrough", "table"]).disable(list(_HIDING))
        self.markup = source
        self.parsed = parser.parse(source)
        for token in _iterate_tokens(self.parsed):
            # A single line end is a space in Markdown; models mean a new line by it.
            if token.type == "softbreak":
                token.type = "hardbreak"
            if "href" in token.attrs:
                token.attrs["href"] = escape_line(str(token.attrs["href"]))


def _iterate_tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _iterate_tokens(token.children or [])


def render_markdown(source: str, console: Console, width: int) -> list[Text]:
    """Render Markdown as lines of styled text, each at most `width` columns wide."""
    rendered = console.render_lines(TerminalMarkdown(source), console.options.update(width=width), pad=False)
    lines = [Text.assemble(*((part.text, part.style or "") for part in line if not part.control)) for line in rendered]
    for line in lines:
        line.rstrip()
    while lines and not lines[0].plain:
        del lines[0]
    while lines and not lines[-1].plain:
        del lines[-1]
    return lines
