"""Code and Markdown as HTML: highlighted, or rendered, without anything that could act."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markupsafe import Markup

from ferrule.pages.elements import element, show_hidden

_LONGEST: Final = 200_000
"""Characters of code that are highlighted; longer code is shown without colours."""

_FEW_LINES: Final = 5
_LONG_LINE: Final = 100


def show_code(code: str, language: str = "python") -> Markup:
    """Code with its colours, by the classes that `highlight_style` defines."""
    if len(code) > _LONGEST:
        return element("pre", element("code", code))
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lines = highlight(show_hidden(code), get_lexer_by_name(language, stripnl=False), HtmlFormatter(nowrap=True))
    return element("pre", element("code", Markup(lines)), class_="code")


def show_text(text: str) -> Markup:
    """Text as it was printed: in columns that scroll; a few long lines, which are no columns, are wrapped."""
    lines = text.splitlines()
    is_wrapped = len(lines) <= _FEW_LINES and max(map(len, lines), default=0) > _LONG_LINE
    return element("pre", text, class_="wrapped" if is_wrapped else None)


@cache
def highlight_style() -> str:
    """The style sheet of highlighted code, for light and dark pages."""
    from pygments.formatters import HtmlFormatter

    def rules(style: str) -> str:
        lines = HtmlFormatter(style=style).get_style_defs(".code").splitlines()
        # The first lines style the whole block, which the page's own style sheet does.
        return "\n".join(line for line in lines if re.match(r"\.code \.[a-z]", line))

    return f"{rules('default')}\n@media screen and (prefers-color-scheme: dark) {{\n{rules('github-dark')}\n}}\n"


def show_markdown(text: str, marks: Callable[[str], Markup] | None = None, *, keeps_lines: bool = False) -> Markup:
    """A model's Markdown: paragraphs, lists, tables, emphasis, code. HTML, links and images are shown as written.

    `marks` is called with the text of each part that stands between `START` and `END`, and returns what is shown.
    With `keeps_lines`, each line of a paragraph begins a new one.
    """
    renderer = MarkdownIt("commonmark", {"html": False, "breaks": keeps_lines}).enable("table")
    renderer.disable(["link", "image", "autolink", "reference", "entity", "html_inline", "html_block"])
    html = renderer.render(re.sub(f"[^{START}{END}]+", lambda found: show_hidden(found[0]), text))
    shown = "".join(_mark(piece, marks) for piece in re.split(r"(<[^>]*>)", html))
    return Markup(shown)


START: Final = "\ue000"
END: Final = "\ue001"
"""Where a part begins and ends that `show_markdown` shows by `marks`; characters of private use, in no other text."""


def _mark(piece: str, marks: Callable[[str], Markup] | None) -> str:
    if marks is None or piece.startswith("<"):
        return re.sub(f"[{START}{END}]", "", piece)
    shown = re.sub(f"{START}([^{START}{END}]*){END}", lambda match: str(marks(match[1])), piece)
    return re.sub(f"[{START}{END}]", "", shown)
