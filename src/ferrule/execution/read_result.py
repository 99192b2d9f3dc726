"""The tool that opens what was cut out of a result."""

from __future__ import annotations

from typing import Annotated

from ferrule.errors import ToolFailed, ToolRetry
from ferrule.scope import CallScope
from ferrule.tool import Tool

NAME = "read_result"
_PAGE = 20_000


def read_result_tool(page: int = _PAGE) -> Tool:
    """A tool `read_result(name, offset)` that gives `page` characters of a kept result. Offer it like any other.

    It reads from the executor's own store, so it needs nothing else.
    """

    def read_result(
        name: Annotated[str, "The name that the notice gave"],
        scope: CallScope,
        offset: Annotated[int, "The character to start at"] = 0,
    ) -> str:
        """Open a result that was cut: a part of its text, from a character on."""
        data = scope.blobs.get(name)
        if data is None:
            raise ToolFailed(f"no result is kept as {name!r}; it was never there or has been dropped")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise ToolFailed(f"{name!r} is not text") from None
        if not 0 <= offset < max(1, len(text)):
            raise ToolRetry(f"offset must be from 0 to {len(text) - 1}")
        end = offset + page
        if end >= len(text):
            return text[offset:]
        return f"{text[offset:end]}\n[… {len(text) - end:,} characters follow; go on at offset {end} …]"

    return Tool.from_callable(read_result, name=NAME, read_only=True, open_world=False)
