"""Fireworks' FireFunction: a JSON array after `functools`, in Llama 3's turns.

Calls are read by `notations/json_array.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import LLAMA3
from ferrule.dialects.notations.json_array import JsonArray
from ferrule.dialects.reader.message import MessageMarkers
from ferrule.dialects.wording import offer_array

_LLAMA_MARKERS = ("<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|end_of_text|>")

FIREFUNCTION_V2 = Family(
    name="firefunction_v2",
    models="FireFunction v2",
    syntax=JsonArray("functools[", before=_LLAMA_MARKERS),
    message=MessageMarkers(turn_markers=_LLAMA_MARKERS, before_call=" "),
    offer=offer_array("functools"),
    turns=replace(LLAMA3, results=("<|start_header_id|>tool<|end_header_id|>\n\n", "<|eot_id|>"), spaced_calls=True),
)

FAMILIES = (FIREFUNCTION_V2,)
