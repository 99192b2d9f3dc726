"""AI21's Jamba: a JSON array between tags.

Calls are read by `notations/json_array.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_array import ArrayLayout, JsonArray
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import offer_array

_LINES = ArrayLayout("[\n    ", ",\n    ", "\n]")

_JAMBA_TURNS = ("<|bom|>", "<|eom|>", "<|assistant|>", "<|tool|>", "<|user|>", "<|system|>")


JAMBA = Family(
    name="jamba",
    models="Jamba 1.5 and later",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", layout=_LINES, before=_JAMBA_TURNS),
    message=MessageMarkers(Thinking(), turn_markers=_JAMBA_TURNS, before_call="\n"),
    offer=offer_array("<tool_calls>", "</tool_calls>"),
    turns=Turns(
        user=("<|bom|><|user|> ", "<|eom|>"),
        assistant="<|bom|><|assistant|>",
        end="<|eom|>",
        results=("<|bom|><|tool|> ", "<|eom|>"),
        system=("<|bom|><|system|> ", "<|eom|>"),
        begin="<|startoftext|>",
        no_system="<|bom|><|system|> <|eom|>",
        leads=" ",
        each_result=True,
        forbidden_tokens=("<|bom|>",),
    ),
)

FAMILIES = (JAMBA,)
