"""MiniMax M1: an object a line between two tags."""

from __future__ import annotations

from ferrule.dialects.family import Family, JsonOffer, WrappedResults
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.json_array import JsonArray, Layout
from ferrule.dialects.turns import Turns

_TURNS = ("<beginning_of_sentence>", "<end_of_sentence>")

MINIMAX_M1 = Family(
    name="minimax_m1",
    models="MiniMax M1",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", layout=Layout("\n", "\n", "\n"), before=_TURNS, in_lines=True),
    prose=Prose(Thinking(), turn_markers=_TURNS, before_call="\n"),
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
        strays=("<beginning_of_sentence>",),
    ),
)

FAMILIES = (MINIMAX_M1,)
