"""Ant's Ling 3, which writes calls as GLM does.

Calls are read by `notations/key_value.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.families.glm import GLM45
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TOOL_RESPONSE

_BARE_THINKING = Thinking(after_open="", before_close="", after_close="", may_stay_open=True)

# Compared with the template of Ling 3.0 Flash that llama.cpp has.
LING_3 = replace(
    GLM45,
    name="ling3",
    models="Ling 3",
    syntax=KeyValue(between_pairs=""),
    message=MessageMarkers(
        _BARE_THINKING, turn_markers=("<role>", "</role>", "<|role_end|>"), result=TOOL_RESPONSE, before_call="\n"
    ),
    turns=Turns(
        user=("<role>HUMAN</role>", "<|role_end|>"),
        assistant="<role>ASSISTANT</role>\n",
        end="<|role_end|>",
        results=("<role>OBSERVATION</role>\n", "<|role_end|>"),
        system=("<role>SYSTEM</role>", "\ndetailed thinking on<|role_end|>"),
        no_system="<role>SYSTEM</role>detailed thinking on<|role_end|>",
        opens="<think>",
        forbidden_tokens=("<role>",),
        rewrites_history=True,
    ),
)

FAMILIES = (LING_3,)
