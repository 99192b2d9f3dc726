"""Families that write their calls as one JSON array."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ferrule.conversation import ToolResult
from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_TEXT_BESIDE, Family, JsonOffer, WrappedResults
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.json_array import JsonArray, Keyed, Layout, Named
from ferrule.dialects.notations.json_object import Keys
from ferrule.dialects.turns import Turns

_ELEMENT = '{"name": <name>, "arguments": <arguments>}'
_LINES = Layout("[\n    ", ",\n    ", "\n]")
_THINK = Thinking(after_close="\n")

_APERTUS_TURNS = ("<|assistant_start|>", "<|assistant_end|>", "<|user_start|>", "<|user_end|>")
_APRIEL_TURNS = ("<|end|>", "<|assistant|>", "<|tool_result|>", "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]")
_GRANITE_TURNS = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<response>", "</response>")
_HUNYUAN_TURNS = ("<|startoftext|>", "<|extra_0|>", "<|eos|>", "<answer>", "</answer>")
_JAMBA_TURNS = ("<|bom|>", "<|eom|>", "<|assistant|>", "<|tool|>", "<|user|>", "<|system|>")
_NEMOTRON_TURNS = ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>")
_PHI_TURNS = ("<|end|>", "<|assistant|>", "<|user|>", "<|system|>", "<|endoftext|>")
_LLAMA_TURNS = ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|end_of_text|>")
_QWEN_TURNS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", *_LLAMA_TURNS)
_COHERE_TURNS = (
    "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|START_OF_TURN_TOKEN|>",
    "<|END_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>",
)  # fmt: skip


def _told(before: str, after: str = "", element: str = _ELEMENT) -> JsonOffer:
    """The tools, and between which texts the array of calls stands."""
    return JsonOffer("You may call these tools:\n", f"\n\nTo call some, write {before}[{element}, …]{after}")


@dataclass(frozen=True, slots=True)
class _NumberedResults:
    """A list of objects that name their calls by id, as Cohere's models are given results."""

    def write(self, results: Sequence[ToolResult], texts: Sequence[str]) -> str:
        """The results of one group of calls."""
        written = [
            f'    {{\n        "tool_call_id": {json.dumps(result.call_id, ensure_ascii=False)},\n'
            f'        "results": {{\n            "0": {json.dumps(text, ensure_ascii=False)}\n        }},\n'
            '        "is_error": null\n    }'
            for result, text in zip(results, texts, strict=True)
        ]
        return "<|START_TOOL_RESULT|>[\n" + ",\n".join(written) + "\n]<|END_TOOL_RESULT|>"


APERTUS = Family(
    name="apertus",
    models="Apertus",
    syntax=JsonArray("<|tools_prefix|>", "<|tools_suffix|>", Keyed(), before=_APERTUS_TURNS),
    prose=Prose(Thinking("<|inner_prefix|>", "<|inner_suffix|>", "", "", ""), turn_markers=_APERTUS_TURNS),
    results=WrappedResults("", "", before="[", between=", ", after="]"),
    offer=_told("<|tools_prefix|>", "<|tools_suffix|>", "{<name>: <arguments>}"),
    turns=Turns(
        user=("<|user_start|>", "<|user_end|>"),
        assistant="<|assistant_start|>",
        end="<|assistant_end|>",
        calls_end="",
        results=("", ""),
        system=("<|system_start|>", "<|system_end|>"),
        begin="<s>",
        stops=("<|tools_suffix|>",),
        strays=("<|user_start|>", "<|assistant_start|>"),
        rewrites_history=True,
    ),
)

APRIEL = Family(
    name="apriel",
    models="Apriel 1.5",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", Named(writes_id="last"), before=_APRIEL_TURNS),
    prose=Prose(Thinking("<thinking>", "</thinking>"), turn_markers=_APRIEL_TURNS, before_call="\n", after_calls="\n"),
    offer=_told("<tool_calls>", "</tool_calls>", '{"name": <name>, "arguments": <arguments>, "id": <id>}'),
    losses=frozenset({NO_IMAGES}),
)

GRANITE = Family(
    name="granite",
    models="Granite 3",
    syntax=JsonArray(
        "<|tool_call|>", layout=Layout(" ["), also=(("<tool_call>", "</tool_call>"),), before=_GRANITE_TURNS
    ),
    prose=Prose(Thinking(after_close="\n"), turn_markers=_GRANITE_TURNS, before_call="\n"),
    offer=_told("<|tool_call|> "),
)

HUNYUAN_A13B = Family(
    name="hunyuan_a13b",
    models="Hunyuan-A13B",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", before=_HUNYUAN_TURNS),
    prose=Prose(_THINK, _HUNYUAN_TURNS, ("<tool_response>", "</tool_response>"), before_call="\n", after_calls="\n"),
    results=WrappedResults("<tool_response>", "</tool_response>"),
    offer=_told("<tool_calls>", "</tool_calls>"),
)

JAMBA = Family(
    name="jamba",
    models="Jamba 1.5 and later",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", layout=_LINES, before=_JAMBA_TURNS),
    prose=Prose(Thinking(), turn_markers=_JAMBA_TURNS, before_call="\n"),
    offer=_told("<tool_calls>", "</tool_calls>"),
)

NEMOTRON_V2 = Family(
    name="nemotron_v2",
    models="Nemotron Nano 2",
    syntax=JsonArray("<TOOLCALL>", "</TOOLCALL>", before=_NEMOTRON_TURNS),
    prose=Prose(_THINK, _NEMOTRON_TURNS, ("<TOOL_RESPONSE>", "</TOOL_RESPONSE>"), before_call="\n", after_calls="\n"),
    results=WrappedResults("", "", before="<TOOL_RESPONSE>[", between=", ", after="]</TOOL_RESPONSE>"),
    offer=_told("<TOOLCALL>", "</TOOLCALL>"),
    turns=Turns(
        user=("<SPECIAL_11>User\n", "\n"),
        assistant="<SPECIAL_11>Assistant\n",
        end="\n<SPECIAL_12>",
        after="\n",
        results=("<SPECIAL_11>User\n", ""),
        system=("<SPECIAL_10>System\n", "\n"),
        opens="<think>\n",
        strays=("<SPECIAL_10>", "<SPECIAL_11>"),
        rewrites_history=True,
    ),
)

PHI4_MINI = Family(
    name="phi4_mini",
    models="Phi-4-mini",
    syntax=JsonArray("functools[", also=(("<|tool_call|>", "<|/tool_call|>"),), before=_PHI_TURNS),
    prose=Prose(turn_markers=_PHI_TURNS, result=("<|tool_response|>", "<|/tool_response|>"), before_call="\n"),
    offer=_told("functools"),
)

FIREFUNCTION_V2 = Family(
    name="firefunction_v2",
    models="FireFunction v2",
    syntax=JsonArray("functools[", before=_LLAMA_TURNS),
    prose=Prose(turn_markers=_LLAMA_TURNS, before_call=" "),
    offer=_told("functools"),
)

XLAM = Family(
    name="xlam",
    models="xLAM 1 and 2",
    syntax=JsonArray(
        "", also=(("[TOOL_CALLS]", ""), ("<tool_call>", "</tool_call>")), fence="```json", before=_QWEN_TURNS
    ),
    prose=Prose(Thinking(), turn_markers=_QWEN_TURNS),
    offer=_told(""),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_TEXT_BESIDE}),
)

COHERE = Family(
    name="cohere",
    models="Command R7B, Command A",
    syntax=JsonArray(
        "<|START_ACTION|>",
        "<|END_ACTION|>",
        Named(Keys(("tool_name", "name"), ("parameters", "arguments"), ("tool_call_id",)), writes_id="first"),
        _LINES,
        before=_COHERE_TURNS,
    ),
    prose=Prose(
        Thinking("<|START_THINKING|>", "<|END_THINKING|>", "", "", ""),
        turn_markers=_COHERE_TURNS,
        result=("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
        answer=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ),
    results=_NumberedResults(),
    offer=_told(
        "<|START_ACTION|>", "<|END_ACTION|>", '{"tool_call_id": <id>, "tool_name": <name>, "parameters": <arguments>}'
    ),
    losses=frozenset({NO_IMAGES, NO_TEXT_BESIDE}),
    turns=Turns(
        user=("<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
        assistant="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        end="<|END_OF_TURN_TOKEN|>",
        results=("<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
        system=("<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
        begin="<BOS_TOKEN>",
        strays=("<|START_OF_TURN_TOKEN|>",),
    ),
)

COHERE_R_PLUS = Family(
    name="cohere_r_plus",
    models="Command R, Command R+",
    syntax=JsonArray(
        "Action:\n```json\n",
        "```",
        Named(Keys(("tool_name", "name"), ("parameters", "arguments"))),
        Layout(indent=4),
        also=(("Action: ```json\n", "```"), ("Action:```json\n", "```")),
        before=_COHERE_TURNS,
    ),
    prose=Prose(turn_markers=_COHERE_TURNS, result=("<results>", "</results>"), before_call="\n", after_calls="\n"),
    results=WrappedResults("<results>\n", "</results>"),
    offer=_told("Action:\n```json\n", "\n```", '{"tool_name": <name>, "parameters": <arguments>}'),
)

FAMILIES = (
    APERTUS, APRIEL, GRANITE, HUNYUAN_A13B, JAMBA, NEMOTRON_V2, PHI4_MINI, FIREFUNCTION_V2, XLAM, COHERE, COHERE_R_PLUS,
)  # fmt: skip
