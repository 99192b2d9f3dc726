"""Xiaohongshu's dots: tags with attributes, or JSON. The framing of whole conversations is unknown.

Calls are read by `notations/invoke.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.notations.invoke import FLAT_LAYOUT, Invokes
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import INVOKE_EXAMPLE, TAGS_FOLLOW, TOOL_LIST, JsonOffer, WrappedResults

DOTS = Family(
    name="dots",
    models="dots",
    syntax=Invokes(
        SectionTags("<dots_function_call>", "</dots_function_call>", "<invoke", "</invoke>"),
        layout=FLAT_LAYOUT,
        or_json=True,
    ),
    message=MessageMarkers(Thinking()),
    results=WrappedResults("", ""),
    offer=JsonOffer(
        TOOL_LIST, f"{TAGS_FOLLOW}<dots_function_call>{INVOKE_EXAMPLE}</dots_function_call>".replace(">\n<", "><")
    ),
)

FAMILIES = (DOTS,)
