"""Zhipu's GLM: a name and then JSON (4), or pairs of tags for keys and values (4.5 and later).

Calls are read by `notations/heading_json.py` and `notations/key_value.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import NO_IDS, NO_IMAGES, NO_PARALLEL, NO_TEXT_BESIDE, Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.heading_json import HeadingJson
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import PAIRS_FOLLOW, TOOL_LINES, TOOL_LIST, TOOL_RESPONSE, JsonOffer, WrappedResults

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

_GLM47_TURNS = Turns(
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
)

GLM47 = replace(
    GLM45,
    name="glm47",
    models="GLM 4.7, GLM 4.7 Flash",
    syntax=KeyValue(inner="", between=""),
    message=replace(GLM45.message, thinking=_BARE_THINKING, before_call=""),
    results=WrappedResults(*TOOL_RESPONSE, between=""),
    offer=JsonOffer(
        TOOL_LIST, f"{PAIRS_FOLLOW}<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>"
    ),
    aliases=(),
    turns=_GLM47_TURNS,
    other_turns=(("glm47_nothink", _GLM47_TURNS.skip_reasoning("</think>")),),
)

_TEXT = ("<|assistant|>\n", "")
_GLM4_TURNS = ("<|system|>", "<|user|>", "<|observation|>", "<|endoftext|>")

# As in the code that its makers published with it: the role's token, a name or nothing, and a line break.
GLM4 = Family(
    name="glm4",
    models="GLM 4",
    syntax=HeadingJson("<|assistant|>", "", before=_GLM4_TURNS),
    message=MessageMarkers(turn_markers=_GLM4_TURNS, answer=_TEXT, preamble=_TEXT),
    results=WrappedResults("", ""),
    offer=JsonOffer(TOOL_LINES, "\n\nTo call one, write its name and under it a JSON object of its arguments."),
    losses=frozenset({NO_IDS, NO_IMAGES, NO_PARALLEL, NO_TEXT_BESIDE}),
    turns=Turns(
        user=("<|user|>\n", ""),
        assistant="",
        end="<|user|>",
        calls_end="<|observation|>",
        results=("<|observation|>\n", ""),
        system=("<|system|>\n", ""),
        begin="[gMASK]<sop>",
        opens="<|assistant|>",
        stops=("<|endoftext|>",),
        forbidden_tokens=("<|system|>",),
    ),
)

FAMILIES = (
    GLM4,
    GLM45,
    GLM47,
)
