"""Names and texts as SQL writes them. Runs in the sandbox."""

from __future__ import annotations

from collections.abc import Sequence


def quote_name(name: str) -> str:
    """Write a name as SQL does."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Write a text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def list_texts(texts: Sequence[str]) -> str:
    """Write texts as a list of SQL strings."""
    return ", ".join(map(quote_text, texts))
