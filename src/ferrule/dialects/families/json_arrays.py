"""Families that write their calls as one JSON array; Cohere's are in `cohere.py`."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_TEXT_BESIDE, Family, JsonOffer, QuotedResults, WrappedResults
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.json_array import JsonArray, Keyed, Layout, Named
from ferrule.dialects.turns import CHATML, LLAMA3, Turns

_ELEMENT = '{"name": <name>, "arguments": <arguments>}'
_LINES = Layout("[\n    ", ",\n    ", "\n]")
_THINK = Thinking(after_close="\n")

_APERTUS_TURNS = ("<|assistant_start|>", "<|assistant_end|>", "<|user_start|>", "<|user_end|>")
_APRIEL_TURNS = ("<|end|>", "<|assistant|>", "<|tool_result|>", "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]")
_GRANITE_TURNS = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<response>", "</response>")
_HUNYUAN_TURNS = ("<|startoftext|>", "<|extra_0|>", "<|eos|>", "<answer>", "</answer>")
_JAMBA_TURNS = ("<|bom|>", "<|eom|>", "<|assistant|>", "<|tool|>", "<|user|>", "<|system|>")
_NEMOTRON_TURNS = ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<|eot_id|>", "<|start_header_id|>")
_PHI_TURNS = ("<|end|>", "<|assistant|>", "<|user|>", "<|system|>", "<|endoftext|>")
_LLAMA_TURNS = ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|end_of_text|>")
_QWEN_TURNS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", *_LLAMA_TURNS)


def _told(before: str, after: str = "", element: str = _ELEMENT) -> JsonOffer:
    """The tools, and between which texts the array of calls stands."""
    return JsonOffer("You may call these tools:\n", f"\n\nTo call some, write {before}[{element}, …]{after}")


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
        offer="after system",
        tools=("<|developer_start|>Deliberation: disabled\nTool Capabilities:\n", "<|developer_end|>"),
        no_tools="<|developer_start|>Deliberation: disabled\nTool Capabilities: disabled<|developer_end|>",
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
    turns=Turns(
        user=("<|user|>\n", "\n<|end|>\n"),
        assistant="<|assistant|>\n",
        end="\n<|end|>",
        after="\n</s>",
        results=("<|tool_result|>\n", "\n<|end|>\n"),
        system=("<|system|>\n", "\n<|end|>\n"),
        begin="<s>",
        each_result=True,
        spaced_calls=True,
        strays=("<|assistant|>", "<|tool_result|>"),
    ),
)

GRANITE = Family(
    name="granite",
    models="Granite 3",
    syntax=JsonArray(
        "<|tool_call|>", layout=Layout(" ["), also=(("<tool_call>", "</tool_call>"),), before=_GRANITE_TURNS
    ),
    prose=Prose(Thinking(after_close="\n"), turn_markers=_GRANITE_TURNS, before_call="\n"),
    offer=_told("<|tool_call|> "),
    turns=Turns(
        user=("<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"),
        assistant="<|start_of_role|>assistant<|end_of_role|>",
        end="<|end_of_text|>",
        after="\n",
        results=("<|start_of_role|>tool_response<|end_of_role|>", "<|end_of_text|>\n"),
        system=("<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"),
        each_result=True,
        offer="after system",
        tools=("<|start_of_role|>available_tools<|end_of_role|>", "<|end_of_text|>\n"),
        strays=("<|start_of_role|>",),
    ),
)

HUNYUAN_A13B = Family(
    name="hunyuan_a13b",
    models="Hunyuan-A13B",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", before=_HUNYUAN_TURNS),
    prose=Prose(_THINK, _HUNYUAN_TURNS, ("<tool_response>", "</tool_response>"), before_call="\n", after_calls="\n"),
    results=WrappedResults("<tool_response>", "</tool_response>"),
    offer=_told("<tool_calls>", "</tool_calls>"),
    turns=Turns(
        user=("<|startoftext|>", "<|extra_0|>"),
        assistant="",
        end="<|eos|>",
        results=("", "<|extra_0|>"),
        system=("<|startoftext|>", "<|extra_4|>"),
        after_system="",
        each_result=True,
        strays=("<|startoftext|>", "<|extra_0|>"),
    ),
)

JAMBA = Family(
    name="jamba",
    models="Jamba 1.5 and later",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", layout=_LINES, before=_JAMBA_TURNS),
    prose=Prose(Thinking(), turn_markers=_JAMBA_TURNS, before_call="\n"),
    offer=_told("<tool_calls>", "</tool_calls>"),
    turns=Turns(
        user=("<|bom|><|user|> ", "<|eom|>"),
        assistant="<|bom|><|assistant|>",
        end="<|eom|>",
        results=("<|bom|><|tool|> ", "<|eom|>"),
        system=("<|bom|><|system|> ", "<|eom|>"),
        begin="<|startoftext|>",
        no_system="<|bom|><|system|> <|eom|>",
        leads=" ",
        each_result=True,
        strays=("<|bom|>",),
    ),
)

NEMOTRON_V2 = Family(
    name="nemotron_v2",
    models="Nemotron Nano 2, Llama-Nemotron Super 1.5",
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
        no_system="<SPECIAL_10>System\n\n",
        opens="<think>\n",
        strays=("<SPECIAL_10>", "<SPECIAL_11>"),
        rewrites_history=True,
    ),
    other_turns=(
        (
            "nemotron_super",
            replace(LLAMA3, results=("<|start_header_id|>tool<|end_header_id|>\n\n", "<|eot_id|>"), each_result=False),
        ),
    ),
)

PHI4_MINI = Family(
    name="phi4_mini",
    models="Phi-4-mini",
    syntax=JsonArray("functools[", also=(("<|tool_call|>", "<|/tool_call|>"),), before=_PHI_TURNS),
    prose=Prose(turn_markers=_PHI_TURNS, result=("<|tool_response|>", "<|/tool_response|>"), before_call="\n"),
    results=QuotedResults(),
    offer=_told("functools"),
    turns=Turns(
        user=("<|user|>", "<|end|>"),
        assistant="<|assistant|>",
        end="<|end|>",
        results=("<|tool_response|>", "<|end|>"),
        system=("<|system|>", "<|end|>"),
        each_result=True,
        stops=("<|endoftext|>",),
        strays=("<|assistant|>", "<|user|>"),
    ),
)

FIREFUNCTION_V2 = Family(
    name="firefunction_v2",
    models="FireFunction v2",
    syntax=JsonArray("functools[", before=_LLAMA_TURNS),
    prose=Prose(turn_markers=_LLAMA_TURNS, before_call=" "),
    offer=_told("functools"),
    turns=replace(LLAMA3, results=("<|start_header_id|>tool<|end_header_id|>\n\n", "<|eot_id|>"), spaced_calls=True),
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
    turns=replace(
        CHATML,
        results=("<|im_start|>tool\n", "<|im_end|>\n"),
        system=("<|im_start|>system\n", "\n<|im_end|>\n"),
        each_result=True,
        rewrites_history=False,
    ),
    other_turns=(
        ("xlam_llama", replace(LLAMA3, system=("<|start_header_id|>system<|end_header_id|>\n\n", "\n<|eot_id|>"))),
    ),
)

FAMILIES = (
    APERTUS, APRIEL, GRANITE, HUNYUAN_A13B, JAMBA, NEMOTRON_V2, PHI4_MINI, FIREFUNCTION_V2, XLAM,
)  # fmt: skip
