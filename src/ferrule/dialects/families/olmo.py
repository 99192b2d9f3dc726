"""AI2's OLMo 3: Python calls between tags, one per line.

Calls are read by `notations/pythonic.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import CHATML, CHATML_MARKERS
from ferrule.dialects.notations.pythonic import Pythonic
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer, WrappedResults

# Compared with the template of OLMo 3, and with vLLM's own for it at 2e30b47, whose turns and quotes differ.
OLMO_3 = Family(
    name="olmo3",
    models="OLMo 3",
    syntax=Pythonic("<function_calls>", "</function_calls>", is_list=False),
    message=MessageMarkers(
        Thinking(), turn_markers=CHATML_MARKERS, result=("<function_response>", "</function_response>")
    ),
    results=WrappedResults("", ""),
    offer=JsonOffer(
        "You can call these functions:\n<functions>\n",
        "\n</functions>\nWrite calls as <function_calls>name(key=value)</function_calls>, one a line.",
    ),
    turns=replace(CHATML, results=("<|im_start|>environment\n", "<|im_end|>\n"), each_result=True),
)

FAMILIES = (OLMO_3,)
