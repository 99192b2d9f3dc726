"""Meta's Code World Model: blocks under the name of a tool, in the turns of Llama 3.

Calls are read by `notations/tool_block.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import LLAMA3
from ferrule.dialects.notations.tool_block import ToolBlock
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer, WrappedResults

# As in the guide to its prompts that its makers published, and not in a template.
CWM = Family(
    name="cwm",
    models="Code World Model",
    syntax=ToolBlock(),
    message=MessageMarkers(
        Thinking(after_close="\n"),
        turn_markers=("<|eot_id|>", "<|start_header_id|>", "<|end_of_text|>"),
        before_call="\n",
    ),
    results=WrappedResults("", ""),
    offer=JsonOffer(
        "You have access to the following tools:\n",
        "\n\nTo call one, write its name and a JSON object of its arguments, or only its command, like this:\n"
        "<tool: name>\narguments\n</tool>",
    ),
    turns=replace(
        LLAMA3,
        results=("<|start_header_id|>tool: {name}<|end_header_id|>\n\n", "<|eot_id|>"),
        stops=("<|end_of_text|>",),
    ),
)

FAMILIES = (CWM,)
