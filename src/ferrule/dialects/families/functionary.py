"""MeetKai's Functionary, in Llama 3's turns: a tag with the name (3.1), a heading that is the name (3.2).

Calls are read by `notations/heading_json.py` and `notations/named_json.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import LLAMA3
from ferrule.dialects.notations.heading_json import HeadingJson
from ferrule.dialects.notations.named_json import NamedJson
from ferrule.dialects.reader.message import MessageMarkers
from ferrule.dialects.wording import TOOL_LINES, JsonOffer

_FUNCTIONARY_MARKERS = ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|start_header_id|>")

FUNCTIONARY_V31 = Family(
    name="functionary_v31",
    models="Functionary 3.1",
    syntax=NamedJson("<function=", ">", "</function>", before=_FUNCTIONARY_MARKERS),
    message=MessageMarkers(turn_markers=_FUNCTIONARY_MARKERS),
    offer=JsonOffer(TOOL_LINES, "\n\nA call is written so:\n<function=NAME>ARGUMENTS</function>"),
    turns=replace(LLAMA3, calls_end="<|eom_id|>"),
)

FUNCTIONARY_V32 = Family(
    name="functionary_v32",
    models="Functionary 3.2",
    syntax=HeadingJson(">>>", "all", before=_FUNCTIONARY_MARKERS),
    message=MessageMarkers(turn_markers=_FUNCTIONARY_MARKERS, answer=(">>>all\n", ""), preamble=(">>>all\n", "")),
    offer=JsonOffer(TOOL_LINES, "\n\nA call is written so:\n>>>NAME\nARGUMENTS"),
    turns=replace(LLAMA3, results=("<|start_header_id|>tool<|end_header_id|>\n\n", "<|eot_id|>"), opens=">>>"),
)

FAMILIES = (
    FUNCTIONARY_V31,
    FUNCTIONARY_V32,
)
