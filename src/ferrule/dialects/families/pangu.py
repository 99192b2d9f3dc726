"""Huawei's openPangu 2: a JSON array of calls between tokens.

Calls are read by `notations/json_array.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.notations.json_array import JsonArray
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import offer_array

_CALLS = ("<|tool_call_start|>", "<|tool_call_end|>")

OPENPANGU_V2 = Family(
    name="openpangu_v2",
    models="openPangu 2",
    syntax=JsonArray(*_CALLS),
    message=MessageMarkers(Thinking()),
    offer=offer_array(*_CALLS, '{"name": <name>, "arguments": <arguments>}'),
)

FAMILIES = (OPENPANGU_V2,)
