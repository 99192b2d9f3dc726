"""Writes the corpus: for each family some messages that it would write, whole and cut off, as JSON lines.

python fuzz/seed.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ferrule.conversation import Message, Reasoning, Text, ToolCall
from ferrule.dialects.family import Family
from ferrule.dialects.notation import TextNotation
from ferrule.errors import DialectError
from target import TOOLS, notations

FOLDER = Path(__file__).parent / "corpus"
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {},
    {"text": 'It\'s "5"\n'},
    {"text": "Paris", "count": -7, "items": [1, {"a": None}]},
)


def messages(family: Family) -> Iterator[str]:
    """Messages that the family writes; those that it can't are left out."""
    known = family.one_tool
    for arguments in [{known[1]: "1 + 2"}] if known else ARGUMENTS:
        call = ToolCall("call_1", known[0] if known else "f", json.dumps(arguments))
        thought = (Reasoning("Hm."),) if family.message.thinking else ()
        both = (*thought, call, ToolCall("call_2", call.name, call.arguments))
        for parts in ((*thought, Text("So:"), call), both, (call,)):
            try:
                yield TextNotation(family).message(Message("assistant", parts), TOOLS)
            except DialectError:
                continue
            break


def main() -> None:
    """Write one file a notation."""
    FOLDER.mkdir(exist_ok=True)
    for notation, known in notations().items():
        lines = []
        for family in known:
            for number, text in enumerate(messages(family)):
                lines.append({"family": family.name, "piece": 3 + number, "text": text})
                lines.append({"family": family.name, "piece": 1 + number, "text": text[: len(text) * 2 // 3]})
        written = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (FOLDER / f"{notation}.jsonl").write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
