"""HTML that is safe by construction: text is escaped where it is put in, and no element can carry a script.

What a page shows was written by models, files and programs. Everything goes through `element`: its children are text,
which is escaped, or other elements. Event handlers, `style` and addresses other than `#place` and `data:` images are
refused, so that no page depends on its content security policy alone.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable
from typing import Final, TypeAlias
from zlib import crc32

from markupsafe import Markup, escape

from ferrule._util.terminal_text import replace_hidden
from ferrule.media import Image

Child: TypeAlias = "str | Markup | Iterable[Child] | None"

_NAME: Final = re.compile(r"[a-z][a-zA-Z0-9]*(?:-[a-z]+)*")
_FORBIDDEN: Final = frozenset(
    {"script", "style", "iframe", "object", "embed", "base", "form", "link", "meta", "template"}
)
_VOID: Final = frozenset({"br", "hr", "img"})
_ADDRESSES: Final = frozenset({"href", "src", "action", "formaction", "xlink:href", "srcdoc", "data"})
_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def escape_text(text: str) -> Markup:
    """A text as HTML that shows it and nothing else."""
    return escape(show_hidden(text))


def show_hidden(text: str) -> str:
    """A text with the characters that hide or turn others, or that HTML can't hold, shown by their numbers."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return replace_hidden(lines, lambda character: f"⟨U+{ord(character):04X}⟩")


def join(children: Child) -> Markup:
    """Several children as one piece of HTML. Text is escaped, None is left out."""
    if children is None:
        return Markup()
    if isinstance(children, Markup):
        return children
    if isinstance(children, str):
        return escape_text(children)
    return Markup("").join(join(child) for child in children)


def element(name: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """An element. Attributes are named as in HTML, with `_` for `-` and at the end of a word of Python (`class_`).

    An attribute that is None or False is left out. Raises `ValueError` for an element or attribute that could act.
    """
    if not _NAME.fullmatch(name) or name.lower() in _FORBIDDEN:
        raise ValueError(f"the element {name!r} isn't one that a page may have")
    written = "".join(
        _write_attribute(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def _write_attribute(name: str, value: str | float | bool) -> str:
    lowered = name.lower()
    if lowered.startswith("on") or lowered in {"style", "srcset", "target", "ping"}:
        raise ValueError(f"the attribute {name!r} isn't one that a page may have")
    text = "" if value is True else str(value)
    if lowered in _ADDRESSES and not _is_inside(lowered, text):
        raise ValueError(f"{name}={text[:60]!r} isn't in the page: an address is '#place', or an image's data")
    return f" {name}" if value is True else f' {name}="{escape_text(text)}"'


def _is_inside(name: str, address: str) -> bool:
    if name == "src":
        return any(address.startswith(f"data:{kind};base64,") for kind in _PICTURES)
    return name == "href" and re.fullmatch(r"#[A-Za-z0-9_.-]*", address) is not None


def make_anchor(kind: str, name: str) -> str:
    """An id for a place in the page, of any text: `task-t1`."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    cut = re.sub(r"[^A-Za-z0-9_]+", "-", plain)[:60]
    return f"{kind}-{cut}" if cut == name else f"{kind}-{cut}-{crc32(name.encode('utf-8', 'replace')):x}"


def fold(summary: Child, *content: Child, is_open: bool = False, class_: str | None = None) -> Markup:
    """A section that opens and closes without a script."""
    inner = element("div", *content, class_="folded")
    return element("details", element("summary", summary), inner, open=is_open, class_=class_)


def show_image(image: Image, description: str) -> Markup:
    """A picture within the page; of a type that browsers don't show, a line that says so."""
    if image.media_type not in _PICTURES:
        return element("p", f"A figure of the type {image.media_type}, which a page can't show.")
    data = base64.b64encode(image.data).decode("ascii")
    return element("img", src=f"data:{image.media_type};base64,{data}", alt=description, loading="lazy")


def show_table(header: Iterable[Child], rows: Iterable[Iterable[Child]]) -> Markup:
    """A table that scrolls by itself where the screen is narrow."""
    head = element("tr", [element("th", cell, scope="col") for cell in header])
    body = [element("tr", [element("td", cell) for cell in row]) for row in rows]
    return element("div", element("table", element("thead", head), element("tbody", body)), class_="scrolled")
