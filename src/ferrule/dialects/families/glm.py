"""Zhipu's GLM, which writes a name, and then pairs of tags for keys and values."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import PAIRS_FOLLOW, TOOL_LIST, TOOL_RESPONSE, JsonOffer, WrappedResults

GLM45 = Family(
    name="glm45",
    models="GLM 4.5, GLM 4.6",
    syntax=KeyValue(),
    message=MessageMarkers(
        Thinking(after_open="", before_close="", after_close="\n", may_stay_open=True),
        turn_markers=("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>", "<|role_end|>"),
        result=TOOL_RESPONSE,
        before_call="\n",
    ),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>"),
    offer=JsonOffer(
        TOOL_LIST,
        f"{PAIRS_FOLLOW}<tool_call>name\n<arg_key>key</arg_key>\n<arg_value>value</arg_value>\n</tool_call>",
    ),
    turns=Turns(
        user=("<|user|>\n", ""),
        assistant="<|assistant|>",
        end="<|user|>",
        calls_end="<|observation|>",
        results=("<|observation|>\n", ""),
        system=("<|system|>\n", ""),
        offer="before system",
        tools=("<|system|>\n", ""),
        begin="[gMASK]<sop>",
        leads="\n",
        thinks=True,
        stops=("<|endoftext|>",),
        forbidden_tokens=("<|system|>", "<|assistant|>"),
        rewrites_history=True,
    ),
)

_BARE_THINKING = Thinking(after_open="", before_close="", after_close="", may_stay_open=True)

GLM47 = replace(
    GLM45,
    name="glm47",
    models="GLM 4.7",
    syntax=KeyValue(inner="", between=""),
    message=replace(GLM45.message, thinking=_BARE_THINKING, before_call=""),
    results=WrappedResults(*TOOL_RESPONSE, between=""),
    offer=JsonOffer(
        TOOL_LIST, f"{PAIRS_FOLLOW}<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>"
    ),
    aliases=(),
    turns=Turns(
        user=("<|user|>", ""),
        assistant="<|assistant|>",
        end="<|user|>",
        calls_end="<|observation|>",
        results=("<|observation|>", ""),
        system=("<|system|>", ""),
        offer="before system",
        tools=("<|system|>\n", ""),
        begin="[gMASK]<sop>",
        opens="<think>",
        stops=("<|endoftext|>",),
        forbidden_tokens=("<|system|>", "<|assistant|>"),
        rewrites_history=True,
    ),
)

FAMILIES = (
    GLM45,
    GLM47,
)
