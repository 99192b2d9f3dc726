"""IQuest's Q1, which writes calls as GLM does, between tags of its own.

Calls are read by `notations/key_value.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.reader.message import TIGHT_THINKING, MessageMarkers
from ferrule.dialects.wording import PAIRS_FOLLOW, TOOL_LIST, JsonOffer

IQUEST_Q1 = Family(
    name="iquest_q1",
    models="IQuest Q1",
    syntax=KeyValue("<iquest_tool_call>", "</iquest_tool_call>", inner="", between=""),
    message=MessageMarkers(
        TIGHT_THINKING,
        turn_markers=("<|iquest_system|>", "<|iquest_user|>", "<|iquest_assistant|>", "<|iquest_end|>"),
    ),
    offer=JsonOffer(
        TOOL_LIST,
        f"{PAIRS_FOLLOW}<iquest_tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></iquest_tool_call>",
    ),
)

FAMILIES = (IQUEST_Q1,)
