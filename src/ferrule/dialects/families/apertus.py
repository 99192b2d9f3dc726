"""Apertus, of the Swiss AI initiative: a JSON array whose objects have the tool's name as their key.

Calls are read by `notations/json_array.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_array import JsonArray, Keyed
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import WrappedResults, offer_array

_APERTUS_TURNS = ("<|assistant_start|>", "<|assistant_end|>", "<|user_start|>", "<|user_end|>")

APERTUS = Family(
    name="apertus",
    models="Apertus",
    syntax=JsonArray("<|tools_prefix|>", "<|tools_suffix|>", Keyed(), before=_APERTUS_TURNS),
    message=MessageMarkers(Thinking("<|inner_prefix|>", "<|inner_suffix|>", "", "", ""), turn_markers=_APERTUS_TURNS),
    results=WrappedResults("", "", before="[", between=", ", after="]"),
    offer=offer_array("<|tools_prefix|>", "<|tools_suffix|>", "{<name>: <arguments>}"),
    turns=Turns(
        user=("<|user_start|>", "<|user_end|>"),
        assistant="<|assistant_start|>",
        end="<|assistant_end|>",
        calls_end="",
        results=("", ""),
        system=("<|system_start|>", "<|system_end|>"),
        begin="<s>",
        offer="after system",
        tools=("<|developer_start|>Deliberation: disabled\nTool Capabilities:\n", "<|developer_end|>"),
        no_tools="<|developer_start|>Deliberation: disabled\nTool Capabilities: disabled<|developer_end|>",
        stops=("<|tools_suffix|>",),
        forbidden_tokens=("<|user_start|>", "<|assistant_start|>"),
        rewrites_history=True,
    ),
)

FAMILIES = (APERTUS,)
