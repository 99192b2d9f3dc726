"""ByteDance's Seed-OSS: tags that contain the names, as for Qwen Coder, inside tags of its own.

Calls are read by `notations/function_xml.py`.
"""

from __future__ import annotations

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.function_xml import FunctionXml
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import JsonOffer

SEED_OSS = Family(
    name="seed_oss",
    models="Seed-OSS",
    syntax=FunctionXml("<seed:tool_call>", "</seed:tool_call>", frame="", values="python"),
    message=MessageMarkers(
        Thinking("<seed:think>", "</seed:think>", after_open="", before_close="", after_close="\n"),
        turn_markers=("<seed:bos>", "<seed:eos>"),
        before_call="\n\n",
    ),
    offer=JsonOffer(
        "The functions you can call are listed here, one JSON object a line:\n",
        "\n\nTo call one, write its name and each argument between tags, like this:\n<seed:tool_call>\n"
        "<function=name>\n<parameter=key>value</parameter>\n</function>\n</seed:tool_call>",
    ),
    turns=Turns(
        user=("<seed:bos>user\n", "<seed:eos>"),
        assistant="<seed:bos>assistant\n",
        end="<seed:eos>",
        results=("<seed:bos>tool\n", "<seed:eos>"),
        system=("<seed:bos>system\n", "<seed:eos>"),
        each_result=True,
        forbidden_tokens=("<seed:bos>",),
    ),
)

FAMILIES = (SEED_OSS,)
