"""Xiaomi's MiMo: tags that contain the names, as for Qwen Coder, without line breaks around values.

Calls are read by `notations/function_xml.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.families.qwen import QWEN3_CODER
from ferrule.dialects.framing.turns import CHATML
from ferrule.dialects.notations.function_xml import FunctionXml
from ferrule.dialects.reader.message import Thinking
from ferrule.dialects.wording import TOOL_LIST, JsonOffer

MIMO = replace(
    QWEN3_CODER,
    name="mimo",
    models="MiMo V2",
    syntax=FunctionXml(frame="", between=""),
    message=replace(
        QWEN3_CODER.message, thinking=Thinking(after_open="", before_close="", after_close="", may_stay_open=True)
    ),
    offer=JsonOffer(
        TOOL_LIST,
        "\n</tools>\n\nTo call one, write its name and each argument between tags, without spaces around values:\n"
        "<tool_call>\n<function=name>\n<parameter=key>value</parameter>\n</function>\n</tool_call>",
    ),
    aliases=(),
    turns=replace(
        CHATML,
        user=("<|im_start|>user\n", "<|im_end|>"),
        after="",
        results=("<|im_start|>tool\n", "\n<|im_end|>"),
        system=("<|im_start|>system\n", "<|im_end|>"),
        thinks=True,
        tight_calls=True,
    ),
    other_turns=(),
)

FAMILIES = (MIMO,)
