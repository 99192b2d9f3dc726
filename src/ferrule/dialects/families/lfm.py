"""Liquid's LFM2: a list of Python calls between tokens.

Calls are read by `notations/pythonic.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import CHATML, CHATML_MARKERS
from ferrule.dialects.notations.pythonic import Pythonic, write_quoted, write_quoted_list
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer, WrappedResults

# Compared with the second version of LFM2's template, which TRL 1.16 bundles. In the first, text contained the calls.
LFM_2 = Family(
    name="lfm2",
    models="LFM2",
    aliases=("lfm2_v2",),
    syntax=Pythonic("<|tool_call_start|>", "<|tool_call_end|>", literal=write_quoted),
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

# As the cards of the first models show calls: strings in double quotes.
LFM_2_V1 = replace(
    LFM_2,
    name="lfm2_v1",
    models="LFM2 (strings in double quotes)",
    aliases=(),
    syntax=Pythonic("<|tool_call_start|>", "<|tool_call_end|>"),
)

# Compared with the templates of LFM2.5 that TRL 1.16 bundles, some of which escape nothing in a string.
LFM_25 = replace(
    LFM_2,
    name="lfm25",
    models="LFM2.5",
    aliases=(),
    syntax=Pythonic("<|tool_call_start|>", "<|tool_call_end|>", literal=write_quoted_list),
    message=replace(LFM_2.message, thinking=Thinking(after_open="", before_close="", after_close="")),
    results=WrappedResults("", ""),
)

FAMILIES = (
    LFM_2,
    LFM_2_V1,
    LFM_25,
)
