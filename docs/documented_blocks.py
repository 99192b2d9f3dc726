"""The fenced blocks of the documents, for what runs them: the tests, and `make quickstart`. Only the standard library.

`<!-- file: NAME -->` before a block of any language means that it is a file of that name, `<!-- not run: REASON -->`
that the tests don't run it. A `console` block holds lines `$ command`, each with its output below it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(?:^<!-- (?P<kind>file|not run): (?P<note>[^\n]+?) -->\n\n?)?"
    r"^(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its place, language and text, and what the comment before it says."""

    page: Path
    line: int
    language: str
    text: str
    kind: str | None
    note: str

    @property
    def place(self) -> str:
        """The page and the line, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_left_out(self) -> bool:
        """Whether the tests of the page don't run it."""
        return self.kind == "not run"


def read_blocks(page: Path) -> list[Block]:
    """All blocks of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, match.start("text")) + 1,
            match["language"].strip(),
            match["text"],
            match["kind"],
            match["note"] or "",
        )
        for match in BLOCK.finditer(text)
    ]


def split_commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a session, each with the output that it is shown with. A final `\\` continues a command."""
    found: list[tuple[str, str]] = []
    for prompt in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        match = re.match(r"(?:[^\n]*\\\n)*[^\n]*\n", prompt)
        assert match is not None, block.place
        found.append((match[0].rstrip("\n"), prompt[match.end() :]))
    assert found, f"{block.place}: a console example has lines that start with '$ '"
    return found
