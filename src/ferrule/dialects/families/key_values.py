"""Families that write a call as a name and pairs of tags for its keys and values: GLM, and those that took it up."""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family, JsonOffer, WrappedResults
from ferrule.dialects.message_reader import Prose, Thinking
from ferrule.dialects.notations.json_object import JsonObject
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.turns import Turns

_RESULT = ("<tool_response>", "</tool_response>")
_BARE_THINKING = Thinking(after_open="", before_close="", after_close="")
_BEFORE = "# Tools\n\nThe functions you can call are listed here, one JSON object a line:\n<tools>\n"
_AFTER = "\n</tools>\n\nTo call one, write its name, then each key and value between tags, like this:\n"

GLM45 = Family(
    name="glm45",
    models="GLM 4.5, GLM 4.6, Ling 3",
    syntax=KeyValue(),
    prose=Prose(
        Thinking(after_open="", before_close="", after_close="\n"),
        turn_markers=("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>", "<|role_end|>"),
        result=_RESULT,
        before_call="\n",
    ),
    results=WrappedResults("<tool_response>\n", "\n</tool_response>"),
    offer=JsonOffer(
        _BEFORE,
        f"{_AFTER}<tool_call>name\n<arg_key>key</arg_key>\n<arg_value>value</arg_value>\n</tool_call>",
    ),
    aliases=("ling3",),
    turns=Turns(
        user=("<|user|>\n", ""),
        assistant="<|assistant|>",
        end="<|user|>",
        calls_end="<|observation|>",
        results=("<|observation|>\n", ""),
        system=("<|system|>\n", ""),
        offer="before system",
        tools=("<|system|>\n", ""),
        begin="[gMASK]<sop>",
        leads="\n",
        thinks=True,
        stops=("<|endoftext|>",),
        strays=("<|system|>", "<|assistant|>"),
        rewrites_history=True,
    ),
)

POOLSIDE_V1 = replace(
    GLM45,
    name="poolside_v1",
    models="Laguna XS.2",
    aliases=("laguna",),
    prose=Prose(
        Thinking(after_close="\n"),
        turn_markers=("<assistant>", "</assistant>", "〈|EOS|〉"),
        result=_RESULT,
        before_call="\n",
    ),
    turns=Turns(
        user=("<user>\n", "\n</user>\n"),
        assistant="<assistant>\n",
        end="\n</assistant>",
        after="\n",
        results=("", "\n"),
        system=("<system>\n\n", "\n</system>\n"),
        begin="〈|EOS|〉",
        opens="<think>",
        stops=("〈|EOS|〉",),
        strays=("<assistant>",),
        rewrites_history=True,
    ),
)

GLM47 = replace(
    GLM45,
    name="glm47",
    models="GLM 4.7",
    syntax=KeyValue(inner="", between=""),
    prose=replace(GLM45.prose, thinking=_BARE_THINKING, before_call=""),
    results=WrappedResults(*_RESULT, between=""),
    offer=JsonOffer(_BEFORE, f"{_AFTER}<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>"),
    aliases=(),
    turns=Turns(
        user=("<|user|>", ""),
        assistant="<|assistant|>",
        end="<|user|>",
        calls_end="<|observation|>",
        results=("<|observation|>", ""),
        system=("<|system|>", ""),
        offer="before system",
        tools=("<|system|>\n", ""),
        begin="[gMASK]<sop>",
        opens="<think>",
        stops=("<|endoftext|>",),
        strays=("<|system|>", "<|assistant|>"),
        rewrites_history=True,
    ),
)

SPARK = replace(
    GLM47,
    name="spark",
    models="Spark 2.5",
    prose=replace(
        GLM47.prose,
        turn_markers=("<｜start▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<|Bot|>", "<|User|>", "<|Tool|>"),
    ),
    turns=Turns(
        user=("<｜start▁of▁sentence｜><|User|>", "<｜end▁of▁sentence｜>"),
        assistant="<｜start▁of▁sentence｜><|Bot|>",
        end="<｜end▁of▁sentence｜>",
        results=("<｜start▁of▁sentence｜><|Tool|>", "<｜end▁of▁sentence｜>"),
        system=("<｜start▁of▁sentence｜><|System|>\n", "<｜end▁of▁sentence｜>"),
        opens="<think>",
        strays=("<｜start▁of▁sentence｜>",),
    ),
)

HY_V3 = Family(
    name="hy_v3",
    models="Hunyuan 3 and 4",
    syntax=KeyValue(after_name="<tool_sep>", wrapper=("<tool_calls>", "</tool_calls>")),
    prose=Prose(
        _BARE_THINKING,
        turn_markers=("<tool_responses>", "</tool_responses>", "<｜hy_eos｜>", "<｜hy_User｜>", "<｜hy_Assistant｜>"),
        result=_RESULT,
        before_call="\n",
    ),
    results=WrappedResults(
        "<tool_response>\n", "\n</tool_response>", before="<tool_responses>\n", after="\n</tool_responses>"
    ),
    offer=JsonOffer(
        _BEFORE,
        f"{_AFTER}<tool_calls>\n<tool_call>name<tool_sep>\n<arg_key>key</arg_key>\n<arg_value>value</arg_value>\n"
        "</tool_call>\n</tool_calls>",
    ),
    aliases=("hy_v4",),
    turns=Turns(
        user=("<｜hy_User｜>", ""),
        assistant="<｜hy_Assistant｜>",
        end="<｜hy_eos｜>",
        results=("", ""),
        system=("", "<｜reasoning_mode｜>reasoning_effort:high"),
        begin="<｜hy_begin▁of▁sentence｜>",
        no_system="<｜reasoning_mode｜>reasoning_effort:high",
        opens="<think>",
        tight_calls=True,
        strays=("<｜hy_User｜>", "<｜hy_Assistant｜>"),
        rewrites_history=True,
    ),
)

K2_HORIZON = Family(
    name="k2_horizon",
    models="K2 Horizon",
    syntax=KeyValue(
        "<ifm|tool_call>",
        "</ifm|tool_call>",
        key=("<ifm|arg_key>", "</ifm|arg_key>"),
        value=("<ifm|arg_value>", "</ifm|arg_value>"),
        type=("<ifm|arg_type>", "</ifm|arg_type>"),
        wrapper=("<ifm|tool_calls>", "</ifm|tool_calls>"),
        in_json=JsonObject("<ifm|tool_call>", "</ifm|tool_call>", before=("</ifm|tool_calls>",)),
    ),
    prose=Prose(
        Thinking("<ifm|think>", "</ifm|think>", before_close="", after_close=""),
        turn_markers=("<|ifm|im_start|>", "<|ifm|im_end|>"),
    ),
    offer=JsonOffer(
        _BEFORE,
        f"{_AFTER}<ifm|tool_calls>\n<ifm|tool_call>name\n<ifm|arg_key>key</ifm|arg_key>\n<ifm|arg_value>value"
        "</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>",
    ),
    turns=Turns(
        user=("<|ifm|im_start|>user\n", "<|ifm|im_end|>"),
        assistant="<|ifm|im_start|>assistant\n",
        end="<|ifm|im_end|>",
        results=("<|ifm|im_start|>tool\n", "<|ifm|im_end|>"),
        system=("<|ifm|im_start|>system\n", "<|ifm|im_end|>"),
        begin="<|ifm|begin_of_text|>",
        opens="<ifm|think>\n",
        each_result=True,
        strays=("<|ifm|im_start|>",),
    ),
)

FAMILIES: tuple[Family, ...] = (GLM45, GLM47, POOLSIDE_V1, SPARK, HY_V3, K2_HORIZON)
