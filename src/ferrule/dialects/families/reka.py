"""Reka Edge: an object between two tags, turns without tokens of their own.

Calls are read by `notations/json_object.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TOOL_RESPONSE, WrappedResults, offer_tagged_object

_REKA = ("<sep>", "<|endoftext|>")


# Compared with the template of Reka Edge that llama.cpp has.
REKA_EDGE = Family(
    name="reka_edge",
    models="Reka Edge",
    syntax=JsonObject("<tool_call>", "</tool_call>", before=_REKA, between=""),
    message=MessageMarkers(Thinking(), turn_markers=_REKA, result=TOOL_RESPONSE, before_call="\n"),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>", between=""),
    offer=offer_tagged_object("tool_call"),
    turns=Turns(
        user=("human: ", "<sep>"),
        assistant="assistant: ",
        end="\n\n<sep>",
        results=("human: ", "<sep>"),
        system=("system: ", "\n\n<sep>"),
        opens="<think>\n",
        stops=("<|endoftext|>",),
        rewrites_history=True,
    ),
)

FAMILIES = (REKA_EDGE,)
