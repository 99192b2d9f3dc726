"""A code block before a call hides no call, and neither do signs within its values."""

from __future__ import annotations

import json

from dialect_events import parts, read

from ferrule import ToolRegistry, tool
from ferrule.conversation import ToolCall
from ferrule.dialects import get_notation, list_dialects
from ferrule.errors import DialectError
from tables import each_case

VALUE = 'a = b; x == "y" </x=1> if a=b then ```\nmore = 1'
WHOLE_MESSAGES = {"gpt_oss", "llama3_json", "muse_glimmer", "nanochat", "xlam"}
"""Notations in which a call is a message of its own, without a text before it, or isn't of any tool."""


@tool
def search(query: str) -> str:
    """Search."""
    return query


SPECS = ToolRegistry([search]).specs


def list_notations() -> list[str]:
    found = []
    for name in list_dialects():
        try:
            get_notation(name)
        except DialectError:  # a dialect that shares the notation of another
            continue
        found.append(name)
    return found


@each_case("name", sorted({*list_notations()} - WHOLE_MESSAGES))
def test_a_call_after_a_code_block_is_read(name: str) -> None:
    notation = get_notation(name)
    written = notation.call(ToolCall("call_1", "search", json.dumps({"query": VALUE})), SPECS)
    text = f"Run this first:\n```python\nx = 1\n```\n{written}"
    (call,) = [part for part in parts(read(notation.reader(SPECS), [text])) if isinstance(part, ToolCall)]
    assert json.loads(call.arguments) == {"query": VALUE}
