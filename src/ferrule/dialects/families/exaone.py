"""LG's EXAONE 4: an object between two tags, and results that are also objects.

Calls are read by `notations/json_object.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from ferrule.conversation import ToolResult
from ferrule.dialects.families.qwen import HERMES
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.wording import offer_tagged_object

_TURNS = ("[|system|]", "[|user|]", "[|assistant|]", "[|tool|]", "[|endofturn|]")


class _Results:
    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:  # noqa: ARG002 - none names its call
        encoded = (json.dumps({"result": text}, ensure_ascii=False) for text in texts)
        return "\n".join(f"<tool_result>{one}</tool_result>" for one in encoded)


EXAONE4 = replace(
    HERMES,
    name="exaone4",
    models="EXAONE 4.0",
    syntax=JsonObject("<tool_call>", "</tool_call>", inner="", before=_TURNS),
    message=replace(HERMES.message, turn_markers=_TURNS, result=("<tool_result>", "</tool_result>")),
    results=_Results(),
    offer=offer_tagged_object("tool_call"),
    turns=Turns(
        user=("[|user|]\n", "[|endofturn|]\n"), assistant="[|assistant|]\n", end="[|endofturn|]", after="\n",
        results=("[|tool|]\n", "[|endofturn|]\n"), system=("[|system|]\n", "[|endofturn|]\n"),
        opens="<think>\n", forbidden_tokens=_TURNS[:-1], rewrites_history=True,
    ),
    aliases=(), other_turns=(),
)  # fmt: skip

FAMILIES = (EXAONE4,)
