"""StepFun's Step: tags with attributes (3), tags that contain the names, as for Qwen Coder (3.5).

Calls are read by `notations/function_xml.py` and `notations/invoke.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.families.qwen import QWEN3_CODER
from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import CHATML
from ferrule.dialects.notations.function_xml import FunctionXml
from ferrule.dialects.notations.invoke import FLAT_LAYOUT, Invokes
from ferrule.dialects.notations.sections import SectionTags
from ferrule.dialects.notations.tag_values import TagValues
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import TAGS_FOLLOW, TOOL_LIST, TOOL_RESPONSE, JsonOffer, WrappedResults

STEP3P5 = replace(
    QWEN3_CODER,
    name="step3p5",
    models="Step 3.5, Step 5",
    syntax=FunctionXml(between="", values="python scalars"),
    message=replace(QWEN3_CODER.message, thinking=Thinking(after_close="\n", may_stay_open=True), before_call=""),
    results=WrappedResults(*TOOL_RESPONSE, between=""),
    aliases=("step5",),
    other_turns=(),
    turns=replace(CHATML, results=("<|im_start|>tool_response\n", "<|im_end|>\n"), opens="<think>\n"),
)


_UNTYPED = TagValues(untyped=frozenset({"string"}))


STEP3 = Family(
    name="step3",
    models="Step 3",
    syntax=Invokes(
        SectionTags(
            "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<steptml:invoke", "</steptml:invoke>",
            ("<｜tool_call_begin｜>function<｜tool_sep｜>", "<｜tool_call_begin｜>", "<｜tool_call_end｜>"),
        ),
        ("<steptml:parameter", "</steptml:parameter>"),
        layout=replace(FLAT_LAYOUT, lead="<｜tool_call_begin｜>function<｜tool_sep｜>", tail="<｜tool_call_end｜>"),
        tokens=("<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>"),
        values=_UNTYPED,
    ),
    message=MessageMarkers(Thinking()),
    results=WrappedResults("", ""),
    offer=JsonOffer(
        TOOL_LIST,
        f"{TAGS_FOLLOW}<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"name\">"
        '<steptml:parameter name="key">value</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
        "<｜tool_calls_end｜>",
    ),
)  # fmt: skip

FAMILIES = (
    STEP3P5,
    STEP3,
)
