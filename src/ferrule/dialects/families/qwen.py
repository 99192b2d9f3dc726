"""Qwen: JSON between tags as in Hermes (Qwen 2.5, Qwen 3, QwQ), tags that contain the names (Qwen 3 Coder, 3.5).

Calls are read by `notations/function_xml.py` and `notations/json_object.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import CHATML, CHATML_MARKERS, ImageMarkers
from ferrule.dialects.notations.function_xml import FunctionXml
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TOOL_LIST, TOOL_RESPONSE, JsonOffer, WrappedResults

# As in the templates of Qwen 2.5 and Qwen 3.
_OFFER_BEGIN = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
_OFFER_END = """
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""
_QWEN_25_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

# As in the templates of Qwen 3 VL, Qwen 3.5, 3.6 and 3.8.
_IMAGE = ImageMarkers("<|image_pad|>", "<|vision_start|>", "<|vision_end|>")

_NO_THOUGHT = "<think>\n\n</think>\n\n"
_QWEN_35_TURNS = replace(CHATML, opens="<think>\n", image=_IMAGE)

HERMES = Family(
    name="hermes",
    models="Qwen 2.5, Qwen 3, Qwen 3 VL, QwQ, Hermes 2, Hermes 3, Trinity",
    syntax=JsonObject("<tool_call>", "</tool_call>", before=CHATML_MARKERS),
    message=MessageMarkers(
        Thinking(may_stay_open=True), turn_markers=CHATML_MARKERS, result=TOOL_RESPONSE, before_call="\n"
    ),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>"),
    offer=JsonOffer(_OFFER_BEGIN, _OFFER_END),
    aliases=("qwen25", "trinity"),
    turns=CHATML,
    other_turns=(
        ("qwen25", replace(CHATML, default_system=_QWEN_25_SYSTEM)),
        ("hermes3", replace(CHATML, results=("<|im_start|>tool\n", "<|im_end|>"))),
        ("qwen3_nothink", CHATML.skip_reasoning(_NO_THOUGHT)),
        ("qwen3_vl", replace(CHATML, image=_IMAGE)),
        ("qwq", replace(CHATML, opens="<think>\n")),
    ),
)

QWEN3_CODER = Family(
    name="qwen3_coder",
    models="Qwen 3 Coder, Granite 4.2, Nanbeige",
    syntax=FunctionXml(values="python scalars"),
    message=MessageMarkers(
        Thinking(may_stay_open=True), turn_markers=CHATML_MARKERS, result=TOOL_RESPONSE, before_call="\n\n"
    ),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>"),
    offer=JsonOffer(
        TOOL_LIST,
        "\n</tools>\n\nTo call one, write its name and each argument between tags, like this:\n<tool_call>\n"
        "<function=name>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call>",
    ),
    aliases=("granite42", "nanbeige"),
    turns=replace(CHATML, results=("<|im_start|>user\n", "\n<|im_end|>\n"), rewrites_history=False),
)

# Compared with the templates of Qwen 3.5, and of 3.6 and 3.8, which write all values in JSON.
QWEN35 = replace(
    QWEN3_CODER,
    name="qwen35",
    models="Qwen 3.5, Qwen 3.6, Qwen 3.8",
    syntax=FunctionXml(),
    aliases=(),
    turns=_QWEN_35_TURNS,
    other_turns=(("qwen35_nothink", _QWEN_35_TURNS.skip_reasoning(_NO_THOUGHT)),),
)

FAMILIES = (HERMES, QWEN3_CODER, QWEN35)
