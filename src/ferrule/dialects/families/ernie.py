"""Baidu's ERNIE: an object between two tags, the answer between two others.

Calls are read by `notations/json_object.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import WrappedResults, offer_tagged_object

_ERNIE = ("<|im_start|>", "<|im_end|>", "</s>", "<response>", "</response>")

_ERNIE_SETTING = "<global_setting>\nthink_mode=True\n</global_setting>"


ERNIE45 = Family(
    name="ernie45",
    models="ERNIE 4.5",
    syntax=JsonObject("<tool_call>", "</tool_call>", before=_ERNIE),
    message=MessageMarkers(
        Thinking(),
        turn_markers=_ERNIE,
        result=("<tool_output>", "</tool_output>"),
        before_call="\n",
        after_calls="\n",
        answer=("<response>\n", "\n</response>"),
    ),
    results=WrappedResults("<tool_output>\n", "\n</tool_output>"),
    offer=offer_tagged_object("tool_call"),
    turns=Turns(
        user=("<|im_start|>user\n", "<|im_end|>\n\n"),
        assistant="<|im_start|>assistant\n",
        end="\n<|im_end|>",
        after="\n\n",
        results=("<|im_start|>tool\n", "<|im_end|>\n\n"),
        system=("<|im_start|>system\n<system_setting>\n", f"\n</system_setting>\n\n{_ERNIE_SETTING}<|im_end|>\n\n"),
        no_system=f"<|im_start|>system\n{_ERNIE_SETTING}<|im_end|>\n\n",
        opens="<think>\n",
        stops=("</s>",),
        forbidden_tokens=("<|im_start|>",),
        rewrites_history=True,
    ),
)

FAMILIES = (ERNIE45,)
