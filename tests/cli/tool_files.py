"""Tool files as people write them, for commands to discover."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "wait_tool.py": '''\
"""A slow tool that tells how far it is."""

import asyncio

from ferrule import CallScope
from ferrule import tool


@tool
async def wait(seconds: float, scope: CallScope) -> str:
    """Wait."""
    for step in range(10):
        scope.report_progress("waiting", step / 10)
        await asyncio.sleep(seconds / 10)
    return "waited"
''',
    "text_tool.py": '''\
"""Tools of text, with parameters of every kind."""

from typing import Annotated, Literal

from ferrule import Image, Text
from ferrule import tool


@tool(read_only=True)
def shout(
    text: Annotated[str, "What to shout"],
    times: int = 1,
    marks: list[str] | None = None,
    tone: Literal["loud", "soft"] = "loud",
    be_kind: bool = False,
) -> dict:
    """Shout a text.

    More is said here.
    """
    return {"text": text.upper() * times, "marks": marks, "tone": tone, "be_kind": be_kind}


@tool(approval="always")
def picture() -> list:
    """Draw."""
    return [Text("a dot"), Image(b"not really a picture", "image/png")]
''',
}


def write_tools(folder: Path, *names: str) -> Path:
    """Write these files, or all of them, into `folder`."""
    for name in names or FILES:
        (folder / name).write_text(FILES[name], encoding="utf-8")
    return folder
