"""OpenBMB's MiniCPM 5: tags with attributes, values in CDATA sections where they need it.

Calls are read by `notations/invoke.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import CHATML, CHATML_MARKERS
from ferrule.dialects.notations.invoke import FLAT_LAYOUT, Invokes
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.notations.tag_values import TagValues
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TAGS_FOLLOW, TOOL_LIST, JsonOffer, WrappedResults

_TURNS = replace(CHATML, begin="<s>", stops=())

MINICPM5 = Family(
    name="minicpm5",
    models="MiniCPM 5",
    syntax=Invokes(
        SectionTags("", "", "<function", "</function>"),
        ("<param", "</param>"),
        begins=('<function name="', '<functionname="', '<function\u0120name="'),
        layout=replace(FLAT_LAYOUT, calls="\n"),
        tokens=("<param", "</param>"),
        values=TagValues(has_cdata=True, style="python"),
    ),
    message=MessageMarkers(
        Thinking(), turn_markers=CHATML_MARKERS[:2], result=("<tool_response>", "</tool_response>"), before_call="\n"
    ),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>"),
    offer=JsonOffer(TOOL_LIST, f'{TAGS_FOLLOW}<function name="name"><param name="key">value</param></function>'),
    # Its template lets the model reason or not, opens the reasoning, or closes it, as asked.
    turns=_TURNS,
    other_turns=(
        ("minicpm5_think", replace(_TURNS, opens="<think>\n")),
        ("minicpm5_nothink", _TURNS.skip_reasoning("<think>\n\n</think>\n\n")),
    ),
)

FAMILIES = (MINICPM5,)
