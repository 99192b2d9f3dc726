"""Poolside's Laguna, which writes calls as GLM does, in turns of its own."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.families.glm import GLM45, GLM47
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TOOL_RESPONSE, WrappedResults

POOLSIDE_V1 = replace(
    GLM45,
    name="poolside_v1",
    models="Laguna XS.2",
    aliases=("laguna",),
    message=MessageMarkers(
        Thinking(after_close="\n", may_stay_open=True),
        turn_markers=("<assistant>", "</assistant>", "〈|EOS|〉"),
        result=TOOL_RESPONSE,
        before_call="\n",
    ),
    turns=Turns(
        user=("<user>\n", "\n</user>\n"),
        assistant="<assistant>\n",
        end="\n</assistant>",
        after="\n",
        results=("", "\n"),
        system=("<system>\n\n", "\n</system>\n"),
        begin="〈|EOS|〉",
        opens="<think>",
        stops=("〈|EOS|〉",),
        forbidden_tokens=("<assistant>",),
        rewrites_history=True,
    ),
)

_BARE_THINKING = Thinking(after_open="", before_close="", after_close="", may_stay_open=True)

# Compared with the template of Laguna S 2.1 that llama.cpp has.
LAGUNA_S = replace(
    POOLSIDE_V1,
    name="laguna_s",
    models="Laguna S 2.1",
    syntax=KeyValue(inner="", between=""),
    aliases=(),
    message=replace(POOLSIDE_V1.message, thinking=_BARE_THINKING, before_call=""),
    results=WrappedResults(*TOOL_RESPONSE),
    offer=GLM47.offer,
    turns=Turns(
        user=("<user>", "</user>\n"),
        assistant="<assistant>",
        end="</assistant>",
        after="\n",
        results=("", "\n"),
        system=("<system>", "</system>\n"),
        begin="〈|EOS|〉",
        opens="<think>",
        stops=("〈|EOS|〉",),
        forbidden_tokens=("<assistant>",),
        rewrites_history=True,
    ),
)

FAMILIES = (
    POOLSIDE_V1,
    LAGUNA_S,
)
