"""MiniMax: JSON lines between tags (M1), tags with attributes (M2), tags named after the arguments (M3).

Calls are read by `notations/invoke.py`, `notations/json_array.py` and `notations/nested_tags.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import ImageMarkers, Turns
from ferrule.dialects.notations.invoke import Invokes
from ferrule.dialects.notations.json_array import ArrayLayout, JsonArray
from ferrule.dialects.notations.nested_tags import NestedTags
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.reader.message import TIGHT_THINKING, MessageMarkers, Thinking
from ferrule.dialects.wording import INVOKE_EXAMPLE, TAGS_FOLLOW, TOOL_LIST, JsonOffer, WrappedResults

_MINIMAX_FRAMES = Turns(
    user=("]~b]user\n", "[e~[\n"),
    assistant="]~b]ai\n",
    end="[e~[",
    after="\n",
    results=("]~b]tool\n", "[e~[\n"),
    system=("]~b]system\n", "[e~[\n"),
    begin="]~!b[",
    forbidden_tokens=("]~b]",),
)

_M2_FRAMES = replace(_MINIMAX_FRAMES, opens="<think>\n", spaced_calls=True, rewrites_history=True)

MINIMAX_M2 = Family(
    name="minimax_m2",
    models="MiniMax M2, M2.5",
    syntax=Invokes(SectionTags("<minimax:tool_call>", "</minimax:tool_call>", "<invoke", "</invoke>")),
    message=MessageMarkers(Thinking(), turn_markers=("[e~[", "]~b]"), before_call="\n"),
    results=WrappedResults("<response>", "</response>"),
    offer=JsonOffer(TOOL_LIST, f"{TAGS_FOLLOW}<minimax:tool_call>\n{INVOKE_EXAMPLE}\n</minimax:tool_call>"),
    turns=_M2_FRAMES,
    # Its template writes messages without reasoning like this, but no prompt.
    other_turns=(("minimax_m2_nothink", _M2_FRAMES.skip_reasoning()),),
)


MINIMAX_M3 = Family(
    name="minimax_m3",
    models="MiniMax M3",
    syntax=NestedTags(),
    message=MessageMarkers(
        replace(TIGHT_THINKING, open="<mm:think>", close="</mm:think>"), turn_markers=("[e~[", "]~b]"), before_call="\n"
    ),
    results=WrappedResults("<response>", "</response>"),
    offer=JsonOffer(
        TOOL_LIST,
        f'{TAGS_FOLLOW}]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="name">]<]minimax[>[<key>value]<]minimax[>['
        "</key>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    ),
    turns=replace(
        _MINIMAX_FRAMES,
        system=("]~b]developer\n", "[e~[\n"),
        unthinking="</mm:think>",
        tight_calls=True,
        image=ImageMarkers("]<]image[>["),
    ),
)

_TURNS = ("<beginning_of_sentence>", "<end_of_sentence>")

MINIMAX_M1 = Family(
    name="minimax_m1",
    models="MiniMax M1",
    syntax=JsonArray(
        "<tool_calls>", "</tool_calls>", layout=ArrayLayout("\n", "\n", "\n"), before=_TURNS, in_lines=True
    ),
    message=MessageMarkers(Thinking(), turn_markers=_TURNS, before_call="\n"),
    results=WrappedResults("tool result: ", "\n\n", between=""),
    offer=JsonOffer(
        "The functions you can call, one JSON object a line:\n<tools>\n",
        '\n</tools>\n\nTo call some:\n<tool_calls>\n{"name": <name>, "arguments": <arguments>}\n</tool_calls>',
    ),
    turns=Turns(
        user=("<beginning_of_sentence>user name=user\n", "<end_of_sentence>\n"),
        assistant="<beginning_of_sentence>ai name=assistant\n",
        end="<end_of_sentence>",
        after="\n",
        results=("<beginning_of_sentence>tool name=tools\n", "<end_of_sentence>\n"),
        system=("<beginning_of_sentence>system ai_setting=assistant\n", "<end_of_sentence>\n"),
        begin="<begin_of_document>",
        each_result=True,
        offer="after system",
        tools=("<beginning_of_sentence>system tool_setting=tools\n", "<end_of_sentence>\n"),
        forbidden_tokens=("<beginning_of_sentence>",),
    ),
)

FAMILIES = (
    MINIMAX_M2,
    MINIMAX_M3,
    MINIMAX_M1,
)
