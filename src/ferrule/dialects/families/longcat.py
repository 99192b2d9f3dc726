"""Meituan's LongCat: an object between two tags. The framing of whole conversations is unknown.

Calls are read by `notations/json_object.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import offer_tagged_object

_LONGCAT = ("</longcat_s>",)


LONGCAT = Family(
    name="longcat",
    models="LongCat-Flash",
    syntax=JsonObject("<longcat_tool_call>", "</longcat_tool_call>", before=_LONGCAT),
    message=MessageMarkers(
        Thinking("<longcat_think>", "</longcat_think>"), turn_markers=_LONGCAT, before_call="\n", after_calls="\n"
    ),
    offer=offer_tagged_object("longcat_tool_call"),
)

FAMILIES = (LONGCAT,)
