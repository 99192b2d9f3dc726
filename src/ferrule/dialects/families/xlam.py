"""Salesforce's xLAM: a bare JSON array, in Qwen's or Llama's turns.

Calls are read by `notations/json_array.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_TEXT_BESIDE, Family
from ferrule.dialects.framing.turns import CHATML, CHATML_MARKERS, LLAMA3
from ferrule.dialects.notations.json_array import JsonArray
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import offer_array

_LLAMA_MARKERS = ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|end_of_text|>")

_XLAM_MARKERS = (*CHATML_MARKERS, *_LLAMA_MARKERS)

XLAM = Family(
    name="xlam",
    models="xLAM 1 and 2",
    syntax=JsonArray(
        "", also=(("[TOOL_CALLS]", ""), ("<tool_call>", "</tool_call>")), fence="```json", before=_XLAM_MARKERS
    ),
    message=MessageMarkers(Thinking(), turn_markers=_XLAM_MARKERS),
    offer=offer_array(""),
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

FAMILIES = (XLAM,)
