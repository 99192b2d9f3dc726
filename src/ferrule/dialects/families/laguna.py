"""Poolside's Laguna, which writes calls as GLM does, in turns of its own.

Calls are read by `notations/key_value.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.families.glm import GLM45, GLM47
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TOOL_RESPONSE, WrappedResults

# Compared with the templates of Laguna XS.2 and XS 2.1 that llama.cpp has.
_XS_TURNS = Turns(
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
)

POOLSIDE_V1 = replace(
    GLM45,
    name="poolside_v1",
    models="Laguna XS.2, Laguna XS 2.1",
    aliases=("laguna",),
    message=MessageMarkers(
        Thinking(after_close="\n", may_stay_open=True),
        turn_markers=("<assistant>", "</assistant>", "〈|EOS|〉"),
        result=TOOL_RESPONSE,
        before_call="\n",
    ),
    turns=_XS_TURNS,
    other_turns=(("poolside_v1_nothink", _XS_TURNS.skip_reasoning("</think>", leads="\n")),),
)

# Compared with the template of Laguna S 2.1 that llama.cpp has.
LAGUNA_S = replace(
    POOLSIDE_V1,
    name="laguna_s",
    models="Laguna S 2.1",
    syntax=KeyValue(inner="", between=""),
    aliases=(),
    message=replace(POOLSIDE_V1.message, thinking=GLM47.message.thinking, before_call=""),
    results=WrappedResults(*TOOL_RESPONSE),
    offer=GLM47.offer,
    other_turns=(),
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
