"""NVIDIA's Nemotron: a JSON array between tags (2), and tags that contain the names, as for Qwen Coder (3).

Calls are read by `notations/function_xml.py` and `notations/json_array.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.families.qwen import QWEN3_CODER
from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import CHATML, LLAMA3, Turns
from ferrule.dialects.notations.json_array import JsonArray
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import WrappedResults, offer_array

# Compared with the templates of Nemotron 3 Nano and Super, and of Ultra and 3.5 Lightning, that TRL 1.16 bundles.
_NEMOTRON_FRAMES = replace(
    CHATML,
    calls_end="\n<|im_end|>",
    results=("<|im_start|>user\n", "\n<|im_end|>\n"),
    no_system="<|im_start|>system\n<|im_end|>\n",
    opens="<think>\n",
)

_ULTRA_FRAMES = replace(_NEMOTRON_FRAMES, spaced_calls=True)

NEMOTRON_V3 = replace(
    QWEN3_CODER,
    name="nemotron_v3",
    models="Nemotron 3 Nano, Nemotron 3 Super",
    message=replace(QWEN3_CODER.message, thinking=Thinking(after_close="\n", may_stay_open=True), before_call="\n"),
    aliases=(),
    turns=_NEMOTRON_FRAMES,
    other_turns=(("nemotron_v3_nothink", _ULTRA_FRAMES.skip_reasoning("<think></think>")),),
)

NEMOTRON_V3_ULTRA = replace(
    NEMOTRON_V3,
    name="nemotron_v3_ultra",
    models="Nemotron 3 Ultra, Nemotron 3.5 Lightning",
    message=replace(NEMOTRON_V3.message, thinking=Thinking(before_close="", after_close="", may_stay_open=True)),
    turns=_ULTRA_FRAMES,
    other_turns=(("nemotron_v3_ultra_nothink", _ULTRA_FRAMES.skip_reasoning("<think></think>")),),
)

_THINK = Thinking(after_close="\n")

_NEMOTRON_TURNS = ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<|eot_id|>", "<|start_header_id|>")


NEMOTRON_V2 = Family(
    name="nemotron_v2",
    models="Nemotron Nano 2, Llama-Nemotron Super 1.5",
    syntax=JsonArray("<TOOLCALL>", "</TOOLCALL>", before=_NEMOTRON_TURNS),
    message=MessageMarkers(
        _THINK, _NEMOTRON_TURNS, ("<TOOL_RESPONSE>", "</TOOL_RESPONSE>"), before_call="\n", after_calls="\n"
    ),
    results=WrappedResults("", "", before="<TOOL_RESPONSE>[", between=", ", after="]</TOOL_RESPONSE>"),
    offer=offer_array("<TOOLCALL>", "</TOOLCALL>"),
    turns=Turns(
        user=("<SPECIAL_11>User\n", "\n"),
        assistant="<SPECIAL_11>Assistant\n",
        end="\n<SPECIAL_12>",
        after="\n",
        results=("<SPECIAL_11>User\n", ""),
        system=("<SPECIAL_10>System\n", "\n"),
        no_system="<SPECIAL_10>System\n\n",
        opens="<think>\n",
        forbidden_tokens=("<SPECIAL_10>", "<SPECIAL_11>"),
        rewrites_history=True,
    ),
    other_turns=(
        # As in llama.cpp's template of Llama 3.3 Nemotron Super 49B v1.5, at 1035d60.
        (
            "nemotron_super",
            replace(LLAMA3, results=("<|start_header_id|>tool<|end_header_id|>\n\n", "<|eot_id|>"), each_result=False),
        ),
    ),
)

FAMILIES = (
    NEMOTRON_V3,
    NEMOTRON_V3_ULTRA,
    NEMOTRON_V2,
)
