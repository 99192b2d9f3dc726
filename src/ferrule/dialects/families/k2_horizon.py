"""K2 Horizon, of the Institute of Foundation Models: a name and pairs of tags for keys, types and values.

Calls are read by `notations/json_object.py` and `notations/key_value.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import PAIRS_FOLLOW, TOOL_LIST, JsonOffer

K2_HORIZON = Family(
    name="k2_horizon",
    models="K2 Horizon",
    syntax=KeyValue(
        "<ifm|tool_call>",
        "</ifm|tool_call>",
        key=("<ifm|arg_key>", "</ifm|arg_key>"),
        value=("<ifm|arg_value>", "</ifm|arg_value>"),
        type=("<ifm|arg_type>", "</ifm|arg_type>"),
        wrapper=("<ifm|tool_calls>", "</ifm|tool_calls>"),
        in_json=JsonObject("<ifm|tool_call>", "</ifm|tool_call>", before=("</ifm|tool_calls>",)),
    ),
    message=MessageMarkers(
        Thinking("<ifm|think>", "</ifm|think>", before_close="", after_close=""),
        turn_markers=("<|ifm|im_start|>", "<|ifm|im_end|>"),
    ),
    offer=JsonOffer(
        TOOL_LIST,
        f"{PAIRS_FOLLOW}<ifm|tool_calls>\n<ifm|tool_call>name\n<ifm|arg_key>key</ifm|arg_key>\n<ifm|arg_value>value"
        "</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>",
    ),
    turns=Turns(
        user=("<|ifm|im_start|>user\n", "<|ifm|im_end|>"),
        assistant="<|ifm|im_start|>assistant\n",
        end="<|ifm|im_end|>",
        results=("<|ifm|im_start|>tool\n", "<|ifm|im_end|>"),
        system=("<|ifm|im_start|>system\n", "<|ifm|im_end|>"),
        begin="<|ifm|begin_of_text|>",
        opens="<ifm|think>\n",
        each_result=True,
        forbidden_tokens=("<|ifm|im_start|>",),
    ),
)

FAMILIES = (K2_HORIZON,)
