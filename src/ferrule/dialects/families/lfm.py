"""Liquid's LFM2: a list of Python calls between tokens."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import CHATML, CHATML_MARKERS
from ferrule.dialects.notations.pythonic import Pythonic
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer, WrappedResults

LFM_2 = Family(
    name="lfm2",
    models="LFM2",
    syntax=Pythonic("<|tool_call_start|>", "<|tool_call_end|>"),
    message=MessageMarkers(
        Thinking(), turn_markers=CHATML_MARKERS, result=("<|tool_response_start|>", "<|tool_response_end|>")
    ),
    results=WrappedResults("<|tool_response_start|>", "<|tool_response_end|>"),
    offer=JsonOffer(
        "List of tools: <|tool_list_start|>\n",
        "\n<|tool_list_end|>\nTo call some: <|tool_call_start|>[name(key=value), ...]<|tool_call_end|>",
    ),
    turns=replace(CHATML, begin="<|startoftext|>", results=("<|im_start|>tool\n", "<|im_end|>\n"), each_result=True),
)

# Compared with the template of LFM2.5 that TRL 1.16 bundles.
LFM_25 = replace(
    LFM_2,
    name="lfm25",
    models="LFM2.5",
    syntax=Pythonic("<|tool_call_start|>", "<|tool_call_end|>", as_python=True),
    message=replace(LFM_2.message, thinking=Thinking(after_open="", before_close="", after_close="")),
    results=WrappedResults("", ""),
)

FAMILIES = (
    LFM_2,
    LFM_25,
)
