"""Cohere's Command: a JSON array of calls whose results name them by id, or in a fence without ids.

Calls are read by `notations/json_array.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ferrule.conversation import ToolResult
from ferrule.dialects.family import NO_IMAGES, NO_TEXT_BESIDE, Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_array import ArrayLayout, JsonArray, Named
from ferrule.dialects.notations.json_object import Keys
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import MAY_CALL, JsonOffer, WrappedResults

_TURNS = (
    "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|START_OF_TURN_TOKEN|>",
    "<|END_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _NumberedResults:
    """A list of objects that name their calls by id, as Cohere's models receive results; `is_keyed`: each text is the
    `content` of an object."""

    is_keyed: bool = False

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results of one group of calls."""
        written = [
            f'    {{\n        "tool_call_id": {json.dumps(result.call_id, ensure_ascii=False)},\n'
            f'        "results": {{\n            "0": {self._write(text)}\n        }},\n'
            '        "is_error": null\n    }'
            for result, text in zip(results, texts, strict=True)
        ]
        return "<|START_TOOL_RESULT|>[\n" + ",\n".join(written) + "\n]<|END_TOOL_RESULT|>"

    def _write(self, text: str) -> str:
        return json.dumps({"content": text} if self.is_keyed else text, ensure_ascii=False)


_FRAMES = Turns(
    user=("<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    assistant="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    end="<|END_OF_TURN_TOKEN|>",
    results=("<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    system=("<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    begin="<BOS_TOKEN>",
    no_system="<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><|END_OF_TURN_TOKEN|>",
    forbidden_tokens=("<|START_OF_TURN_TOKEN|>",),
)

COHERE = Family(
    name="cohere",
    models="Command R7B, Command A",
    syntax=JsonArray(
        "<|START_ACTION|>",
        "<|END_ACTION|>",
        Named(Keys(("tool_name", "name"), ("parameters", "arguments"), ("tool_call_id",)), writes_id="first"),
        ArrayLayout("[\n    ", ",\n    ", "\n]"),
        before=_TURNS,
    ),
    message=MessageMarkers(
        Thinking("<|START_THINKING|>", "<|END_THINKING|>", "", "", ""),
        turn_markers=_TURNS,
        result=("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
        answer=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ),
    results=_NumberedResults(),
    offer=JsonOffer(
        MAY_CALL,
        '\n\nTo call some, write <|START_ACTION|>[{"tool_call_id": <id>, "tool_name": <name>, '
        '"parameters": <arguments>}, …]<|END_ACTION|>',
    ),
    losses=frozenset({NO_IMAGES, NO_TEXT_BESIDE}),
    turns=_FRAMES,
)

COHERE_2 = replace(
    COHERE,
    name="cohere2",
    models="Cohere 2 MoE",
    message=replace(COHERE.message, answer=("<|START_TEXT|>", "<|END_TEXT|>")),
    results=_NumberedResults(is_keyed=True),
    turns=replace(
        _FRAMES,
        user=("<|START_OF_TURN_TOKEN|><|USER_TOKEN|><|START_TEXT|>", "<|END_TEXT|><|END_OF_TURN_TOKEN|>"),
        system=("<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><|START_TEXT|>", "<|END_TEXT|><|END_OF_TURN_TOKEN|>"),
        no_system="",
        opens="<|START_THINKING|>",
    ),
)

COHERE_R_PLUS = Family(
    name="cohere_r_plus",
    models="Command R, Command R+",
    syntax=JsonArray(
        "Action:\n```json\n",
        "```",
        Named(Keys(("tool_name", "name"), ("parameters", "arguments"))),
        ArrayLayout(indent=4),
        also=(("Action: ```json\n", "```"), ("Action:```json\n", "```")),
        before=_TURNS,
    ),
    message=MessageMarkers(turn_markers=_TURNS, result=("<results>", "</results>"), before_call="\n", after_calls="\n"),
    results=WrappedResults("<results>\n", "</results>"),
    offer=JsonOffer(
        MAY_CALL,
        '\n\nTo call some, write Action:\n```json\n[{"tool_name": <name>, "parameters": <arguments>}, …]\n```',
    ),
    turns=replace(
        _FRAMES,
        asks="<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Answer, or write 'Action:' and a list of the calls to make."
        "<|END_OF_TURN_TOKEN|>",
        no_system="",
        each_result=True,
        spaced_calls=True,
        rewrites_history=True,
    ),
)

FAMILIES = (
    COHERE,
    COHERE_2,
    COHERE_R_PLUS,
)
