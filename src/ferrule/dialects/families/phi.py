"""Microsoft's Phi-4-mini: a JSON array after `functools`.

Calls are read by `notations/json_array.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_array import JsonArray
from ferrule.dialects.reader.message import MessageMarkers
from ferrule.dialects.wording import WrappedResults, offer_array

_PHI_TURNS = ("<|end|>", "<|assistant|>", "<|user|>", "<|system|>", "<|endoftext|>")


PHI4_MINI = Family(
    name="phi4_mini",
    models="Phi-4-mini",
    syntax=JsonArray("functools[", also=(("<|tool_call|>", "<|/tool_call|>"),), before=_PHI_TURNS),
    message=MessageMarkers(
        turn_markers=_PHI_TURNS, result=("<|tool_response|>", "<|/tool_response|>"), before_call="\n"
    ),
    results=WrappedResults("", "", quoted=True),
    offer=offer_array("functools"),
    turns=Turns(
        user=("<|user|>", "<|end|>"),
        assistant="<|assistant|>",
        end="<|end|>",
        results=("<|tool_response|>", "<|end|>"),
        system=("<|system|>", "<|end|>"),
        each_result=True,
        stops=("<|endoftext|>",),
        forbidden_tokens=("<|assistant|>", "<|user|>"),
    ),
)

FAMILIES = (PHI4_MINI,)
